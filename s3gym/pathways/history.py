"""Raw history: the transcripts of earlier exploration episodes stand before the prompt.

The limit holds for earlier episodes; the current one and the rules are always whole. Whole steps are cut, from the
tail (``newest``, the published wording) or the head (``oldest``), and what was cut is counted.
"""

from collections.abc import Sequence
from itertools import accumulate, count, repeat

from s3gym.pathways.base import Built, Workshop
from s3gym.transcript import PastEpisode

VERSION = 1
IS_CONTROL = False
IS_MODEL_ASKED = False
IS_TRAINED = False


async def build(episodes: Sequence[PastEpisode], workshop: Workshop) -> Built:
    """The transcripts that fit."""
    return serialise(episodes, workshop)


def serialise(episodes: Sequence[PastEpisode], workshop: Workshop, first_number: int | None = None) -> Built:
    """Transcripts in order, cut to the token limit in whole steps; with the episodes' numbers where they are wanted."""
    numbers = repeat(None) if first_number is None else count(first_number)
    numbered = zip(episodes, numbers, strict=False)
    segments = [segment for episode, number in numbered for segment in episode.segments(number)]
    sizes = [workshop.count_tokens(segment) for segment in segments]
    from_head = workshop.cut == "newest"
    running = accumulate(sizes if from_head else reversed(sizes))
    kept_count = sum(1 for total in running if total <= workshop.token_limit)
    kept = slice(0, kept_count) if from_head else slice(len(segments) - kept_count, len(segments))
    token_count = sum(sizes[kept])
    return Built(
        kind="history",
        content="".join(segments[kept]),
        stored_text=None,
        token_count=token_count,
        steps_kept=kept_count,
        steps_dropped=len(segments) - kept_count,
        tokens_dropped=sum(sizes) - token_count,
    )
