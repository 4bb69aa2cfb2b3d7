"""What is known of a model without asking it; where nobody says, it is None and not a guess."""

from dataclasses import dataclass

from s3gym.models._litellm import litellm_module
from s3gym.models.api import ApiModel
from s3gym.models.base import Model
from s3gym.models.prices import FREE, Prices, prices_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One model's."""

    prices: Prices | None = None
    context_tokens: int | None = None
    """Most tokens of a prompt."""
    missing_keys: tuple[str, ...] = ()
    """Environment variables that its provider reads and that are not set; where there are several, one may do."""


def card_of(model: Model) -> Card:
    """Looks up a hosted model in litellm's lists; asks nobody."""
    if model.is_free:
        return Card(prices=FREE)
    if not isinstance(model, ApiModel):
        return Card(prices=prices_of(model.model_id))
    litellm = litellm_module()
    return Card(
        prices=prices_of(model.model_id),
        context_tokens=_context_tokens(model.model_id),
        missing_keys=tuple(litellm.validate_environment(model.model_id)["missing_keys"]),
    )


def _context_tokens(model_id: str) -> int | None:
    litellm = litellm_module()
    try:
        name, provider, *_ = litellm.get_llm_provider(model_id)
    except Exception:  # noqa: BLE001 - litellm may know it by its endpoint alone
        return None
    # not litellm.get_model_info, which asks the server where the provider is ollama
    listed = litellm.model_cost.get(model_id) or litellm.model_cost.get(name) or {}
    is_own = str(listed.get("litellm_provider", "")).startswith(provider)  # others may serve less of the same model
    tokens = listed.get("max_input_tokens")
    return tokens if is_own and isinstance(tokens, int) else None
