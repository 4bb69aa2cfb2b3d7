"""What is known of a model without asking it; where nobody says, it is None and not a guess."""

from dataclasses import dataclass

from s3gym.models._litellm import litellm_module
from s3gym.models.api import ApiModel
from s3gym.models.base import Model
from s3gym.models.prices import FREE, Prices, entry_of, prices_of


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
    tokens = entry_of(model_id).get("max_input_tokens")
    return tokens if isinstance(tokens, int) else None
