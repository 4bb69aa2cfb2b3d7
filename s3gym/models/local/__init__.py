"""Language models in this process, through transformers: ``local:<name>?<options>``.

A name is a folder, a .gguf file, a hub id, ``smollm2`` or ``tiny``; see ``weights``. Options: ``batch`` (rows computed
together, 8), ``dtype`` (``fp32`` or ``bf16``), ``cache`` (GiB for beginnings of prompts that are kept, 2), ``answers``
(``free``: it writes them; ``legal``, which ``tiny`` does unless told otherwise: a step is answered by that action of
all the game's reader names in which the answer is likeliest to begin, without a self-score).
Answers are greedy unless a temperature above 0 is set; then the request's seed draws them from the whole distribution.
On one machine the same request has the same answer, whoever is computed beside it and whatever was kept; batch and
dtype change its last digits and are part of every key. Only this package imports torch.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from s3gym.config import TrainingSettings
from s3gym.models._failures import REMEDIES
from s3gym.models._links import NOTHING
from s3gym.models._thinking import OPENING, strip_thinking
from s3gym.models.base import (
    TRUNCATED,
    Change,
    Completion,
    Example,
    Model,
    ModelError,
    Request,
    TrainingFailed,
    Weights,
)
from s3gym.models.local.turns import Turns
from s3gym.models.local.weights import (
    HOW_TO_INSTALL,
    SMOLLM2,
    SMOLLM2_ORIGIN,
    TINY,
    Found,
    context_length,
    device_type,
    find,
    need,
)
from s3gym.models.scripted import UNKNOWN
from s3gym.records import CallFacts
from s3gym.registry import UnknownName
from s3gym.transcript import CURRENT_CLOSE, CURRENT_OPEN, NO_SCORE, Message, answer_line, between

if TYPE_CHECKING:
    from s3gym.models.local.engine import Continuation

# threads of torch that wait by spinning make it up to ten times slower where others want the same cores; this is read
# once, when torch is imported
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# without it a GPU adds up gradients in an order that changes; read once, by the first multiplication there
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

PREFIX = "local:"
VERSION = 1
"""Raised when our way of computing an answer changes it; part of every key."""
TRAINING_VERSION = 1
"""Raised when our way of training, or of finding the tokens of an answer, changes what it makes."""
MOST_ROWS = 256
MOST_READ = 32
"""Tokens of an answer that is chosen among others; of those that are equal so far it is the first."""
ENDING = f" Score: {NO_SCORE}"
"""What is the same in all answers that are chosen."""
UNTOLD = {"judge": UNKNOWN, "remember": NOTHING}
"""What the tiny model says where it would write random bytes."""
GIB = 2**30

_WORDS = {"dtype": ("fp32", "bf16"), "answers": ("free", "legal")}
_engines: dict[Any, Any] = {}
_loading = threading.Lock()
_trained_turns = Turns()
_trainer = ThreadPoolExecutor(1, "s3gym training")
"""Trains one at a time."""


class Options(NamedTuple):
    """How a local model is computed."""

    batch: int = 8
    """Rows of a step; fewer waste less when few episodes run, more are faster when many do."""
    dtype: Literal["fp32", "bf16"] = "fp32"
    cache: float = 2.0
    """GiB for blocks of earlier prompts; changes no answer."""
    answers: Literal["free", "legal"] = "free"
    """Whether a step is answered freely or by the likeliest of the game's actions."""


