"""What tokens cost: from the config where it says so, else from the price list that litellm ships.

Unknown is None, never zero. Prices change no answer, so they are part of no key.
"""

from dataclasses import dataclass
from typing import Any

from s3gym.models._litellm import litellm_module
from s3gym.records import CallFacts

PER_MILLION = 1_000_000
MOST_TOKENS = 10**9
"""No call takes more: whoever reports more for one is not believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars for one token."""

    prompt_usd: float
    cached_usd: float
    """A prompt token that the provider served from its cache."""
    completion_usd: float
    """Reasoning tokens are completion tokens."""
    written_usd: float
    """A prompt token that the provider puts into its cache; some ask more for it."""


FREE = Prices(prompt_usd=0.0, cached_usd=0.0, completion_usd=0.0, written_usd=0.0)
"""Of a scripted player, and of a model in this process."""


def given_prices(
    prompt_price: float | None, cached_price: float | None, completion_price: float | None
) -> Prices | None:
    """The prices of a config, which states them in dollars per million tokens.

    None unless both prompt and completion have one. Without a price of their own, cached tokens cost what all prompt
    tokens do.
    """
    if prompt_price is None or completion_price is None:
        return None
    cached = prompt_price if cached_price is None else cached_price
    return Prices(
        prompt_usd=prompt_price / PER_MILLION,
        cached_usd=cached / PER_MILLION,
        completion_usd=completion_price / PER_MILLION,
        written_usd=prompt_price / PER_MILLION,
    )


def prices_of(model_id: str, given: Prices | None = None) -> Prices | None:
    """``given``, else what litellm's list says of ``model_id``; None where neither knows. Asks nobody.

    What is computed in this process is billed by nobody.
    """
    return given or (FREE if model_id.startswith(("player:", "local:")) else _listed(model_id))


def cost_of(facts: CallFacts, prices: Prices | None) -> float | None:
    """Dollars of one call, each token billed once; None where tokens or prices are unknown.

    A provider that reports no cached tokens has served none from its cache.
    """
    if prices is None or facts.prompt_tokens is None or facts.completion_tokens is None:
        return None
    cached = min(facts.cached_tokens or 0, facts.prompt_tokens)
    return (
        (facts.prompt_tokens - cached) * prices.prompt_usd
        + cached * prices.cached_usd
        + facts.completion_tokens * prices.completion_usd
    )


def entry_of(model_id: str) -> dict[str, Any]:
    """What litellm's list says of ``model_id`` at its own provider; empty where it says nothing. Asks nobody."""
    litellm = litellm_module()
    try:
        name, provider, *_ = litellm.get_llm_provider(model_id)
    except Exception:  # noqa: BLE001 - litellm knows no provider for an agent, a server's own name, a slip of the pen
        return {}
    # not litellm.get_model_info, which asks the server where the provider is ollama
    listed: dict[str, Any] = litellm.model_cost.get(model_id) or litellm.model_cost.get(name) or {}
    # the same name elsewhere costs otherwise, and may read less
    return listed if str(listed.get("litellm_provider", "")).startswith(provider) else {}


def _listed(model_id: str) -> Prices | None:
    listed = entry_of(model_id)
    prompt, completion = listed.get("input_cost_per_token"), listed.get("output_cost_per_token")
    if prompt is None or completion is None:
        return None
    return Prices(
        prompt_usd=prompt,
        cached_usd=listed.get("cache_read_input_token_cost", prompt),
        completion_usd=completion,
        written_usd=max(prompt, listed.get("cache_creation_input_token_cost") or 0.0),
    )
