"""Relaxed evaluation: held-out instances under the rules of exploration, with the experience the agent has made.

Replaced is what stands between exploration and evaluation: who gains here and not under the strict rules has a policy
that does not carry over. Seeds are the held-out ones, so no instance that was explored is among them where the game
has enough. The pathway ``none`` has it too: its own start, and its own control.
"""

from s3gym.interventions.base import Intervention

INTERVENTION = Intervention(version=1, fits=frozenset({"control", "text", "weights"}), is_relaxed=True)
