"""Expert exploration: the game's expert explores and scores what it does; the agent builds on that and is evaluated.

Replaced is testing. The scores are the expert's own, of all that can be had without the verifier the most exact: right
to the last digit in ``latent_chess``, ``minesweeper`` (none for a guess), ``nullify``, ``pvz``, ``snake`` and
``tetris``; in ``trust`` and ``chess`` what the other side will do can only be expected (by 0.1 points off on average).
What its reader would expect from the state alone, ``confidence=honest``, is further off in six of the eight games and
nearer in none. It explores without any experience, so one exploration serves all models and pathways. It seldom fails,
so who learns what to avoid, such as ``player:learner``, may learn less from it than from its own episodes.
"""

from s3gym.interventions.base import Intervention

INTERVENTION = Intervention(version=1, fits=frozenset({"text", "weights"}), explorer="player:expert")
