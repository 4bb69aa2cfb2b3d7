"""Hosted models through litellm: any name it knows, with an optional endpoint of one's own.

One call, one HTTP request, one answer or one typed error: no hidden retries, no cache, no key in any text.
Keys are taken from the environment by litellm and are never read here.
"""

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from time import monotonic, perf_counter
from typing import Any
from urllib.parse import urlsplit

from s3gym.errors import Explained
from s3gym.models._failures import REMEDIES, failure_of, short
from s3gym.models._litellm import litellm_module
from s3gym.models._thinking import strip_thinking
from s3gym.models.base import TRUNCATED, Completion, ModelError, Request, estimate_tokens, writable
from s3gym.models.prices import MOST_TOKENS, Prices, cost_of, prices_of
from s3gym.records import CallFacts
from s3gym.registry import UnknownName
from s3gym.transcript import EXPERIENCE_CLOSE

SPACING_SECONDS = 0.006
"""Between the beginnings of two calls: about what litellm takes of a core for one."""
SEED_LIMIT = 2**31
"""Seeds are sent modulo this: some providers take 32 bits, signed."""

_MARKING_PROVIDERS = ("anthropic", "azure_ai", "bedrock", "openrouter", "vertex_ai")
_CACHE_MARK = {"type": "ephemeral"}
_REFUSALS = (
    # "Unknown parameter: 'seed'", "Unrecognized request argument supplied: seed", "not support parameters: ['seed']"
    r"(?:unsupported|unrecognized|unknown|unexpected|(?:not|n't) support(?:ed)?)"
    r"(?: (?:request|value|parameter|argument|keyword|field|name|property)s?| supplied)*:? *\[?"
    r"(?:[\"'`]?\w+[\"'`]?, ?)*[\"'`]?{name}\b",
    # "seed: Extra inputs are not permitted", "invalid temperature: only 1 is allowed", "`seed` is not supported"
    r"\b{name}\b[\"'`]?[^.,;\n\"'`]{{0,40}}?"
    r"(?:unsupported|unrecognized|unknown|unexpected|deprecated|(?:not|n't) (?:support|permitted|allowed|accepted)"
    r"|only\b[^;\n]{{0,20}}\b(?:allowed|supported))",
    # {"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}
    r"[\"']{name}[\"']\], ?[\"']msg[\"']: ?[\"']extra inputs are not permitted",
)
"""How providers and litellm say that they do not take a parameter; that they speak of it otherwise is no refusal."""
_log = logging.getLogger(__name__)


class MissingKey(Explained):
    """A provider's key is not in the environment."""


class UnnamedServer(Explained):
    """The environment names a server that the request does not."""


class _Departures:
    """Lets calls begin one after the other, ``SPACING_SECONDS`` apart, whatever their endpoint.

    Making a request takes litellm milliseconds of one core. Of many that begin at once none goes out before nearly
    all are made; their answers come back together, and so on: each call would take as long as all of them to make.
    """

    def __init__(self) -> None:
        self._next_at = 0.0

    async def wait(self) -> None:
        """Until it is this call's turn."""
        now = monotonic()
        at = max(now, self._next_at)
        self._next_at = at + SPACING_SECONDS
        if at > now:
            await asyncio.sleep(at - now)


_departures = _Departures()


