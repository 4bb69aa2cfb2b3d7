import asyncio
import json
import re
import subprocess
import sys
import time

import pytest

from s3gym.models import api
from s3gym.models.base import Completion, ModelError, Request
from s3gym.records import CallFacts
from s3gym.registry import UnknownName
from tests.models.loopback import CANARY, Loopback, Reply, chat, failure, hang, request_of

TOOL_CALL = {"id": "1", "type": "function", "function": {"name": "move", "arguments": "{}"}}


def ask(loopback: Loopback, request: Request | None = None, model: str = "openai/gpt-4.1") -> Completion:
    served = api.load(model, loopback.base_url)
    return asyncio.run(served.complete(request or request_of()))


def error_of(loopback: Loopback, request: Request | None = None, model: str = "openai/gpt-4.1") -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(loopback, request, model)
    return caught.value


def without(reply: Reply, field: str) -> Reply:
    return Reply(json.dumps({name: value for name, value in json.loads(reply.body).items() if name != field}))


FAILURES = [
    (failure(400, "no such field"), "bad_request"),
    (failure(401, f"Incorrect API key provided: {CANARY}"), "authentication"),
    (failure(403, "not for you"), "authentication"),
    (failure(404, "no such model"), "not_found"),
    (failure(422, "messages: too many"), "bad_request"),
    (failure(429, "slow down"), "rate_limit"),
    (failure(500, "oops"), "server"),
    (failure(502, "oops"), "server"),
    (failure(503, "busy"), "server"),
    (failure(504, "late"), "timeout"),
    (failure(529, "overloaded"), "server"),
    (Reply("<html>oops</html>", 500, {"Content-Type": "text/html"}), "server"),
    (
        failure(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        "context_window",
    ),
    (failure(400, "content_policy_violation", code="content_policy_violation"), "content_filter"),
    (Reply("{nope"), "malformed_reply"),
    (Reply(""), "malformed_reply"),
    (Reply("{}"), "malformed_reply"),
    (Reply("<html>hello</html>", headers={"Content-Type": "text/html"}), "malformed_reply"),
    (Reply(json.dumps({**json.loads(chat("x").body), "choices": []})), "malformed_reply"),
    (chat(None, tool_calls=[TOOL_CALL], finish_reason="tool_calls"), "malformed_reply"),
    (chat(None, finish_reason="length"), "truncated"),
    (chat(None, finish_reason="length", reasoning_content="hm"), "truncated"),
    (chat("<think>Answer: UP, Score: 1", finish_reason="length"), "truncated"),
    (chat("<think>Answer: UP, Score: 1"), "empty_reply"),
    (chat(""), "empty_reply"),
    (chat(" \n"), "empty_reply"),
    (chat(None), "empty_reply"),
    (chat(None, finish_reason="content_filter"), "content_filter"),
    (chat("Answer: U", finish_reason="content_filter"), "content_filter"),
    (chat(None, refusal="I would rather not."), "content_filter"),
]


@pytest.mark.parametrize("model", ["openai/gpt-4.1", "hosted_vllm/any"])  # two ways through litellm
@pytest.mark.parametrize(("reply", "kind"), FAILURES)
def test_every_failure_has_its_kind_and_is_asked_once(loopback: Loopback, reply: Reply, kind: str, model: str) -> None:
    loopback.enqueue(reply)
    error = error_of(loopback, model=model)
    assert (error.kind, len(loopback.requests)) == (kind, 1), error
    assert CANARY not in str(error)


def test_the_key_is_sent_to_the_server_and_nowhere_else(loopback: Loopback) -> None:
    loopback.enqueue(failure(401, f"Incorrect API key provided: {CANARY}"))
    error = error_of(loopback)
    assert loopback.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert error.message == (
        "Incorrect API key provided: [redacted]; check the key in the provider's environment variable, "
        "such as OPENAI_API_KEY"
    )


def test_a_refused_connection_is_told_from_a_failing_server() -> None:
    model = api.load("hosted_vllm/any", "http://127.0.0.1:9/v1")
    with pytest.raises(ModelError) as caught:
        asyncio.run(model.complete(request_of()))
    assert caught.value.kind == "connection"
    assert "127.0.0.1:9" in caught.value.message


@pytest.mark.parametrize("model", ["openai/gpt-4.1", "gemini/gemini-2.5-pro", "anthropic/claude-sonnet-4-5"])
def test_a_missing_key_is_told_from_a_failing_server(
    loopback: Loopback, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)
    assert error_of(loopback, model=model).kind == "authentication"
    assert not loopback.requests


def test_an_unknown_provider_is_a_bad_request(loopback: Loopback) -> None:
    error = error_of(loopback, model="nobody/knows")
    assert (error.kind, len(loopback.requests)) == ("bad_request", 0)
    assert "nobody/knows" in error.message


@pytest.mark.parametrize("model", ["openai/gpt-4.1", "hosted_vllm/any"])
@pytest.mark.parametrize("reply", [hang(), chat("late").after(20), Reply(chat("late").body, byte_seconds=0.1)])
def test_a_call_ends_when_its_time_is_up(loopback: Loopback, reply: Reply, model: str) -> None:
    loopback.enqueue(chat("the import is not what is timed"), reply)
    ask(loopback, model=model)
    started = time.perf_counter()
    error = error_of(loopback, request_of(timeout_seconds=0.4), model)
    assert error.kind == "timeout"
    assert time.perf_counter() - started < 3  # trickled, the body takes some 30 s


def test_retry_after_reaches_the_one_who_retries(loopback: Loopback) -> None:
    loopback.enqueue(failure(429, "slow down", {"Retry-After": "7"}), failure(503, "busy", {"Retry-After": "3"}))
    assert error_of(loopback).retry_after_seconds == 7
    assert error_of(loopback, model="hosted_vllm/any").retry_after_seconds == 3
    loopback.enqueue(failure(429, "slow down"))
    assert error_of(loopback).retry_after_seconds is None


def test_an_answer_comes_with_what_it_took(loopback: Loopback) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    loopback.enqueue(chat("Answer: UP, Score: 0", usage=usage).after(0.05))
    completion = ask(loopback)
    assert completion.text == "Answer: UP, Score: 0"
    facts = completion.facts
    assert (facts.prompt_tokens, facts.cached_tokens) == (100, 64)
    assert (facts.completion_tokens, facts.reasoning_tokens) == (50, 30)
    # gpt-4.1, dollars a million tokens: 2 prompt, 0.5 cached, 8 completion: 36 x 2 + 64 x 0.5 + 50 x 8 = 504
    assert facts.cost_usd == pytest.approx(504e-6)
    assert facts.finish_reason == "stop"
    assert facts.latency_seconds is not None and 0.05 <= facts.latency_seconds < 10


def test_what_is_not_known_is_null_and_not_zero(loopback: Loopback) -> None:
    loopback.enqueue(chat("UP"), without(chat("UP"), "usage"))
    priceless = ask(loopback, model="hosted_vllm/any").facts
    assert (priceless.prompt_tokens, priceless.cached_tokens, priceless.cost_usd) == (20, None, None)
    uncounted = ask(loopback).facts
    assert uncounted == CallFacts(latency_seconds=uncounted.latency_seconds, finish_reason="stop")


@pytest.mark.parametrize(
    ("reply", "text", "reasoning"),
    [
        (chat("UP", reasoning_content="hm"), "UP", "hm"),
        (chat("<think>hm</think>UP"), "UP", "hm"),
        (chat("hm</think>UP"), "UP", "hm"),
        (chat("UP", choice_count=3), "UP", None),
        (chat("U\ud800P"), "U?P", None),  # half a surrogate pair: no file could hold it
        (chat("Answer: U", finish_reason="length"), "Answer: U", None),
        (chat("UP", tool_calls=[TOOL_CALL]), "UP", None),
    ],
)
def test_text_and_thinking_are_apart(loopback: Loopback, reply: Reply, text: str, reasoning: str | None) -> None:
    loopback.enqueue(reply)
    completion = ask(loopback)
    assert (completion.text, completion.reasoning) == (text, reasoning)


def test_only_what_was_asked_for_is_sent(loopback: Loopback) -> None:
    ask(loopback, request_of("hello", seed=7))
    ask(loopback, request_of("hello", seed=7, temperature=0.0))
    plain = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 100}
    assert loopback.requests[0].body == plain
    assert loopback.requests[1].body == {**plain, "temperature": 0.0}


