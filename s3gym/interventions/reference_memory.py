"""Reference memory: our strategy guide of the game stands where the agent's own experience would.

Replaced is consolidation, and with it all before it: who plays no better even with the guide fails to act on what it
reads. What the pathway would have carried is not read, so pathways share these evaluations.
"""

from s3gym.guides import read_guide
from s3gym.interventions.base import Intervention

INTERVENTION = Intervention(version=1, fits=frozenset({"text"}), mark="reference guide", guide=read_guide)
