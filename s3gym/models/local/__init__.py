"""Language models in this process, through transformers: ``local:<folder, .gguf file, hub id or smollm2>?<options>``.

Options: ``batch`` (rows computed together, 8), ``dtype`` (``fp32`` or ``bf16``), ``cache`` (GiB for beginnings of
prompts that are kept, 2). Answers are greedy unless a temperature above 0 is set; then the request's seed draws them
from the whole distribution. On one machine the same request has the same answer, whoever is computed beside it and
whatever was kept; batch and dtype change its last digits and are part of every key. Only this package imports torch.
"""

import asyncio
import os
import threading
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from s3gym.models._failures import REMEDIES
from s3gym.models._thinking import strip_thinking
from s3gym.models.base import Completion, ModelError, Request
from s3gym.models.local.weights import Weights, context_length, device_type, find
from s3gym.records import CallFacts
from s3gym.registry import UnknownName
from s3gym.transcript import Message

# threads of torch that wait by spinning make it up to ten times slower where others want the same cores; this is read
# once, when torch is imported
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

PREFIX = "local:"
VERSION = 1
"""Raised when our way of computing an answer changes it; part of every key."""
MOST_ROWS = 256
THINKING = "<think>"
GIB = 2**30

_DTYPES = ("fp32", "bf16")
_engines: dict[Any, Any] = {}
_loading = threading.Lock()


class Options(NamedTuple):
    """How a local model is computed."""

    batch: int = 8
    """Rows of a step; fewer waste less when few episodes run, more are faster when many do."""
    dtype: Literal["fp32", "bf16"] = "fp32"
    cache: float = 2.0
    """GiB for blocks of earlier prompts; changes no answer."""


class LocalModel:
    """One model in this process; loaded by the first call."""

    endpoint = "local"
    is_free = False
    """So that its answers, which took minutes, are kept in the journal."""

    def __init__(self, model_id: str, name: str, options: Options, revision: str | None) -> None:
        self.model_id = model_id
        self.revision = revision
        self.options = options
        self._name = name

    @cached_property
    def _weights(self) -> Weights:
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

    def identity(self) -> dict[str, Any]:
        """The weights, how they are computed, and by what."""
        return {
            "local": VERSION,
            "weights": self._weights.digest,
            "revision": self.revision,
            "dtype": self.options.dtype,
            "batch": self.options.batch,
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
        from s3gym.models.local.engine import Job, TookTooLong

        engine = await asyncio.to_thread(self._engine)
        decoding, prompt = request.decoding, self._prompt(request.messages)
        tokens = cast(list[int], self._tokenizer(prompt, add_special_tokens=False).input_ids)
        room = self._context - len(tokens)
        if room < 1:
            told = f"the prompt has {len(tokens)} tokens, {self.model_id} reads {self._context} with the answer"
            raise ModelError("context_window", f"{told}; {REMEDIES['context_window']}")
        job = Job(
            tokens=tokens,
            most_new=min(decoding.max_output_tokens, room),
            temperature=decoding.temperature or 0.0,
            seed=request.seed,
            seconds=decoding.timeout_seconds,
        )
        try:
            continued = await asyncio.wrap_future(engine.submit(job))
        except TookTooLong:
            told = f"no answer within {decoding.timeout_seconds:g} s of computing"
            raise ModelError("timeout", f"{told}; {REMEDIES['timeout']}") from None
        except MemoryError as error:
            raise ModelError("server", f"{error}; lower batch, cache or max_output_tokens") from None
        facts = CallFacts(
            prompt_tokens=len(tokens),
            completion_tokens=continued.count,
            cost_usd=0.0,  # known: nobody bills it
            latency_seconds=continued.seconds,
            finish_reason="stop" if continued.is_finished else "length",
        )
        said = self._tokenizer.decode(continued.tokens, skip_special_tokens=True)
        if prompt.rstrip().endswith(THINKING):  # the template has opened the thought
            said = THINKING + said
        text, reasoning = strip_thinking(said)
        if not text.strip():
            if continued.is_finished:
                raise ModelError("empty_reply", "the answer has no text outside its thinking", paid=facts)
            told = "the output limit came before an answer; raise max_output_tokens"
            raise ModelError("truncated", told, paid=facts)
        return Completion(text=text, reasoning=reasoning, facts=facts)

    def _prompt(self, messages: tuple[Message, ...]) -> str:
        chat = self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return cast(str, chat)

    def _engine(self) -> Any:
        """The engine, shared by all models of the same weights and options."""
        from s3gym.models.local.engine import Engine
        from s3gym.models.local.loading import UnusableModel, load_model, stop_tokens

        key = (self._weights.digest, self.options)
        with _loading:
            if key not in _engines:
                try:
                    model = load_model(self._weights.folder(True), self.options.dtype, self._device)
                    stops = stop_tokens(model, self._tokenizer)
                    _engines[key] = Engine(model, stops, self.options.batch, int(self.options.cache * GIB))
                except UnusableModel as error:  # loading it again for every call would end the same way
                    _engines[key] = error
            if isinstance(_engines[key], UnusableModel):
                raise _engines[key]
            return _engines[key]


def load(model_id: str, base_url: str | None = None, revision: str | None = None) -> LocalModel:
    """The model of ``local:<name>?<options>``; ``check`` says whether it is there.

    Args:
        model_id: as above.
        base_url: must be None.
        revision: branch, tag or commit on the hub; for other weights a note.

    Raises:
        UnknownName: an option is not one of ``Options``, or a dtype not one we compute in.
        ValueError: a value is out of range, or there is a base_url.
    """
    if base_url is not None:
        raise ValueError("a local model has no base_url; leave it out, or name the model as the server's protocol does")
    name, _, query = model_id.removeprefix(PREFIX).partition("?")
    given: dict[str, Any] = {}
    for pair in filter(None, query.split("&")):
        option, _, value = pair.partition("=")
        if option not in Options._fields:
            raise UnknownName("option of a local model", option, Options._fields)
        given[option] = _read(option, value)
    return LocalModel(model_id, name, Options(**given), revision)


def _read(option: str, value: str) -> int | float | str:
    if option == "dtype":
        if value not in _DTYPES:
            raise UnknownName("dtype", value, _DTYPES)
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
