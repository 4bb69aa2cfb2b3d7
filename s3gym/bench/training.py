"""What training and answering with trained weights take through this project, beside transformers and peft alone.

One update (``LocalModel.train``) and one evaluation (``with_weights`` and ``complete``, greedy) are timed against plain
code that does the same (``_training_peer``): the same model, rows, batches, optimizer, order and seed; the same
prompts, adapter and batch. Each pass is a process of its own (``_training_pass``) with the same environment; the two
sides take turns to be first, so that a machine that slows down slows both. No two prompts begin alike, so keeping their
beginnings, which plain code does not do, takes memory and saves nothing: one more pass goes without.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from s3gym.bench.harness import BenchError, last_line
from s3gym.errors import Explained
from s3gym.models.local import PREFIX, load
from s3gym.models.local.weights import HOW_TO_INSTALL, SMOLLM2, TINY, need
from s3gym.registry import UnknownName

OVERHEAD_TARGET = 0.1
"""Most time for the same tokens, and most memory, beyond the peer's, as a share of it."""
LABELS = {
    "update": ("its steps", "whole, with reading and writing weights"),
    "evaluation": ("its answers", "whole, with reading weights"),
}
"""Of the two speeds of each work."""
SIDES = ("own", "peer")


class Load(NamedTuple):
    """What every pass does."""

    model: str | None
    """``local:<name>?<options>``; None takes a random one of 10 million parameters."""
    tokens: int
    """Of a row: prompt and answer."""
    batch: int
    """Rows of a step, all computed at once, and prompts answered at once."""
    steps: int
    """As many prompts are answered as there are rows in all steps."""
    new_tokens: int
    """Most of an answer."""
    repeat: int
    """Passes of each side; the best counts, of memory the worst."""


class Pass(NamedTuple):
    """What a pass took."""

    seconds: float
    """Of its steps, or of its answers."""
    whole_seconds: float
    """From reading the model on, up to weights on disk or the last answer."""
    token_count: int
    """Trained on, prompts too; or written."""
    said: list[str]
    """The loss of the last step, or the answers: the same work says the same."""
    cpu_seconds: float
    """Of all threads."""
    peak_bytes: int
    """Most memory of the process, with what it imports; on a GPU, most of what it had there."""

    @property
    def tokens_per_second(self) -> float:
        """Of its steps, or of its answers."""
        return self.token_count / self.seconds

    @property
    def whole_tokens_per_second(self) -> float:
        """With reading and writing."""
        return self.token_count / self.whole_seconds


class Measured(NamedTuple):
    """One quantity of both sides."""

    what: str
    unit: str
    own: float
    peer: float
    pairs: tuple[float, ...]
    """Own by peer, of the passes that followed one another."""

    @property
    def ratio(self) -> float:
        """Own by peer."""
        return self.own / self.peer

    @property
    def aim(self) -> float:
        """The ratio that must be kept: at least, of speeds; at most, of memory."""
        return 1 + OVERHEAD_TARGET if self.unit == "MB" else 1 / (1 + OVERHEAD_TARGET)

    @property
    def is_reached(self) -> bool:
        """Whether it is."""
        return self.ratio <= self.aim if self.unit == "MB" else self.ratio >= self.aim


class Work(NamedTuple):
    """All passes of an update or an evaluation, in pairs."""

    name: str
    own: Sequence[Pass]
    peer: Sequence[Pass]

    def measured(self) -> list[Measured]:
        """Its quantities."""
        steps, whole = LABELS[self.name]
        return [
            self._measured(steps, "tokens/s", lambda one: one.tokens_per_second),
            self._measured(whole, "tokens/s", lambda one: one.whole_tokens_per_second),
            self.memory(),
        ]

    def memory(self) -> Measured:
        """The most of all passes."""
        return self._measured("peak memory", "MB", lambda one: one.peak_bytes / 1e6)

    @property
    def cpu_ratio(self) -> float:
        """CPU time of the cheapest pass of either side, own by peer."""
        own, peer = (min(one.cpu_seconds for one in passes) for passes in (self.own, self.peer))
        return own / peer

    @property
    def alike(self) -> tuple[int, int]:
        """How much of what both sides said is the same, and of how much."""
        said, peers = self.own[0].said, self.peer[0].said
        return sum(one == other for one, other in zip(said, peers, strict=True)), len(said)

    def _measured(self, what: str, unit: str, value: Callable[[Pass], float]) -> Measured:
        own, peer = [value(one) for one in self.own], [value(one) for one in self.peer]
        pairs = tuple(one / other for one, other in zip(own, peer, strict=True))
        return Measured(f"{self.name}: {what}", unit, max(own), max(peer), pairs)  # the best speed, the worst memory


class Training(NamedTuple):
    """Both works, and what they were measured on."""

    load: Load
    facts: dict[str, Any]
    """Of model, rows, settings, device and libraries; see ``_training_job``."""
    update: Work
    evaluation: Work
    lean: Pass
    """An evaluation that keeps no beginnings."""

    def measured(self) -> list[Measured]:
        """All quantities."""
        lean = Work("evaluation, cache=0", [self.lean], self.evaluation.peer[-1:])
        return [*self.update.measured(), *self.evaluation.measured(), lean.memory()]


def measure_training(given: Load, on_pass: Callable[[str, str, int], None]) -> Training:
    """All passes, one after the other; ``on_pass`` is told the work, the side and the number of the next.

    Raises:
        MissingPackage: torch, transformers or peft are not installed.
        Explained: not a local model that is here, or an option of it is wrong.
        BenchError: a pass failed.
    """
    _check(given.model)
    with TemporaryDirectory(prefix="s3gym-bench-") as folder:
        facts = _told("preparing", "_training_job", json.dumps(given._asdict()), folder)
        passes: dict[tuple[str, str], list[Pass]] = {(work, side): [] for work in LABELS for side in SIDES}
        for work in LABELS:  # the first makes the adapter that the second answers with
            for number in range(given.repeat):
                for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                    on_pass(work, side, number)
                    passes[work, side].append(_passed(side, work, folder))
        on_pass("evaluation", "lean", 0)
        lean = _passed("lean", "evaluation", folder)
    works = {work: Work(work, passes[work, "own"], passes[work, "peer"]) for work in LABELS}
    return Training(given, facts, **works, lean=lean)


def _passed(side: str, work: str, folder: str) -> Pass:
    return Pass(**_told(f"{work} ({side})", "_training_pass", side, work, str(Path(folder) / "job.json")))


def _check(model: str | None) -> None:
    need("peft", f"training needs peft: {HOW_TO_INSTALL}")
    if model is None:
        return
    if not model.startswith(PREFIX):
        raise UnknownName("model that is trained here", model, [f"{PREFIX}{name}" for name in (SMOLLM2, TINY)])
    try:
        load(model).training_identity()
    except ValueError as error:
        raise Explained(f"--model {model}: {error}") from None


def _told(what: str, module: str, *arguments: str) -> dict[str, Any]:
    """What a process says of itself."""
    command = [sys.executable, "-P", "-m", f"s3gym.bench.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"{what} failed: {last_line(done.stderr or done.stdout)}")
    told: dict[str, Any] = json.loads(last_line(done.stdout))
    return told
