"""TextArena, timed beside on the same machine."""

import json
from pathlib import Path
from typing import NamedTuple

from s3gym.bench import _textarena_probe
from s3gym.bench.environment import Peer
from s3gym.bench.games import PASS_SECONDS, Pass

TEXTARENA = Peer("TextArena", "textarena", ("textarena==0.7.4",), "--textarena")


class PeerRow(NamedTuple):
    """One game of TextArena; either both passes or an error."""

    game: str
    environment: str
    size: str
    loop: Pass | None
    prompt: Pass | None
    error: str | None


class PeerSpeeds(NamedTuple):
    """What TextArena did."""

    version: str
    rows: list[PeerRow]


def measure_textarena(games: list[str], steps: int, repeat: int, env: Path | None) -> PeerSpeeds:
    """Times those of ``games`` that TextArena has; installs it first where it is not there.

    Args:
        games: ids of this project's games.
        steps: as in ``games.measure``.
        repeat: as there.
        env: folder of the environment, kept; None takes a temporary one.

    Raises:
        PeerError: with what to do.
    """
    request = json.dumps({"games": games, "steps": steps, "repeat": repeat, "seconds": PASS_SECONDS})
    with TEXTARENA.installed(env) as python:
        told = json.loads(TEXTARENA.run(python, _textarena_probe.__file__, request))
    rows = [
        PeerRow(**{**row, **{mode: row[mode] and Pass(*row[mode]) for mode in ("loop", "prompt")}})
        for row in told["rows"]
    ]
    return PeerSpeeds(told["version"], rows)
