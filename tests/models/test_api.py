import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3gym.models import api
from s3gym.models._litellm import litellm_module
from s3gym.models.base import Completion, ModelError, Request
from s3gym.models.prices import cost_of, given_prices, prices_of
from s3gym.protocol.prompts import past_step, step_messages
from s3gym.records import CallFacts
from s3gym.registry import UnknownName
from s3gym.transcript import PastStep, experience_block
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
        "such as OPENAI_API_KEY, and its credit"
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
    plain = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 100, "seed": 7}
    assert loopback.requests[0].body == plain
    assert loopback.requests[1].body == {**plain, "temperature": 0.0}


def test_a_model_known_to_take_no_temperature_is_asked_without_one(loopback: Loopback) -> None:
    ask(loopback, request_of(temperature=0.3), model="openai/o3")
    (sent,) = loopback.requests
    assert sent.body["max_completion_tokens"] == 100
    assert not sent.body.keys() & {"temperature", "max_tokens"}


@pytest.mark.parametrize(
    "told",
    [
        "Unsupported value: 'temperature' does not support 0.3 with this model.",
        "invalid temperature: only 1 is allowed for this model",
    ],
)
def test_a_temperature_that_is_refused_is_left_out_and_the_row_says_so(loopback: Loopback, told: str) -> None:
    loopback.enqueue(failure(400, told))
    completion = ask(loopback, request_of(temperature=0.3))
    assert ["temperature" in received.body for received in loopback.requests] == [True, False]
    assert completion.facts.dropped_parameters == "temperature"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0.3 with this model."),
        ("temperature", "gpt-5 models don't support temperature=0.3. Only temperature=1 is supported."),
        ("temperature", "invalid temperature: only 1 is allowed for this model"),
        ("temperature", "`temperature` is deprecated for this model."),
        ("seed", "openai does not support parameters: ['top_k', 'seed'], for model=newest."),
        ("seed", "Unrecognized request argument supplied: seed"),
        ("seed", 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'),
        ("seed", "Unknown parameter: 'seed'."),
        ("seed", "seed: Extra inputs are not permitted"),
        ("seed", "Per-request seed is not supported on this device."),
        ("seed", "[{'type': 'extra_forbidden', 'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'}]"),
    ],
)
def test_a_refusal_names_the_parameter(name: str, told: str) -> None:
    assert api._refused_parameter(told, {"temperature": 0.3, "seed": 7}) == name


@pytest.mark.parametrize(
    "told",
    [
        "Invalid request with model 'x', temperature 0.3, seed 7: role 'system' is not supported",
        "unknown field `foo`, expected one of `messages`, `seed`, `temperature`",
        "Unsupported role. The seed was 7.",
        "temperature must be at most 2",
        "seed must be an integer",
        "the seed: prompt. Content of this kind is not allowed",
    ],
)
def test_a_parameter_that_is_merely_mentioned_is_kept(loopback: Loopback, told: str) -> None:
    loopback.enqueue(failure(400, told))
    assert error_of(loopback, request_of(seed=7, temperature=0.3)).kind == "bad_request"
    (sent,) = loopback.requests
    assert sent.body.keys() >= {"seed", "temperature"}


def test_a_parameter_is_left_out_of_later_calls_only_when_one_without_it_is_answered(loopback: Loopback) -> None:
    model = api.load("openai/gpt-4.1", loopback.base_url)
    refusal = failure(400, "Unknown parameter: 'seed'.")
    loopback.enqueue(refusal, failure(503, "busy"), refusal, chat("UP"), chat("UP"))

    with pytest.raises(ModelError):
        asyncio.run(model.complete(request_of(seed=7)))  # refused, then no answer to learn from
    for _ in range(2):
        asyncio.run(model.complete(request_of(seed=7)))

    assert [received.body.get("seed") for received in loopback.requests] == [7, None, 7, None, None]


