"""Placebo memory: another game's strategy guide, as long as the experience in whose place it stands.

What it changes, any text of that length would: the control of ``reference_memory`` and of every text pathway. The game
is the next one in the alphabet that has a guide; its sentences are repeated as often as needed, the last one cut at a
word.
"""

from s3gym.guides import Guide, guided_games, read_guide
from s3gym.interventions.base import Intervention


def _another(game: str) -> Guide:
    """The guide of the next game in the alphabet, from the last on to the first."""
    others = [name for name in guided_games() if name != game]
    return read_guide(next((name for name in others if name > game), others[0]))


INTERVENTION = Intervention(version=1, fits=frozenset({"text"}), mark="placebo guide", guide=_another, is_measured=True)
