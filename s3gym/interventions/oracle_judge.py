"""Oracle judge: what its experience is made from is scored by the verifier, not by the agent.

Replaced is judging: the scores in the history, in what the memory call reads, and in what training ranks by. The
agent still explores with its own experience, and the answers of the current episode keep its own scores.

THIS IS THE ONE PLACE WHERE A VERIFIER'S REWARD MAY COME INTO A PROMPT. ``_rewards`` is the only function that takes
one there; the experience says so in its kind, the cell in its intervention.
"""

import random
from collections.abc import Sequence

from s3gym.interventions.base import Intervention
from s3gym.records import Step


def _rewards(steps: Sequence[Step], rng: random.Random) -> list[float | None]:
    """The verifier's rewards; None where there is none."""
    return [step.verifier_reward for step in steps]


INTERVENTION = Intervention(
    version=1, fits=frozenset({"text", "weights"}), mark="oracle scores", scores=_rewards, ranking=_rewards
)
