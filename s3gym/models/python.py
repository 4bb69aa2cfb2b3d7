"""The user's own agent: ``python:<module>:<callable>``, chat messages in, text out, sync or async.

The module is imported as ``python`` itself would, the working directory first. An agent is asked, journaled, limited
and counted like a hosted model; here is only how it is found, called, and what its answer must be. What it raises is
the row of a failed call. A sync agent runs in a thread of its own, so it may be called by several at a time.
"""

import asyncio
import importlib
import inspect
import math
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Thread
from time import perf_counter
from types import ModuleType
from typing import Any

from s3gym.errors import Explained
from s3gym.models._failures import _kind_of_status, failure_of, short
from s3gym.models._thinking import strip_thinking
from s3gym.models.base import Completion, ModelError, Request, estimate_tokens, writable
from s3gym.models.prices import MOST_TOKENS, Prices, cost_of
from s3gym.records import CallFacts
from s3gym.registry import UnknownName

PREFIX = "python:"
KEYWORDS = ("seed", "temperature", "max_output_tokens", "purpose")
"""Keyword arguments an agent gets where its signature takes them."""
COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens")
FIELDS = ("text", "reasoning", *COUNTS, "cost_usd")
"""What a mapping that an agent returns may hold; all but ``text`` may be left out or None."""
FAULT = "bad_request"
"""Error kind of the agent's own faults: the same request would fail again."""
_HASH = "__s3gym_source__"
"""Attribute of an agent's module: the hash of its file when it was first asked for."""


class AgentError(Explained, ValueError):
    """The name leads to no agent; the message says what is there and what to do."""


