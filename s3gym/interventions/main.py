"""No intervention: every link is the agent's own. What all others are compared with."""

from s3gym.interventions.base import Intervention

INTERVENTION = Intervention(version=1, fits=frozenset({"control", "text", "weights"}))
