"""Hosted models through litellm: any name it knows, with an optional endpoint of one's own.

One call, one HTTP request, one answer or one typed error: no hidden retries, no cache, no key in any text.
Keys are taken from the environment by litellm and are never read here.
"""

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from s3gym.errors import Explained
from s3gym.models._failures import REMEDIES, failure_of
from s3gym.models._thinking import strip_thinking
from s3gym.models.base import Completion, ModelError, Request, estimate_tokens
from s3gym.records import CallFacts
from s3gym.registry import UnknownName

MOST_TOKENS = 10**9
"""A server that reports more for one call is not believed."""

_UNSUPPORTED = re.compile(r"unsupported|not support|n't support", re.IGNORECASE)
_log = logging.getLogger(__name__)


class MissingKey(Explained):
    """A provider's key is not in the environment."""


class ApiModel:
    """One model behind an API."""

    is_free = False

    def __init__(self, model_id: str, base_url: str | None = None, revision: str | None = None) -> None:
        self.model_id = model_id
        self.revision = revision
        self._base_url = base_url
        self._refused: set[str] = set()  # parameters this model does not take; learnt from its first answer

    def identity(self) -> dict[str, Any]:
        """Name, revision and endpoint; the endpoint without user, password and query."""
        return {"model": self.model_id, "revision": self.revision, "base_url": _public(self._base_url)}

    def check(self) -> None:
        """Whether litellm knows a provider for the name."""
        litellm = _litellm()
        try:
            if not litellm.get_llm_provider(self.model_id, api_base=self._base_url)[0]:
                raise ValueError("no name after the provider")
        except Exception:  # litellm raises a bad request of its own, whose text speaks of completions
            provider, slash, _ = self.model_id.partition("/")
            if slash and provider not in litellm.provider_list:
                raise UnknownName("model provider", provider, litellm.provider_list) from None
            raise UnknownName("model", self.model_id, litellm.model_cost) from None
        lacking = litellm.validate_environment(self.model_id)["missing_keys"]
        if len(lacking) == 1 and lacking[0].endswith("_API_KEY"):  # more than one: there may be another way in
            raise MissingKey(f"model {self.model_id!r} needs a key: set the environment variable {lacking[0]}")

    def count_tokens(self, text: str) -> int:
        """The stated estimate: the same offline and everywhere."""
        return estimate_tokens(text)

    async def complete(self, request: Request) -> Completion:
        """One answer, within ``timeout_seconds`` of wall clock, or ModelError."""
        litellm = _litellm()
        seconds = request.decoding.timeout_seconds
        started = perf_counter()
        try:
            # litellm's own timeout is for one read: a server that trickles would never meet it
            response = await asyncio.wait_for(self._send(litellm, request), seconds)
        except TimeoutError:
            raise ModelError("timeout", f"no answer within {seconds:g} s; {REMEDIES['timeout']}") from None
        except Exception as error:
            raise failure_of(error) from None
        return _read(response, perf_counter() - started)

    async def _send(self, litellm: Any, request: Request) -> Any:
        while True:
            arguments = self._arguments(request)
            try:
                return await litellm.acompletion(**arguments)
            except litellm.BadRequestError as error:
                # not litellm's drop_params: with it, a 422 is asked twice and then lost
                refused = _refused_parameter(str(error), arguments)
                if refused is None:
                    raise
                if refused == "temperature" and refused not in self._refused:
                    _log.warning("%s takes no temperature of ours; it uses its own", self.model_id)
                self._refused.add(refused)

    def _arguments(self, request: Request) -> dict[str, Any]:
        decoding = request.decoding
        limit = "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens"
        arguments: dict[str, Any] = {
            "model": self.model_id,
            "messages": list(request.messages),
            "timeout": decoding.timeout_seconds,
            "max_retries": 0,
            "num_retries": 0,
            limit: decoding.max_output_tokens,
        }
        if self._base_url is not None:
            arguments["base_url"] = self._base_url
        if decoding.temperature is not None and "temperature" not in self._refused:
            arguments["temperature"] = decoding.temperature
        return arguments


