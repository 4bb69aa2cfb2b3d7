"""TextArena, timed beside on the same machine: in an environment of its own, so that it never meets our packages."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from s3gym.bench import _textarena_probe
from s3gym.bench.games import PASS_SECONDS, Pass
from s3gym.errors import Explained

REQUIREMENT = "textarena==0.7.4"
"""The version whose games and settings the probe was written for."""


class PeerError(Explained):
    """TextArena could not be installed or run."""


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
    with _folder(env) as folder:
        told = json.loads(_run([_python(folder), "-I", _textarena_probe.__file__, request], "run"))
    rows = [
        PeerRow(**{**row, **{mode: row[mode] and Pass(*row[mode]) for mode in ("loop", "prompt")}})
        for row in told["rows"]
    ]
    return PeerSpeeds(told["version"], rows)


@contextmanager
def _folder(env: Path | None) -> Iterator[Path]:
    if env is not None:
        yield env
        return
    with TemporaryDirectory(prefix="s3gym-textarena-") as folder:
        yield Path(folder)


def _python(folder: Path) -> str:
    """The environment's interpreter, with TextArena installed."""
    python = folder / "bin" / "python"
    if not python.exists():
        if folder.exists() and any(folder.iterdir()):
            raise PeerError(f"{folder} is not an environment of Python: name an empty or a new folder with --env")
        _run([sys.executable, "-m", "venv", str(folder)], "make an environment for")
    if subprocess.run([python, "-I", "-c", "import textarena"], capture_output=True).returncode:
        _run([str(python), "-m", "pip", "install", "--quiet", REQUIREMENT], "install")
    return str(python)


def _run(command: list[str], what: str) -> str:
    """Its standard output."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise PeerError(
            f"could not {what} TextArena: {last}. It comes from PyPI: check the network or pip's index, or name with "
            f"--env the folder of an environment that has {REQUIREMENT}; without --textarena it is not needed"
        )
    return done.stdout