def test_a_model_known_to_take_no_temperature_is_asked_without_one(loopback: Loopback) -> None:
    ask(loopback, request_of(temperature=0.3), model="openai/o3")
    (sent,) = loopback.requests
    assert sent.body["max_completion_tokens"] == 100
    assert not sent.body.keys() & {"temperature", "max_tokens"}


def test_a_parameter_that_the_server_refuses_is_refused_once(loopback: Loopback) -> None:
    model = api.load("openai/newest", loopback.base_url)
    loopback.enqueue(
        failure(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        failure(400, "Unsupported value: 'temperature' does not support 0.3 with this model."),
    )
    for _ in range(2):
        asyncio.run(model.complete(request_of(temperature=0.3)))
    assert [len(received.body.keys() & {"temperature", "max_tokens"}) for received in loopback.requests] == [
        2,
        1,
        0,
        0,
    ]
    assert loopback.requests[-1].body["max_completion_tokens"] == 100


def test_many_calls_fly_at_once(loopback: Loopback) -> None:
    loopback.handler = lambda body: chat(body["messages"][0]["content"]).after(0.1)
    model = api.load("openai/gpt-4.1", loopback.base_url)

    async def together() -> list[Completion]:
        return await asyncio.gather(*(model.complete(request_of(str(number))) for number in range(16)))

    assert [completion.text for completion in asyncio.run(together())] == [str(number) for number in range(16)]
    assert loopback.most_in_flight > 1


def test_the_identity_holds_the_endpoint_but_no_credential() -> None:
    model = api.load("openai/x", "https://me:hush@Host:8443/v1/?key=hush", "May")
    assert model.identity() == {"model": "openai/x", "revision": "May", "base_url": "https://host:8443/v1"}
    assert (model.model_id, model.revision, model.is_free) == ("openai/x", "May", False)
    assert api.load("openai/x").identity()["base_url"] is None


@pytest.mark.parametrize("base_url", ["localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1", ""])
def test_an_endpoint_that_is_no_address_is_refused_at_once(base_url: str) -> None:
    with pytest.raises(ValueError, match="http://localhost:8000/v1"):
        api.load("openai/x", base_url)


def test_litellm_is_imported_by_the_first_call_only() -> None:
    code = "import sys; from s3gym.models import api; api.load('openai/x').count_tokens('12345'); "
    subprocess.run([sys.executable, "-c", code + "sys.exit('litellm' in sys.modules)"], check=True)


def test_tokens_are_estimated_at_four_characters_each() -> None:
    assert [api.load("openai/x").count_tokens(text) for text in ("", "1", "1234", "12345")] == [
        0,
        1,
        1,
        2,
    ]


def test_an_answer_that_is_none_keeps_what_was_paid_for_it(loopback: Loopback) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 14_000, "total_tokens": 14_030}
    loopback.enqueue(chat(None, finish_reason="length", usage=usage))

    facts = error_of(loopback).facts

    assert (facts.prompt_tokens, facts.completion_tokens, facts.error_kind) == (30, 14_000, "truncated")
    assert facts.cost_usd == pytest.approx(30 * 2e-6 + 14_000 * 8e-6)  # gpt-4.1: 2 and 8 dollars a million