def load(model_id: str, base_url: str | None = None, revision: str | None = None) -> ApiModel:
    """The model litellm calls ``model_id`` (``openai/gpt-4.1``, ``hosted_vllm/...``); ``check`` says if it knows it.

    Args:
        model_id: litellm's name.
        base_url: an endpoint of one's own.
        revision: a note that tells versions behind one name apart.

    Raises:
        ValueError: ``base_url`` is not an http address.
    """
    if base_url is not None and _public(base_url) is None:
        raise ValueError("base_url is no address like http://localhost:8000/v1")
    return ApiModel(model_id, base_url, revision)


@cache
def _litellm() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it fetches a price list
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)  # its logs may quote a request
    return litellm


def _public(url: str | None) -> str | None:
    """An address without credentials and query; None when it is not an http address."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"


def _refused_parameter(said: str, arguments: Mapping[str, Any]) -> str | None:
    """The parameter that the model, or litellm on its behalf, does not take; None for other failures."""
    if "max_tokens" in arguments and "'max_tokens'" in said and "max_completion_tokens" in said:
        return "max_tokens"
    if "temperature" in arguments and "temperature" in said and _UNSUPPORTED.search(said):
        return "temperature"
    return None


def _read(response: Any, latency_seconds: float) -> Completion:
    """The completion in a response; what is not an answer is an error."""
    if not response.choices:
        raise ModelError("malformed_reply", "the provider's answer has no choices")
    message, finish_reason = response.choices[0].message, response.choices[0].finish_reason
    text, inline = strip_thinking(_clean(message.content) or "")
    separate = _clean(getattr(message, "reasoning_content", None))
    reasoning = "\n".join(filter(None, (separate, inline))) or None
    facts = _facts(response, finish_reason, latency_seconds)
    if finish_reason == "content_filter" or getattr(message, "refusal", None):
        told = "the provider withheld the answer, or the model refused to answer"
        raise ModelError("content_filter", told, paid=facts)
    if not text.strip():
        raise ModelError(*_why_no_text(message, finish_reason), paid=facts)
    return Completion(text=text, reasoning=reasoning, facts=facts)


def _why_no_text(message: Any, finish_reason: str | None) -> tuple[str, str]:
    """Kind and message."""
    if finish_reason == "length":
        return "truncated", "the output limit came before an answer; raise max_output_tokens"
    if getattr(message, "tool_calls", None) or getattr(message, "function_call", None):
        return "malformed_reply", "a tool call in answer to a prompt that offers no tool"
    return "empty_reply", "the answer has no text outside its thinking"


def _facts(response: Any, finish_reason: str | None, latency_seconds: float) -> CallFacts:
    usage = getattr(response, "usage", None)
    prompt, completion = (_count(getattr(usage, name, None)) for name in ("prompt_tokens", "completion_tokens"))
    if not prompt and not completion:  # litellm fills in zeros where a server reports nothing
        return CallFacts(latency_seconds=latency_seconds, finish_reason=finish_reason)
    cost = response._hidden_params.get("response_cost")
    return CallFacts(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=_count(getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)),
        reasoning_tokens=_count(getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)),
        cost_usd=None if prompt is None or completion is None else cost,
        latency_seconds=latency_seconds,
        finish_reason=finish_reason,
    )


def _count(reported: Any) -> int | None:
    """A number of tokens a server reported; None where it cannot be one."""
    return reported if isinstance(reported, int) and 0 <= reported <= MOST_TOKENS else None


def _clean(text: str | None) -> str | None:
    """Text that every store can hold: half a surrogate pair, which JSON lets through, becomes ``?``."""
    return None if text is None else text.encode("utf-8", "replace").decode()