class ApiModel:
    """One model behind an API."""

    is_free = False

    def __init__(
        self,
        model_id: str,
        base_url: str | None = None,
        revision: str | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.model_id = model_id
        self.revision = revision
        self._base_url = base_url
        self._given_prices = prices
        self._refused: set[str] = set()  # parameters this model does not take; learnt from answers without them

    def identity(self) -> dict[str, Any]:
        """Name, revision and endpoint; the endpoint without user, password and query."""
        return {"model": self.model_id, "revision": self.revision, "base_url": _public(self._base_url)}

    @property
    def endpoint(self) -> str:
        """The address without user, password and query, or the provider."""
        return _public(self._base_url) or self.model_id.partition("/")[0]

    def check(self) -> None:
        """Whether litellm knows a provider for the name."""
        litellm = litellm_module()
        try:
            if not litellm.get_llm_provider(self.model_id, api_base=self._base_url)[0]:
                raise ValueError("no name after the provider")
        except Exception:  # litellm raises a bad request of its own, whose text speaks of completions
            provider, slash, _ = self.model_id.partition("/")
            if slash and provider not in litellm.provider_list:
                raise UnknownName("model provider", provider, litellm.provider_list) from None
            raise UnknownName("model", self.model_id, litellm.model_cost) from None
        provider = self.endpoint.upper()
        for name in (f"{provider}_API_BASE", f"{provider}_BASE_URL") if self._base_url is None else ():
            if os.environ.get(name):  # litellm would ask there, and no key of ours would say so
                raise UnnamedServer(f"{name} is set: unset it, and give {self.model_id!r} its base_url in the config")
        lacking = litellm.validate_environment(self.model_id)["missing_keys"]
        if len(lacking) == 1 and lacking[0].endswith("_API_KEY"):  # more than one: there may be another way in
            raise MissingKey(f"model {self.model_id!r} needs a key: set the environment variable {lacking[0]}")

    def count_tokens(self, text: str) -> int:
        """The stated estimate: the same offline and everywhere."""
        return estimate_tokens(text)

    async def complete(self, request: Request) -> Completion:
        """One answer, within ``timeout_seconds`` of wall clock, or ModelError."""
        litellm = litellm_module()
        seconds = request.decoding.timeout_seconds
        await _departures.wait()
        started = perf_counter()
        try:
            # litellm's own timeout is for one read: a server that trickles would never meet it
            response, sent = await asyncio.wait_for(self._send(litellm, request), seconds)
        except TimeoutError:
            raise ModelError("timeout", f"no answer within {seconds:g} s; {REMEDIES['timeout']}") from None
        except Exception as error:
            raise failure_of(error) from None
        return self._answer(response, request, sent, perf_counter() - started)

    async def _send(self, litellm: Any, request: Request) -> tuple[Any, Mapping[str, Any]]:
        """The response, and the arguments it answers."""
        refused = set(self._refused)
        while True:
            arguments = self._arguments(request, refused)
            try:
                response = await litellm.acompletion(**arguments)
            except litellm.BadRequestError as error:
                # not litellm's drop_params: with it, a 422 is asked twice and then lost
                name = _refused_parameter(str(error), arguments)
                if name is None:
                    raise
                refused.add(name)
            else:
                self._learn(refused)
                return response, arguments

    def _learn(self, refused: set[str]) -> None:
        """Leaves out of later calls what an answered call had to do without."""
        if "temperature" in refused - self._refused:
            _log.warning("%s takes no temperature of ours; it uses its own", self.model_id)
        self._refused |= refused

    def _arguments(self, request: Request, refused: set[str]) -> dict[str, Any]:
        decoding = request.decoding
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        arguments: dict[str, Any] = {
            "model": self.model_id,
            "messages": _marked(request) if self._is_marking else list(request.messages),
            "timeout": decoding.timeout_seconds,
            "max_retries": 0,
            "num_retries": 0,
            limit: decoding.max_output_tokens,
        }
        if self._base_url is not None:
            arguments["base_url"] = self._base_url
        if decoding.temperature is not None and "temperature" not in refused:
            arguments["temperature"] = decoding.temperature
        if self._is_seeding and "seed" not in refused:
            arguments["seed"] = request.seed % SEED_LIMIT
        return arguments

    def _answer(self, response: Any, request: Request, sent: Mapping[str, Any], latency_seconds: float) -> Completion:
        """The completion in a response, or ModelError: what cannot be read is malformed, yet was paid."""
        facts: CallFacts | None = None
        try:
            facts = self._facts(response, request, sent, latency_seconds)
            return _read(response, facts)
        except ModelError:
            raise
        except Exception as error:
            told = short(f"the provider's answer cannot be read: {type(error).__name__}: {error}")
            raise ModelError("malformed_reply", told, paid=facts) from None

    @cached_property
    def _is_seeding(self) -> bool:
        """Whether the provider takes a seed."""
        return "seed" in (litellm_module().get_supported_openai_params(self.model_id) or ())

    @cached_property
    def _is_marking(self) -> bool:
        """Whether the provider caches only what is marked; the others find a known prefix themselves."""
        litellm = litellm_module()
        try:
            name, provider, *_ = litellm.get_llm_provider(self.model_id, api_base=self._base_url)
        except Exception:  # noqa: BLE001 - the call itself will say what is wrong with the name
            return False
        if provider not in _MARKING_PROVIDERS or "claude" not in name.lower():
            return False
        is_told = provider in ("anthropic", "openrouter")  # all of theirs; of the others' only what is listed
        return is_told or bool(litellm.supports_prompt_caching(name, provider))

    @cached_property
    def _listed_prices(self) -> Prices | None:
        return prices_of(self.model_id)

    def _facts(self, response: Any, request: Request, sent: Mapping[str, Any], latency_seconds: float) -> CallFacts:
        wanted = ["seed"] if request.decoding.temperature is None else ["seed", "temperature"]
        facts = CallFacts(
            **_tokens(getattr(response, "usage", None)),
            latency_seconds=latency_seconds,
            finish_reason=response.choices[0].finish_reason if response.choices else None,
            dropped_parameters=", ".join(name for name in wanted if name not in sent) or None,
        )
        return replace(facts, cost_usd=self._cost(response, facts))

    def _cost(self, response: Any, facts: CallFacts) -> float | None:
        """Dollars by the config's prices, else litellm's sum, with surcharges for length and for filling caches."""
        if self._given_prices is not None:
            return cost_of(facts, self._given_prices)
        # litellm goes by the name that the server echoes, which anybody's server may call gpt-something
        if facts.prompt_tokens is None or facts.completion_tokens is None or self._listed_prices is None:
            return None
        cost: float | None = response._hidden_params.get("response_cost")
        return cost_of(facts, self._listed_prices) if cost is None else cost


def load(
    model_id: str, base_url: str | None = None, revision: str | None = None, prices: Prices | None = None
) -> ApiModel:
    """The model litellm calls ``model_id`` (``openai/gpt-4.1``, ``hosted_vllm/...``); ``check`` says if it knows it.

    Args:
        model_id: litellm's name.
        base_url: an endpoint of one's own.
        revision: a note that tells versions behind one name apart.
        prices: what the config says its tokens cost; None leaves it to litellm's list.

    Raises:
        ValueError: ``base_url`` is not an http address, or holds a credential.
    """
    if base_url is not None and _public(base_url) is None:
        raise ValueError("base_url is no address like http://localhost:8000/v1")
    if base_url is not None and _is_laden(base_url):  # no HTTP library of litellm's sends it as meant
        raise ValueError(
            "base_url holds a user, password or query (not shown here), and litellm sends none of them as meant; leave "
            "them out and put the key into the provider's environment variable, such as OPENAI_API_KEY"
        )
    return ApiModel(model_id, base_url, revision, prices)


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


def _is_laden(url: str) -> bool:
    """Whether an address holds more than where to go."""
    parts = urlsplit(url)
    return "@" in parts.netloc or bool(parts.query or parts.fragment)


def _refused_parameter(said: str, arguments: Mapping[str, Any]) -> str | None:
    """The parameter that the model, or litellm on its behalf, does not take; None for other failures."""
    if "max_tokens" in arguments and "'max_tokens'" in said and "max_completion_tokens" in said:
        return "max_tokens"
    for name in ("temperature", "seed"):
        if name in arguments and any(re.search(said_as.format(name=name), said, re.I) for said_as in _REFUSALS):
            return name
    return None


def _marked(request: Request) -> list[dict[str, Any]]:
    """The messages of a step, marked where what later steps repeat ends: the experience, and the episode so far.

    Other calls are made once, and to fill a cache costs extra.
    """
    messages: list[dict[str, Any]] = [dict(message) for message in request.messages]
    if request.purpose != "act":
        return messages
    experience, close, rest = request.messages[0]["content"].partition(EXPERIENCE_CLOSE)
    if close:
        opening = {"type": "text", "text": experience + close, "cache_control": _CACHE_MARK}
        messages[0]["content"] = [opening, {"type": "text", "text": rest}]
    if len(messages) > 1:
        last = {"type": "text", "text": messages[-2]["content"], "cache_control": _CACHE_MARK}
        messages[-2]["content"] = [last]
    return messages


def _read(response: Any, facts: CallFacts) -> Completion:
    """The completion in a response; what is not an answer is an error."""
    if not response.choices:
        raise ModelError("malformed_reply", "the provider's answer has no choices")
    message, finish_reason = response.choices[0].message, facts.finish_reason
    text, inline = strip_thinking("" if message.content is None else writable(message.content))
    thought = getattr(message, "reasoning_content", None)
    separate = None if thought is None else writable(thought)
    reasoning = "\n".join(filter(None, (separate, inline))) or None
    if finish_reason == "content_filter" or getattr(message, "refusal", None):
        told = "the provider withheld the answer, or the model refused to answer"
        raise ModelError("content_filter", told, paid=facts)
    if not text.strip():
        raise ModelError(*_why_no_text(message, finish_reason), paid=facts)
    return Completion(text=text, reasoning=reasoning, facts=facts)


def _why_no_text(message: Any, finish_reason: str | None) -> tuple[str, str]:
    """Kind and message."""
    if finish_reason == TRUNCATED:
        return "truncated", "the output limit came before an answer; raise max_output_tokens"
    if getattr(message, "tool_calls", None) or getattr(message, "function_call", None):
        return "malformed_reply", "a tool call in answer to a prompt that offers no tool"
    return "empty_reply", "the answer has no text outside its thinking"


def _tokens(usage: Any) -> dict[str, Any]:
    """What a response says it took, as fields of CallFacts."""
    prompt, completion = _reported(usage, "prompt_tokens"), _reported(usage, "completion_tokens")
    if not prompt and not completion:  # litellm fills in zeros where a server reports nothing
        return {}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cached_tokens": _reported(usage, "prompt_tokens_details", "cached_tokens"),
        "reasoning_tokens": _reported(usage, "completion_tokens_details", "reasoning_tokens"),
    }


def _reported(usage: Any, *path: str) -> int | None:
    """A number of tokens a server reported; None where it did not, or cannot be one."""
    for name in path:
        usage = getattr(usage, name, None)
    return usage if isinstance(usage, int) and 0 <= usage <= MOST_TOKENS else None