@pytest.mark.parametrize("count", [10**30, -5])
def test_a_number_of_tokens_that_cannot_be_is_not_believed(loopback: Loopback, count: int) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": count, "total_tokens": 30}
    loopback.enqueue(chat("Answer: UP, Score: 1", usage=usage))

    facts = ask(loopback).facts

    assert (facts.prompt_tokens, facts.completion_tokens, facts.cost_usd) == (30, None, None)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("openia/gpt-4.1", "unknown model provider 'openia'. Did you mean openai"),
        ("gtp-4.1", "unknown model 'gtp-4.1'. Did you mean gpt-4.1"),
    ],
)
def test_a_name_no_provider_knows_is_told_with_the_nearest(name: str, told: str) -> None:
    with pytest.raises(UnknownName, match=re.escape(told)):
        api.load(name).check()


def test_no_traceback_of_litellm_is_told(loopback: Loopback) -> None:
    loopback.enqueue(Reply('{"id": "1", "choices": [{"message": null}]}'))

    assert "Traceback" not in error_of(loopback).message


def test_a_key_that_is_not_there_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(api.MissingKey, match="set the environment variable OPENAI_API_KEY"):
        api.load("openai/gpt-4.1").check()


def test_names_that_providers_know_pass_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    for name in ("openai/gpt-9", "gpt-4.1", "hosted_vllm/any", "ollama/llama3:8b"):
        api.load(name).check()
