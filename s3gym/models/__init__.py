"""Model back ends. ``load_model`` turns the string a user writes into the one that serves it."""

from s3gym.models.base import Model
from s3gym.registry import UnknownName

KINDS = ("player",)
"""What stands before the colon of a model that is not hosted."""


def load_model(model_id: str, base_url: str | None = None, revision: str | None = None) -> Model:
    """The back end of ``player:<name>`` (scripted) or of any name litellm knows (hosted).

    Raises:
        ValueError: the name is not one any back end knows.
    """
    kind, colon, _ = model_id.partition(":")
    if colon and kind.isidentifier() and kind not in KINDS:
        raise UnknownName("kind of model", kind, KINDS)
    if kind == "player":
        if base_url:
            raise ValueError("a scripted player has no base_url; leave it out")
        from s3gym.models import scripted

        return scripted.load(model_id)
    from s3gym.models import api

    return api.load(model_id, base_url, revision)
