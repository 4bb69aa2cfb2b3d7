"""Shuffled scores: the agent's scores are dealt anew among the steps that its experience is made from.

Replaced is judging, by chance: how good the scores are on the whole stays, which step earned which is lost. What does
as well without the scores as with them never used them. Missing scores are dealt too; where experience becomes
weights this is training's own ``shuffle_scores``, which leaves them where they are.
"""

import random
from collections.abc import Sequence

from s3gym.interventions.base import Intervention
from s3gym.records import Step


def _dealt_anew(steps: Sequence[Step], rng: random.Random) -> list[float | None]:
    scores = [step.self_score for step in steps]
    rng.shuffle(scores)
    return scores


INTERVENTION = Intervention(
    version=1,
    fits=frozenset({"text", "weights"}),
    mark="shuffled scores",
    scores=_dealt_anew,
    training={"shuffle_scores": True},
)
