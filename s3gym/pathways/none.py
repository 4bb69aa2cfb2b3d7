"""The control: nothing is explored and nothing is carried; its curve shows what chance alone does."""

from collections.abc import Sequence

from s3gym.pathways.base import Built, Workshop
from s3gym.transcript import PastEpisode

VERSION = 1
IS_CONTROL = True
IS_MODEL_ASKED = False
IS_TRAINED = False


async def build(episodes: Sequence[PastEpisode], workshop: Workshop) -> Built:
    """An empty experience."""
    return Built(
        kind="none",
        content="",
        stored_text=None,
        token_count=0,
        steps_kept=0,
        steps_dropped=0,
        tokens_dropped=0,
    )