class AgentModel:
    """One callable as a model."""

    is_free = False

    def __init__(
        self,
        model_id: str,
        module: ModuleType,
        name: str,
        revision: str | None = None,
        prices: Prices | None = None,
    ) -> None:
        """Takes the callable ``name`` of ``module``.

        Raises:
            UnknownName, AgentError: it is not there, or cannot be called with messages.
        """
        self.model_id = self.endpoint = model_id  # only the agent knows whom it asks
        self.revision = revision
        self._prices = prices
        self._agent = _callable(module, name)
        self.keywords = _keywords(self._agent, model_id)
        """Those of ``KEYWORDS`` that the agent takes."""
        self._is_async = any(map(inspect.iscoroutinefunction, (self._agent, type(self._agent).__call__)))
        self._file: str | None = getattr(module, "__file__", None)
        version = getattr(module, "__version__", None)
        self._identity = {
            "agent": f"{module.__name__}:{name}",
            "version": None if version is None else str(version),
            "source": _source_hash(module),
            "revision": revision,
        }

    def identity(self) -> dict[str, Any]:
        """Module, callable, ``__version__`` and a hash of the module's file as it was when it was imported.

        An agent under development changes often and its version seldom; with the file in the key, what an edited
        agent would answer is never taken from the journal of the old one. What the module imports is not covered.
        """
        return dict(self._identity)

    def check(self) -> None:
        """Nothing to check: all of it is seen when the agent is named."""

    def count_tokens(self, text: str) -> int:
        """The stated estimate."""
        return estimate_tokens(text)

    async def complete(self, request: Request) -> Completion:
        """One answer, within ``timeout_seconds`` of wall clock, or ModelError.

        What is late is left behind, a thread to run on alone: its answer is nobody's.
        """
        seconds = request.decoding.timeout_seconds
        started = perf_counter()
        call = asyncio.ensure_future(self._call(request))
        call.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, also when it comes late
        try:
            await asyncio.wait({call}, timeout=seconds)
        finally:
            call.cancel()
        if not call.done():
            raise ModelError("timeout", f"{self.model_id} gave no answer within {seconds:g} s; raise timeout_seconds")
        if call.cancelled():
            raise self._fault("cancelled itself; catch asyncio.CancelledError in it")
        try:
            answer = call.result()
        except Exception as error:  # noqa: BLE001 - it is somebody else's code
            raise self._failure(error) from None
        return self._read(answer, request, perf_counter() - started)

    async def _call(self, request: Request) -> Any:
        messages = [dict(message) for message in request.messages]
        offered = {
            "seed": request.seed,
            "temperature": request.decoding.temperature,
            "max_output_tokens": request.decoding.max_output_tokens,
            "purpose": request.purpose,
        }
        call = partial(self._agent, messages, **{name: offered[name] for name in self.keywords})
        try:
            answer = call() if self._is_async else await _in_thread(call)
            return await answer if inspect.isawaitable(answer) else answer
        except SystemExit as error:  # it would end the run
            raise RuntimeError(f"sys.exit({error.code!r})") from None

    def _read(self, answer: Any, request: Request, latency_seconds: float) -> Completion:
        """The completion in what the agent returned; what is not an answer is an error."""
        fields: Any = {"text": answer} if answer is None or isinstance(answer, str) else answer
        if not isinstance(fields, Mapping):
            raise self._fault(f"returned a {type(answer).__name__}; return text, or a mapping of {', '.join(FIELDS)}")
        wrong = _wrong_field(fields)
        if wrong is not None:
            raise self._fault(f"returned a mapping with {wrong}")
        wanted = ("seed",) if request.decoding.temperature is None else ("seed", "temperature")
        facts = CallFacts(
            **{name: fields.get(name) for name in (*COUNTS, "cost_usd")},
            latency_seconds=latency_seconds,
            dropped_parameters=", ".join(name for name in wanted if name not in self.keywords) or None,
        )
        if facts.cost_usd is None:
            facts = replace(facts, cost_usd=cost_of(facts, self._prices))
        text, inline = strip_thinking(writable(fields.get("text") or ""))
        if not text.strip():
            raise ModelError("empty_reply", f"{self.model_id} returned no text outside its thinking", paid=facts)
        apart = writable(fields.get("reasoning") or "")
        return Completion(text=text, reasoning="\n".join(filter(None, (apart, inline))) or None, facts=facts)

    def _failure(self, error: Exception) -> ModelError:
        """What the agent raised, as one of ours: a ModelError as it is, trouble of a network by its kind."""
        if isinstance(error, ModelError):
            return ModelError(error.kind, short(error.message), error.retry_after_seconds, error.facts)
        told = short(f"{self.model_id} raised {type(error).__name__}{self._where(error)}: {error}")
        for seen in (error, _because_of(error)):  # clients raise their own classes, as themselves or as a cause
            known = failure_of(seen)
            if known.kind != "malformed_reply":  # its word for what it does not know
                return ModelError(known.kind, told, known.retry_after_seconds)
        status = _http_status(error)
        return ModelError(_kind_of_status(status) if status else FAULT, told, known.retry_after_seconds)

    def _where(self, error: Exception) -> str:
        """The innermost line of the agent's own file."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == self._file]
        return f" ({Path(self._file).name}, line {lines[-1]})" if self._file and lines else ""

    def _fault(self, told: str) -> ModelError:
        return ModelError(FAULT, short(f"{self.model_id} {told}"))


def load(model_id: str, revision: str | None = None, prices: Prices | None = None) -> AgentModel:
    """The agent of ``python:<module>:<callable>``, imported.

    Args:
        model_id: with the prefix.
        revision: a note that tells versions apart where neither ``__version__`` nor the module's file does.
        prices: what the config says tokens cost, for an agent that tells tokens and no cost.

    Raises:
        UnknownName: no such module, or nothing of that name in it; the message gives the nearest names.
        AgentError: it cannot be imported, or is nothing that can be called with messages.
    """
    module, _, name = model_id.removeprefix(PREFIX).partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise AgentError(
            f"{model_id!r} names no agent: expected python:<module>:<callable>, such as python:my_agent:answer "
            "for the function answer in my_agent.py"
        )
    return AgentModel(model_id, _import(module), name, revision, prices)


def _import(name: str) -> ModuleType:
    with _working_directory_first():
        importlib.invalidate_caches()  # the file may be younger than this process
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing = error.name or name
            if f"{name}.".startswith(f"{missing}."):
                here = [found.name for found in pkgutil.iter_modules([os.getcwd()])]
                raise UnknownName(f"module in {os.getcwd()} or installed:", name, here) from None
            raise AgentError(f"module {name!r} imports {missing!r}, which is not there; install it") from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is somebody else's code
            told = short(f"{type(error).__name__}: {error}")
            raise AgentError(f"module {name!r} cannot be imported: {told}; try `python -c 'import {name}'`") from None


@contextmanager
def _working_directory_first() -> Iterator[None]:
    """As when ``python`` runs a file there; afterwards last, so that no library gives way to a file of its name."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def _callable(module: ModuleType, name: str) -> Callable[..., Any]:
    where = getattr(module, "__file__", None) or f"the built-in module {module.__name__}"
    if not hasattr(module, name):
        there = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UnknownName(f"callable in {where}:", name, there)
    found = getattr(module, name)
    if inspect.isclass(found):
        raise AgentError(f"{name} in {where} is a class: make one there, such as agent = {name}(), and name that")
    if not callable(found):
        raise AgentError(f"{name} in {where} is a {type(found).__name__}, expected a function of messages")
    agent: Callable[..., Any] = found
    return agent