class LocalModel:
    """One model in this process; loaded by the first call."""

    endpoint = "local"
    is_free = False
    """So that its answers, which took minutes, are kept in the journal."""
    is_only_adapted = False

    def __init__(self, model_id: str, name: str, options: Options, revision: str | None) -> None:
        self.model_id = model_id
        self.revision = revision
        self.options = options
        self._name = name
        self._trained: Weights | None = None
        """In the place of those it came with."""
        self._beginnings: dict[str, tuple[int, ...]] = {}

    @cached_property
    def _weights(self) -> Found:
        return find(self._name, self.revision)

    @cached_property
    def _device(self) -> str:
        return device_type()

    @cached_property
    def _folder(self) -> Path:
        return self._weights.folder(False)

    @cached_property
    def _tokenizer(self) -> Any:
        from s3gym.models.local.loading import load_tokenizer

        return load_tokenizer(self._folder)

    @cached_property
    def _context(self) -> int:
        return context_length(self._folder)

    @cached_property
    def _stops(self) -> frozenset[int]:
        from s3gym.models.local.loading import stop_tokens

        return stop_tokens(self._folder, self._tokenizer)

    def identity(self) -> dict[str, Any]:
        """The weights, how they are computed, and by what."""
        return {
            **({"trained": self._trained.digest} if self._trained else {}),
            "local": VERSION,
            "weights": self._weights.digest,
            "revision": self.revision,
            "dtype": self.options.dtype,
            "batch": self.options.batch,
            "answers": self.options.answers,
            "device": self._device,
            "torch": version("torch").partition("+")[0],
            "transformers": version("transformers"),
        }

    def check(self) -> None:
        """Whether the weights are there, or the hub has them, and make a chat model; converts a GGUF file."""
        _ = self._tokenizer, self._context

    def count_tokens(self, text: str) -> int:
        """The model's own tokens."""
        return len(self._tokenizer(text, add_special_tokens=False).input_ids)

    async def complete(self, request: Request) -> Completion:
        """One answer, or ModelError: the prompt fills the context, the time is up, or nothing was said."""
        if self._name == TINY and request.purpose in UNTOLD:
            return Completion(text=UNTOLD[request.purpose])
        actions = {self._beginning(action): action for action in reversed(self._actions(request))}
        prompt = self._prompt(request.messages)
        tokens = cast(list[int], self._tokenizer(prompt, add_special_tokens=False).input_ids)
        choices = tuple(reversed(actions))
        room = self._context - len(tokens) - max(map(len, choices), default=0)
        if room < 1:
            told = f"the prompt has {len(tokens)} tokens, {self.model_id} reads {self._context} with the answer"
            raise ModelError("context_window", f"{told}; {REMEDIES['context_window']}")
        continued = await self._continued(request, tokens, room, choices)
        facts = CallFacts(
            prompt_tokens=len(tokens),
            completion_tokens=continued.count,
            cost_usd=0.0,  # known: nobody bills it
            latency_seconds=continued.seconds,
            finish_reason="stop" if continued.is_finished else TRUNCATED,
        )
        if choices:
            text = answer_line(actions[tuple(continued.tokens)], None)
            return Completion(text=text, facts=replace(facts, completion_tokens=self.count_tokens(text)))
        said = self._tokenizer.decode(continued.tokens, skip_special_tokens=True)
        if prompt.rstrip().endswith(OPENING):  # the template has opened the thought
            said = OPENING + said
        text, reasoning = strip_thinking(said)
        if not text.strip():
            if continued.is_finished:
                raise ModelError("empty_reply", "the answer has no text outside its thinking", paid=facts)
            told = "the output limit came before an answer; raise max_output_tokens"
            raise ModelError("truncated", told, paid=facts)
        return Completion(text=text, reasoning=reasoning, facts=facts)

    def _actions(self, request: Request) -> list[str]:
        """What to choose among, in an order of its own; nothing where an answer is written."""
        if self.options.answers == "free" or request.purpose != "act":
            return []
        state = between(request.messages[-1]["content"], CURRENT_OPEN, CURRENT_CLOSE) or ""
        return sorted(set(request.scene.reader.actions(state)))

    def _beginning(self, action: str) -> tuple[int, ...]:
        """An answer up to the comma behind its action, which tells it from longer ones, and no more than tells most."""
        if action not in self._beginnings:
            line = answer_line(action, None).removesuffix(ENDING)
            self._beginnings[action] = tuple(self._tokenizer(line, add_special_tokens=False).input_ids)[:MOST_READ]
        return self._beginnings[action]

    async def _continued(
        self, request: Request, tokens: list[int], room: int, choices: tuple[tuple[int, ...], ...]
    ) -> "Continuation":
        from s3gym.models.local.engine import Job, TookTooLong

        engine, decoding = await asyncio.to_thread(self._engine), request.decoding
        job = Job(
            tokens=tokens,
            most_new=min(decoding.max_output_tokens, room),
            temperature=decoding.temperature or 0.0,
            seed=request.seed,
            seconds=decoding.timeout_seconds,
            choices=choices,
        )
        try:
            return await asyncio.wrap_future(engine.submit(job))
        except TookTooLong:
            told = f"no answer within {decoding.timeout_seconds:g} s of computing"
            raise ModelError("timeout", f"{told}; {REMEDIES['timeout']}") from None
        except MemoryError as error:
            raise ModelError("server", f"{error}; lower batch, cache or max_output_tokens") from None

    def _prompt(self, messages: tuple[Message, ...]) -> str:
        chat = self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return cast(str, chat)

    def training_identity(self) -> dict[str, Any]:
        """The weights, and what trains them."""
        need("peft", f"training needs peft: {HOW_TO_INSTALL}")
        return {
            "training": TRAINING_VERSION,
            **{name: value for name, value in self.identity().items() if name not in ("local", "batch", "answers")},
            "peft": version("peft"),
        }

    def example(self, messages: Sequence[Message], reply: str, reasoning: str | None = None) -> Example:
        """The tokens of a call; see ``examples.example_of``."""
        from s3gym.models.local.examples import example_of

        prompt = self._prompt(tuple(messages))
        return example_of(self._tokenizer, self._stops, messages, prompt, reply, reasoning)

    async def train(
        self,
        examples: Sequence[Example],
        settings: TrainingSettings,
        *,
        start: Weights | None,
        seed: int,
        folder: Path,
        card: Mapping[str, str],
        on_update: Callable[[Change], None],
    ) -> str:
        """Makes new weights in a thread, after other trainings of this process; ends early when cancelled."""
        loop, cancelled = asyncio.get_running_loop(), threading.Event()

        def tell(change: Change) -> None:
            loop.call_soon_threadsafe(on_update, change)

        def work() -> str:
            from s3gym.models.local.adapters import Base
            from s3gym.models.local.training import Task, train

            self._check_unchanged()
            origin = SMOLLM2_ORIGIN if self._name == SMOLLM2 else self._name
            task = Task(
                base=Base(self._weights.folder(True), self._weights.digest, origin, self._weights.commit),
                examples=examples,
                settings=settings,
                start=start,
                seed=seed,
                dtype=self.options.dtype,
                device=self._device,
                folder=folder,
                card=card,
            )
            return train(task, self._tokenizer, tell, cancelled.is_set)

        try:
            return await loop.run_in_executor(_trainer, work)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def _check_unchanged(self) -> None:
        found = find(self._name, self.revision).digest
        if found != self._weights.digest:
            raise TrainingFailed(
                f"the weights of {self.model_id} have changed since this run began: they were {self._weights.digest} "
                f"and are {found}; restore them, or start the run again to measure the new ones from the beginning"
            )

    @asynccontextmanager
    async def with_weights(self, weights: Weights) -> AsyncIterator[Model]:
        """The model with other weights; those who want still others wait, for one such model is held in memory."""
        trained = copy(self)
        trained._trained = weights
        async with _trained_turns.hold((self._weights.digest, self.options), weights.digest):
            yield trained

    def _engine(self) -> Any:
        """The engine, shared by all models of the same weights and options."""
        from s3gym.models.local.loading import UnusableModel

        place = (self._weights.digest, self.options)
        key = (*place, self._trained.digest if self._trained else None)
        with _loading:
            if key not in _engines:
                if self._trained:
                    for other in [other for other in _engines if other[:2] == place and other[2] is not None]:
                        del _engines[other]
                try:
                    _engines[key] = self._loaded()
                except UnusableModel as error:  # loading it again for every call would end the same way
                    _engines[key] = error
            if isinstance(_engines[key], UnusableModel):
                raise _engines[key]
            return _engines[key]

    def _loaded(self) -> Any:
        """A new engine, with weights of its own: those of the untrained model are never touched."""
        from s3gym.models.local.engine import Engine
        from s3gym.models.local.loading import BUILDING, load_model

        folder, adapt, trained = self._weights.folder(True), None, self._trained
        if trained is not None:
            from s3gym.models.local import adapters

            adapters.check(trained)
            if adapters.is_adapter(trained.folder):
                base = adapters.Base(folder, self._weights.digest, self._name, self._weights.commit)
                adapt = partial(adapters.applied, weights=trained, base=base)
            else:
                folder = trained.folder
        with BUILDING:
            model = load_model(folder, self.options.dtype, self._device, adapt)
        return Engine(model, self._stops, self.options.batch, int(self.options.cache * GIB))