@pytest.mark.parametrize("status", [400, 422])
def test_a_seed_that_is_refused_is_left_out_and_the_row_says_so(loopback: Loopback, status: int) -> None:
    loopback.enqueue(failure(status, "seed: Extra inputs are not permitted"))
    completion = ask(loopback, request_of(seed=7))
    assert [received.body.get("seed") for received in loopback.requests] == [7, None]
    assert completion.facts.dropped_parameters == "seed"


def test_the_seed_of_decoding_reaches_providers_that_take_one(loopback: Loopback) -> None:
    for model in ("openai/gpt-4.1", "hosted_vllm/any"):
        loopback.requests.clear()
        facts = ask(loopback, request_of(seed=2**63 + 5), model).facts
        assert loopback.requests[0].body["seed"] == 5  # modulo 2 to the 31: some providers take no more
        assert facts.dropped_parameters is None


def test_a_model_that_wants_max_completion_tokens_gets_it_and_nothing_is_lost(loopback: Loopback) -> None:
    loopback.enqueue(failure(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."))
    completion = ask(loopback, model="openai/newest")
    assert loopback.requests[-1].body["max_completion_tokens"] == 100
    assert completion.facts.dropped_parameters is None


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
    model = api.ApiModel("openai/x", "https://me:hush@Host:8443/v1/?key=hush", "May")
    assert model.identity() == {"model": "openai/x", "revision": "May", "base_url": "https://host:8443/v1"}
    assert (model.model_id, model.revision, model.is_free) == ("openai/x", "May", False)
    assert api.load("openai/x").identity()["base_url"] is None


@pytest.mark.parametrize("base_url", ["https://me:hush@host/v1", "https://hush@host/v1", "https://host/v1?key=hush"])
def test_an_endpoint_with_a_credential_in_it_is_refused_without_telling_it(base_url: str) -> None:
    with pytest.raises(ValueError, match="OPENAI_API_KEY") as caught:
        api.load("openai/x", base_url)
    assert "hush" not in str(caught.value)


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


# --- replies as they come: each has a row of its own -----------------------------------------------------------


def test_thinking_in_a_field_of_its_own_is_no_answer(loopback: Loopback) -> None:
    for field in ("reasoning_content", "reasoning"):  # as two families of servers call it
        loopback.enqueue(chat("UP", **{field: "Answer: DOWN"}))
        completion = ask(loopback, model="hosted_vllm/any")
        assert (completion.text, completion.reasoning) == ("UP", "Answer: DOWN")


def test_think_blocks_are_taken_out_of_the_answer(loopback: Loopback) -> None:
    loopback.enqueue(chat("<think>Answer: DOWN, Score: 1</think>\nAnswer: UP, Score: 0"))
    completion = ask(loopback)
    assert (completion.text.strip(), completion.reasoning) == ("Answer: UP, Score: 0", "Answer: DOWN, Score: 1")


def test_thinking_without_an_end_is_no_answer(loopback: Loopback) -> None:
    loopback.enqueue(chat("<think>Answer: UP, Score: 1"))
    error = error_of(loopback)
    assert (error.kind, error.facts.completion_tokens) == ("empty_reply", 5)


def test_no_content_at_the_output_limit_is_a_truncated_answer(loopback: Loopback) -> None:
    loopback.enqueue(chat(None, finish_reason="length"))
    error = error_of(loopback)
    assert (error.kind, error.facts.finish_reason) == ("truncated", "length")
    assert "max_output_tokens" in error.message


def test_a_content_filter_withholds_even_the_text_that_came(loopback: Loopback) -> None:
    loopback.enqueue(chat("Answer: UP, Score: 1", finish_reason="content_filter"))
    assert error_of(loopback).kind == "content_filter"


def test_a_refusal_is_no_answer_and_was_paid(loopback: Loopback) -> None:
    loopback.enqueue(chat(None, refusal="I would rather not."))
    error = error_of(loopback)
    assert (error.kind, error.facts.prompt_tokens) == ("content_filter", 20)
    assert error.facts.cost_usd == pytest.approx(80e-6)  # gpt-4.1: 20 x 2 and 5 x 8 dollars a million


def test_a_tool_call_to_a_plain_prompt_is_malformed(loopback: Loopback) -> None:
    loopback.enqueue(chat(None, tool_calls=[TOOL_CALL], finish_reason="tool_calls"))
    error = error_of(loopback)
    assert (error.kind, "tool" in error.message) == ("malformed_reply", True)


def test_of_several_choices_the_first_counts(loopback: Loopback) -> None:
    first = json.loads(chat("UP", choice_count=2).body)
    first["choices"][1]["message"]["content"] = "DOWN"
    loopback.enqueue(Reply(json.dumps(first)))
    assert ask(loopback).text == "UP"


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_string_is_no_answer(loopback: Loopback, text: str) -> None:
    loopback.enqueue(chat(text))
    assert error_of(loopback).kind == "empty_reply"


def test_bytes_that_are_no_text_are_malformed(loopback: Loopback) -> None:
    loopback.enqueue(Reply(chat("U@P").body.replace("@", "\udcff")))  # the single byte 0xff
    assert error_of(loopback).kind == "malformed_reply"


@pytest.mark.parametrize("length", [1, 40, 120, 200])
def test_json_cut_anywhere_is_malformed(loopback: Loopback, length: int) -> None:
    loopback.enqueue(Reply(chat("Answer: UP, Score: 1").body[:length]))
    assert error_of(loopback).kind == "malformed_reply"


def test_a_page_of_html_with_status_200_is_malformed(loopback: Loopback) -> None:
    loopback.enqueue(Reply("<html><body>Sign in</body></html>", headers={"Content-Type": "text/html"}))
    assert error_of(loopback).kind == "malformed_reply"


@pytest.mark.parametrize("content", [7, {"text": "UP"}, [{"type": "text", "text": "UP"}]])
def test_content_that_is_no_string_is_malformed(loopback: Loopback, content: Any) -> None:
    loopback.enqueue(chat(content))
    assert error_of(loopback).kind == "malformed_reply"


def content_of_seven(response: Any) -> Any:
    response.choices[0].message.content = 7
    return response


@pytest.mark.parametrize(("spoil", "prompt_tokens"), [(content_of_seven, 20), (lambda response: None, None)])
def test_an_answer_that_cannot_be_read_is_malformed_and_keeps_what_is_known_of_it(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Any], Any], prompt_tokens: int | None
) -> None:
    """litellm lets none of these through today; what it will let through, nobody knows."""
    acompletion = litellm_module().acompletion

    async def spoilt(**arguments: Any) -> Any:
        return spoil(await acompletion(**arguments))

    monkeypatch.setattr(litellm_module(), "acompletion", spoilt)
    error = error_of(loopback)
    assert (error.kind, error.facts.prompt_tokens) == ("malformed_reply", prompt_tokens)
    assert error.message.startswith("the provider's answer cannot be read: AttributeError: ")