def _keywords(agent: Callable[..., Any], model_id: str) -> tuple[str, ...]:
    """Which of ``KEYWORDS`` the signature takes beside the messages."""
    try:
        signature = inspect.signature(agent)
    except (TypeError, ValueError):  # some callables written in C have none
        return ()
    try:
        taken = tuple(name for name in KEYWORDS if _binds(signature, name))
        signature.bind([], **dict.fromkeys(taken))
    except TypeError as error:
        raise AgentError(
            f"{model_id}{signature} cannot be called with a list of messages: {error}; "
            f"beside it only these are passed, by keyword: {', '.join(KEYWORDS)}"
        ) from None
    return taken


def _binds(signature: inspect.Signature, name: str) -> bool:
    with suppress(TypeError):
        signature.bind_partial([], **{name: None})
        return True
    return False


async def _in_thread(work: Callable[[], Any]) -> Any:
    """What ``work`` returns or raises.

    Unlike in the loop's own pool, a thread that hangs takes no place from others and is not waited for at the end.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, Exception | None]] = loop.create_future()

    def tell(value: Any, error: Exception | None) -> None:
        if not ended.done():  # else nobody waits any more
            ended.set_result((value, error))

    def run() -> None:
        value, error = None, None
        try:
            value = work()
        except Exception as raised:  # noqa: BLE001 - it is somebody else's code
            error = raised
        except BaseException as raised:  # such as an exit: it would end the run
            error = RuntimeError(repr(raised))
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(tell, value, error)

    Thread(target=run, name="s3gym agent", daemon=True).start()
    value, error = await ended
    if error is not None:
        raise error
    return value


def _wrong_field(fields: Mapping[Any, Any]) -> str | None:
    """What of an agent's mapping is not as it should be; None when all is well."""
    for name, value in fields.items():
        if name not in FIELDS:
            return f"{name!r}; expected {', '.join(FIELDS)}"
        if name in COUNTS:
            is_right, expected = _is_count(value), f"a whole number from 0 to {MOST_TOKENS}"
        elif name == "cost_usd":
            is_right, expected = _is_cost(value), "a number of dollars from 0"
        else:
            is_right, expected = isinstance(value, str), "text"
        if value is not None and not is_right:
            return f"a {name} of type {type(value).__name__} that is not as expected: {expected}, or None"
    if (fields.get("cached_tokens") or 0) > (fields.get("prompt_tokens") or 0):
        return "more cached_tokens than prompt_tokens, of which they are a part"
    return None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST_TOKENS


def _is_cost(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _http_status(error: Exception) -> int | None:
    """The status of a failed request, wherever its client keeps it; None where there is none."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and status >= 400:
                return status
    return None


def _because_of(error: Exception) -> RuntimeError:
    outer = RuntimeError(str(error))
    outer.__cause__ = error
    return outer


def _source_hash(module: ModuleType) -> str | None:
    """SHA-256 of the module's file; None where there is none, as for what is built in."""
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    now = sha256(Path(file).read_bytes()).hexdigest()
    if vars(module).setdefault(_HASH, now) != now:  # the old code would answer under the new hash
        raise AgentError(f"{file} was changed after this process had imported it; start a new process")
    return now