def load(model_id: str, base_url: str | None = None, revision: str | None = None) -> LocalModel:
    """The model of ``local:<name>?<options>``; ``check`` says whether it is there.

    Args:
        model_id: as above.
        base_url: must be None.
        revision: branch, tag or commit on the hub; for other weights a note.

    Raises:
        UnknownName: an option is not one of ``Options``, or its value not one of its words.
        ValueError: a value is out of range, or there is a base_url.
    """
    if base_url is not None:
        raise ValueError("a local model has no base_url; leave it out, or name the model as the server's protocol does")
    name, _, query = model_id.removeprefix(PREFIX).partition("?")
    given: dict[str, Any] = {"answers": "legal"} if name == TINY else {}
    for pair in filter(None, query.split("&")):
        option, _, value = pair.partition("=")
        if option not in Options._fields:
            raise UnknownName("option of a local model", option, Options._fields)
        given[option] = _read(option, value)
    return LocalModel(model_id, name, Options(**given), revision)


def _read(option: str, value: str) -> int | float | str:
    if option in _WORDS:
        if value not in _WORDS[option]:
            raise UnknownName(option, value, _WORDS[option])
        return value
    if option == "batch":
        if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= MOST_ROWS:
            raise ValueError(f"batch={value}: expected a whole number from 1 to {MOST_ROWS}")
        return int(value)
    try:
        size = float(value)
    except ValueError:
        size = -1.0
    if not 0 <= size < float("inf"):
        raise ValueError(f"cache={value}: expected GiB, such as 2 or 0.5; 0 keeps nothing")
    return size