# --- what it costs --------------------------------------------------------------------------------------------

CACHED = {
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "total_tokens": 1050,
    "prompt_tokens_details": {"cached_tokens": 800},
    "completion_tokens_details": {"reasoning_tokens": 30},
}


def test_cached_tokens_are_billed_once_at_the_listed_price(loopback: Loopback) -> None:
    loopback.enqueue(chat("UP", usage=CACHED))
    # gpt-4o-mini, dollars a million: 0.15 prompt, 0.075 cached, 0.6 completion: 200 x 0.15 + 800 x 0.075 + 50 x 0.6
    facts = ask(loopback, model="openai/gpt-4o-mini").facts
    assert facts.cost_usd == pytest.approx(120e-6)
    listed = prices_of("openai/gpt-4o-mini")
    assert listed is not None and cost_of(facts, listed) == pytest.approx(120e-6)  # ours comes to the same


def test_prices_of_the_config_win_over_the_list(loopback: Loopback) -> None:
    loopback.enqueue(chat("UP", usage=CACHED))
    model = api.load("openai/gpt-4o-mini", loopback.base_url, prices=given_prices(10.0, 1.0, 100.0))
    facts = asyncio.run(model.complete(request_of())).facts
    assert facts.cost_usd == pytest.approx((200 * 10 + 800 * 1 + 50 * 100) / 1e6)


