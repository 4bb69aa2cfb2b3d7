"""Computes answers: several at a time, each as if it were alone.

Greedy answers are the same whoever else is computed beside them and whatever was kept of earlier prompts, because
every number comes from operations of the same shape: a prompt is computed alone, in blocks that begin at multiples of
``BLOCK``; each further token in a step of exactly ``batch`` rows, with stand-ins where there are fewer; attention row
by row. So a block can be kept, and prompts that begin alike share it.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from s3gym.models.local.choosing import Choices, likelihoods, mask, tree_of
from s3gym.models.local.rows import KeysAndValues, Prefixes, Rows, block_keys

BLOCK = 128
"""Positions of a prompt computed at once."""


@dataclass(frozen=True, slots=True)
class Job:
    """One prompt to continue."""

    tokens: list[int]
    most_new: int
    """At least 1."""
    temperature: float
    """0 takes the likeliest token."""
    seed: int
    seconds: float
    """Of computing; waiting for a place is not counted."""
    choices: Choices = ()
    """Answers to choose among; without them one is written freely."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """What came of a job."""

    tokens: list[int]
    """Without the one that ended it."""
    is_finished: bool
    """False when the limit came first."""
    count: int
    """Tokens computed, with the one that ended it."""
    seconds: float


class TookTooLong(Exception):
    """A job met its time limit and was dropped."""


@dataclass(eq=False, slots=True)
class _Row:
    job: Job
    future: "Future[Continuation]"
    generator: torch.Generator
    started: float
    sequence: KeysAndValues = field(default_factory=KeysAndValues)
    new: list[int] = field(default_factory=list)

    def is_late(self) -> bool:
        return time.perf_counter() - self.started > self.job.seconds

    def is_given_up(self) -> bool:
        return self.future.cancelled() or self.is_late()


class Engine:
    """One model, and the thread that computes with it while there is something to compute."""

    def __init__(self, model: Any, stops: frozenset[int], batch: int, prefix_bytes: int) -> None:
        """Takes over a model.

        Args:
            model: a causal language model of transformers.
            stops: tokens that end an answer.
            batch: rows of a step.
            prefix_bytes: memory for blocks of earlier prompts.
        """
        self.reused_tokens = 0
        """Prompt tokens that were not computed again."""
        self._model = model
        self._stops = stops
        self._batch = batch
        self._prefixes = Prefixes(prefix_bytes)
        self._waiting: deque[tuple[Job, Future[Continuation]]] = deque()
        self._rows: list[_Row] = []
        self._lock = threading.Lock()
        self._is_at_work = False

    def submit(self, job: Job) -> "Future[Continuation]":
        """Queues a job; cancelling its future drops it."""
        future: Future[Continuation] = Future()
        with self._lock:
            self._waiting.append((job, future))
            if not self._is_at_work:
                self._is_at_work = True
                threading.Thread(target=self._work, name="s3gym local model").start()
        return future

    def _work(self) -> None:
        """The thread: prompts first, so that steps have many rows; ends when there is nothing to do."""
        with torch.inference_mode():
            while self._goes_on():
                joining = self._joining()
                if joining is None:
                    self._guarded(list(self._rows), self._step)
                else:
                    self._rows.append(joining)
                    self._guarded([joining], self._prefill)

    def _goes_on(self) -> bool:
        with self._lock:
            self._is_at_work = bool(self._waiting or self._rows)
            return self._is_at_work

    def _joining(self) -> _Row | None:
        """The next job, where there is one and a place for it."""
        with self._lock:
            if not self._waiting or len(self._rows) == self._batch:
                return None
            job, future = self._waiting.popleft()
        return _Row(job, future, torch.Generator().manual_seed(job.seed), time.perf_counter())

    def _guarded(self, rows: list[_Row], compute: Callable[[list[_Row]], None]) -> None:
        """Computes; what breaks there is what the jobs end with."""
        try:
            compute(rows)
        except torch.OutOfMemoryError as error:
            self._end(rows, MemoryError(str(error)))
        except Exception as error:  # noqa: BLE001 - the thread must serve on; who asked is told
            self._end(rows, error)
        self._end([row for row in rows if row.is_given_up()], TookTooLong())

    def _prefill(self, rows: list[_Row]) -> None:
        """Computes a prompt, but for the blocks that are known, and the first token after it."""
        (row,) = rows
        tokens, sequence = row.job.tokens, row.sequence
        keys = list(block_keys(tokens, BLOCK))
        for key in keys[: (len(tokens) - 1) // BLOCK]:  # the last position is always computed
            block = self._prefixes.find(key)
            if block is None:
                break
            sequence.append(block)
        self.reused_tokens += sequence.length
        while True:
            start = sequence.length
            stop = min(start + BLOCK, len(tokens))
            if stop == len(tokens) and row.job.choices:
                return self._choose(row)
            logits = self._forward([tokens[start:stop]], [list(range(start, stop))], [sequence])
            sequence.length = stop
            if stop == start + BLOCK:
                self._prefixes.keep(keys[start // BLOCK], sequence.block(start, stop))
            if stop == len(tokens):
                break
            if row.is_given_up():
                return
        self._take(row, logits[0])

    def _choose(self, row: _Row) -> None:
        """Computes the end of a prompt and all choices behind it; ends the row with the likeliest, or one drawn."""
        job, sequence, device = row.job, row.sequence, self._model.device
        tree, start, stop = tree_of(job.choices), row.sequence.length, len(job.tokens)
        output = self._model(
            input_ids=torch.tensor([[*job.tokens[start:], *tree.tokens]], device=device),
            position_ids=torch.tensor([[*range(start, stop), *(stop + depth for depth in tree.depths)]], device=device),
            attention_mask=mask(tree, start, stop).to(device),
            cache=Rows([sequence]),
            use_cache=True,
        )
        logits = output.logits[0, stop - start - 1 :].float().cpu()
        chosen = job.choices[self._drawn(likelihoods(tree, logits), row)]
        self._end([row], Continuation(list(chosen), True, len(chosen), time.perf_counter() - row.started))

    def _step(self, rows: list[_Row]) -> None:
        """Computes one more token of every row."""
        spare = self._batch - len(rows)
        last = [[row.new[-1]] for row in rows] + [[0]] * spare
        positions = [[row.sequence.length] for row in rows] + [[0]] * spare
        logits = self._forward(last, positions, [row.sequence for row in rows] + [None] * spare)
        for row, scores in zip(rows, logits, strict=False):
            row.sequence.length += 1
            self._take(row, scores)

    def _forward(
        self, tokens: list[list[int]], positions: list[list[int]], sequences: list[KeysAndValues | None]
    ) -> Tensor:
        """Logits [rows, vocabulary] after the last token of each row, in fp32 on the CPU."""
        device = self._model.device
        output = self._model(
            input_ids=torch.tensor(tokens, device=device),
            position_ids=torch.tensor(positions, device=device),
            cache=Rows(sequences),
            use_cache=True,
            logits_to_keep=1,
        )
        return cast(Tensor, output.logits[:, -1].float().cpu())

    def _take(self, row: _Row, logits: Tensor) -> None:
        """Chooses the next token; ends the row when it is one that ends an answer, or the last allowed."""
        token = self._drawn(logits, row)
        row.new.append(token)
        is_finished = token in self._stops
        if is_finished or len(row.new) == row.job.most_new:
            said = row.new[:-1] if is_finished else row.new
            self._end([row], Continuation(said, is_finished, len(row.new), time.perf_counter() - row.started))

    def _drawn(self, logits: Tensor, row: _Row) -> int:
        """The likeliest, or at a temperature above 0 one drawn."""
        if row.job.temperature == 0:
            return int(logits.argmax())
        chances = torch.softmax(logits.double() / row.job.temperature, dim=-1)
        return int(torch.multinomial(chances, 1, generator=row.generator))

    def _end(self, rows: list[_Row], outcome: Continuation | Exception) -> None:
        """Frees the places of those of ``rows`` that still have one, and says what came of their jobs."""
        for row in [row for row in rows if row in self._rows]:
            self._rows.remove(row)
            with suppress(InvalidStateError):  # cancelled
                if isinstance(outcome, Exception):
                    row.future.set_exception(outcome)
                else:
                    row.future.set_result(outcome)
