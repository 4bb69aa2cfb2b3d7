"""Model back ends. ``load_model`` turns the string a user writes into the one that serves it."""

from s3gym.models.base import Model
from s3gym.models.prices import Prices
from s3gym.registry import UnknownName

KINDS = ("local", "player", "python")
"""What stands before the colon of a model that is not hosted."""


def load_model(
    model_id: str,
    base_url: str | None = None,
    revision: str | None = None,
    prices: Prices | None = None,
    weights: str | None = None,
) -> Model:
    """The back end that serves a name.

    ``player:<name>`` is scripted, ``local:<name>`` computed in this process, ``python:<module>:<callable>`` an agent of
    one's own; anything else is litellm's.

    Args:
        model_id: its name.
        base_url: an endpoint of one's own.
        revision: a note that tells versions behind one name apart.
        prices: what the config says its tokens cost.
        weights: what ``hosted_vllm/<name>`` is trained from in this process.

    Raises:
        ValueError: the name is not one any back end knows, or takes no base_url or weights.
    """
    if weights is not None:
        from s3gym.models import served

        return served.load(model_id, base_url, revision, prices, weights)
    kind, colon, _ = model_id.partition(":")
    if colon and kind.isidentifier() and kind not in KINDS:
        more = " A hosted model is <provider>/<name>, an agent of your own python:<module>:<callable>."
        raise UnknownName("kind of model", kind, KINDS, more)
    if kind == "player":
        if base_url:
            raise ValueError("a scripted player has no base_url; leave it out")
        from s3gym.models import scripted

        return scripted.load(model_id)
    if kind == "local":
        from s3gym.models import local

        return local.load(model_id, base_url, revision)
    if kind == "python":
        if base_url:
            raise ValueError("an agent of your own has no base_url; leave it out and call your endpoint in the agent")
        from s3gym.models import python

        return python.load(model_id, revision, prices)
    from s3gym.models import api

    return api.load(model_id, base_url, revision, prices)