def test_a_price_that_nobody_knows_is_null_whatever_the_server_calls_itself(loopback: Loopback) -> None:
    loopback.enqueue(Reply(chat("UP", usage=CACHED).body.replace('"loopback"', '"gpt-4o-mini"')))
    assert ask(loopback, model="openai/my-own").facts.cost_usd is None


# --- prefixes that a provider caches only where they are marked ------------------------------------------------

MARK = {"cache_control": {"type": "ephemeral"}}


def claude(loopback: Loopback, monkeypatch: pytest.MonkeyPatch, request: Request) -> tuple[Completion, dict[str, Any]]:
    """What comes of a request to an Anthropic server, and the body that it got."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 800,
        "cache_creation_input_tokens": 200,
        "output_tokens": 50,
    }
    body = {"id": "1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn"}
    body |= {"content": [{"type": "text", "text": "UP"}], "usage": usage}
    loopback.enqueue(Reply(json.dumps(body)))
    model = api.load("anthropic/claude-sonnet-4-5", loopback.base_url.removesuffix("/v1"))
    return asyncio.run(model.complete(request)), loopback.requests[-1].body


def second_step() -> Request:
    """Experience, one finished step, and the question."""
    shown = past_step("Go up.", PastStep("a wall", "Answer: UP, Score: 0"))
    return replace(request_of(), messages=step_messages("Go up.", shown, "Rules.", "a door"))


def test_a_step_is_marked_after_the_experience_and_after_the_episode_so_far(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, body = claude(loopback, monkeypatch, second_step())
    opening, answer, question = body["messages"]
    assert opening["content"] == [
        {"type": "text", "text": experience_block("Go up."), **MARK},
        {"type": "text", "text": "\n\nEnv: a wall"},
    ]
    assert answer["content"] == [{"type": "text", "text": "Answer: UP, Score: 0", **MARK}]
    assert "cache_control" not in json.dumps(question)


def test_marks_change_no_word_of_a_prompt(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    request = second_step()
    _, body = claude(loopback, monkeypatch, request)
    sent = ["".join(part["text"] for part in message["content"]) for message in body["messages"]]
    assert sent == [message["content"] for message in request.messages]


def test_a_call_that_no_other_continues_is_not_marked(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    for request in (replace(second_step(), purpose="judge"), request_of()):
        _, body = claude(loopback, monkeypatch, request)
        assert "cache_control" not in json.dumps(body)


def test_providers_that_find_prefixes_themselves_get_no_marks(loopback: Loopback) -> None:
    for model in ("openai/gpt-4.1", "hosted_vllm/claude-like"):
        ask(loopback, second_step(), model)
        assert "cache_control" not in json.dumps(loopback.requests[-1].body)


def test_filling_and_reading_a_cache_have_their_own_prices(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = claude(loopback, monkeypatch, second_step())[0].facts
    assert (facts.prompt_tokens, facts.cached_tokens) == (1100, 800)
    # dollars a million: 3 prompt, 0.3 read, 3.75 written, 15 completion: 100 x 3 + 800 x 0.3 + 200 x 3.75 + 50 x 15
    assert facts.cost_usd == pytest.approx(2040e-6)
    assert facts.dropped_parameters == "seed"  # Anthropic takes none


@pytest.mark.parametrize("name", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_a_server_that_only_the_environment_names_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm would ask there, and the key of the answers would not say so."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.setenv(name, "http://localhost:1/v1")

    with pytest.raises(api.UnnamedServer, match=f"{name} is set: unset it, and give 'openai/gpt-4.1' its base_url"):
        api.load("openai/gpt-4.1").check()
    api.load("openai/gpt-4.1", "http://localhost:2/v1").check()
