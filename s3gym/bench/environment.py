"""An environment of its own for what we are timed beside, so that it never meets our packages."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from s3gym.errors import Explained


class PeerError(Explained):
    """What we are timed beside could not be installed or run."""


class Peer(NamedTuple):
    """A package that does the same as ours."""

    name: str
    module: str
    """What is imported."""
    requirements: tuple[str, ...]
    """The versions that its probe was written for."""
    option: str
    """Of the command that asks for it."""

    @contextmanager
    def installed(self, env: Path | None) -> Iterator[Path]:
        """The interpreter of an environment that has it; installs it first where it is not there.

        Args:
            env: folder of the environment, kept; None takes a temporary one.

        Raises:
            PeerError: with what to do.
        """
        if env is not None:
            yield self._python(env)
            return
        with TemporaryDirectory(prefix=f"s3gym-{self.name}-") as folder:
            yield self._python(Path(folder))

    def run(self, python: Path, probe: str, request: str) -> str:
        """What a file that imports nothing of ours says to ``request``, its one argument; PeerError when it fails."""
        return self._done([str(python), "-I", probe, request], "run")

    def _python(self, folder: Path) -> Path:
        python = folder / "bin" / "python"
        if not python.exists():
            if folder.exists() and any(folder.iterdir()):
                raise PeerError(f"{folder} is not an environment of Python: name an empty or a new folder with --env")
            self._done([sys.executable, "-m", "venv", str(folder)], "make an environment for")
        if subprocess.run([python, "-I", "-c", f"import {self.module}"], capture_output=True).returncode:
            self._done([str(python), "-m", "pip", "install", "--quiet", *self.requirements], "install")
        return python

    def _done(self, command: Sequence[str], what: str) -> str:
        """Its standard output."""
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
            raise PeerError(
                f"could not {what} {self.name}: {last}. It comes from PyPI: check the network or pip's index, or name "
                f"with --env the folder of an environment that has {' and '.join(self.requirements)}; "
                f"without {self.option} it is not needed"
            )
        return done.stdout
