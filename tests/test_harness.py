"""``bench harness``: what is counted and compared. How fast anything is, no test says."""

import json
import urllib.request
from pathlib import Path

import pytest

from s3gym.bench._episode import REPLY, TURN_COUNT, prompts, user_texts
from s3gym.bench.harness import Harness, Load, Pass, endpoint, measure_pass
from s3gym.bench.inspect_ai import Inspect, measure_inspect
from s3gym.models.base import estimate_tokens
from s3gym.terminal import timing

LOAD = Load(latency_seconds=1.0, in_flight=64, episode_count=64, turn_count=10)
TINY = Load(latency_seconds=0.01, in_flight=2, episode_count=3, turn_count=4)


def a_pass(seconds: float = 10.5, cpu_ms: float = 1.0, load: Load = LOAD, calls: int = 640, chain: int = 10) -> Pass:
    return Pass(load, seconds, cpu_ms * calls / 1_000, calls, chain, 100_000_000, 64, 0.001, 0.25)


HARNESS = Harness(a_pass(10.4, 5.5), a_pass(10.1, 0.5), a_pass(cpu_ms=2.0), a_pass(cpu_ms=0.25))
INSPECT = Inspect("9.9", a_pass(12.0, 12.0), a_pass(11.0, 4.0))


# --- arithmetic ---------------------------------------------------------------------------------------------


def test_the_ideal_keeps_all_lanes_busy_or_waits_for_the_longest_episode() -> None:
    assert a_pass().ideal_seconds == 10.0  # 640 calls x 1 s / 64, and 10 x 1 s
    assert a_pass(calls=1_280).ideal_seconds == 20.0  # 1,280 / 64
    assert a_pass(calls=64, chain=4).ideal_seconds == 4.0  # a chain of 4, though 64 calls would fit into 1 s


def test_what_comes_on_top_is_told_as_a_share_and_for_each_call() -> None:
    one = a_pass(10.5)

    assert one.excess == pytest.approx(0.05)  # 10.5 / 10 - 1
    assert one.overhead_ms == pytest.approx(50.0)  # 0.5 s in each of 64 lanes, 640 calls: 10 a lane
    few = a_pass(10.5, load=LOAD._replace(episode_count=16), calls=160)
    assert few.overhead_ms == pytest.approx(50.0)  # 16 episodes fill 16 lanes
    assert (one.calls_per_second, one.calls_per_core_second) == pytest.approx((640 / 10.5, 1_000.0))


def test_litellms_share_is_what_the_harness_alone_does_not_take() -> None:
    assert HARNESS.client_cpu_ms == pytest.approx(5.0)  # 5.5 - 0.5
    assert HARNESS.saved_cpu_ms(HARNESS.httpx) == pytest.approx(3.0)  # 5 - 2
    assert HARNESS.thinner_calls_per_core_second(HARNESS.httpx) == pytest.approx(400.0)  # 1,000 / (0.5 + 2)
    assert HARNESS.is_excess_target_reached and HARNESS.is_own_cpu_target_reached
    late = HARNESS._replace(litellm=a_pass(10.6), none=a_pass(cpu_ms=1.1))
    assert not late.is_excess_target_reached and not late.is_own_cpu_target_reached


def test_frameworks_are_compared_with_and_without_their_clients() -> None:
    compared = INSPECT.compare(HARNESS)

    assert compared.overhead == pytest.approx(5.0)  # 2 s over the ideal against 0.4
    assert compared.cpu == pytest.approx(12 / 5.5)
    assert compared.own_cpu == pytest.approx(16.0)  # (12 - 4) / 0.5
    assert compared.is_target_reached


# --- what is played -----------------------------------------------------------------------------------------


def test_an_episode_goes_on_to_its_end_and_its_last_prompt_has_4000_tokens() -> None:
    asked = prompts(TURN_COUNT)
    told = user_texts(TURN_COUNT)

    assert (len(asked), len(told)) == (TURN_COUNT, TURN_COUNT)
    sizes = [sum(estimate_tokens(message["content"]) for message in messages) for messages in asked]
    assert sizes == sorted(sizes)
    assert sizes[-1] == pytest.approx(4_000, rel=0.03)
    kept = sum(map(estimate_tokens, told)) + (TURN_COUNT - 1) * estimate_tokens(REPLY)
    assert kept == pytest.approx(sizes[-1], rel=0.03)


@pytest.mark.parametrize(("client", "asked"), [("none", 0), ("aiohttp", 13), ("litellm", 13)])
def test_every_pass_makes_the_same_calls_with_a_ceiling(client: str, asked: int) -> None:
    one = measure_pass(TINY, client)

    assert (one.call_count, one.longest_chain) == (12, 4)  # 3 episodes of 4 steps
    assert one.most_in_flight == min(asked, 2)
    assert one.seconds >= one.ideal_seconds > 0 and one.cpu_seconds > 0 and one.peak_bytes > 10**7


def test_the_endpoint_answers_anything_and_tells_what_it_saw() -> None:
    with endpoint(TINY) as (base_url, seen):
        for body in (b"{}", b'{"messages": []}'):
            with urllib.request.urlopen(f"{base_url}/chat/completions", body) as response:
                answer = json.loads(response.read())

    assert answer["choices"][0]["message"]["content"] == REPLY
    assert (seen["request_count"], seen["body_bytes"], seen["most_in_flight"]) == (2, 18, 1)


# --- the command --------------------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is timed: the figures above."""
    monkeypatch.setattr(timing, "measure_harness", lambda load, on_pass: HARNESS)
    monkeypatch.setattr(timing.console, "width", 300)


def interpreter(folder: Path, script: str) -> Path:
    """An environment whose Python is a shell script."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return folder


def test_the_table_says_what_is_reached_and_what_a_thinner_client_would_save(
    measured: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "measure_inspect", lambda load, env, on_pass: INSPECT)

    assert timing.bench_harness(LOAD, True, None, "table") == 0

    told = " ".join(capsys.readouterr().out.split())
    for text in (
        "4.0% with litellm (reached), 1.0% without",
        "0.50 ms (reached); litellm's share 5.00 ms",
        "bare httpx would save 3.00 ms a step: a core would then bear 400 calls a second instead of 182",
        "bare aiohttp would save 4.75 ms",
        "64 calls keep a core busy for 0.35 s with litellm",  # 64 x 5.5 ms
        "up to that at every step; 0.05 s with aiohttp",  # 64 x (0.5 + 0.25) ms
        "inspect_ai 9.9, aim 5x: 8.00 ms CPU a turn of its own, 16.0x ours (reached)",
    ):
        assert text in told


def test_json_has_all_figures(measured: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert timing.bench_harness(LOAD, False, None, "json") == 0

    told = json.loads(capsys.readouterr().out)
    assert told["passes"]["litellm"]["overhead_ms"] == pytest.approx(40.0)
    assert told["saved_cpu_ms"] == pytest.approx({"httpx": 3.0, "aiohttp": 4.75})
    assert set(told["passes"]) == {"litellm", "none", "httpx", "aiohttp"}
    assert told["inspect_ai"] is None


def test_without_inspect_ai_the_rest_is_shown_and_it_is_said_what_to_do(
    measured: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    env = interpreter(tmp_path / "env", "echo 'no matching distribution' >&2; exit 1")

    assert timing.bench_harness(LOAD, True, env, "table") == 1

    told = capsys.readouterr()
    assert "s3gym alone" in told.out
    assert "could not install inspect_ai: no matching distribution" in told.err
    assert "without --inspect it is not needed" in told.err


def test_inspect_ai_does_the_same_turns_on_the_same_endpoint(tmp_path: Path) -> None:
    took = {"seconds": 12.0, "cpu_seconds": 6.4, "call_count": 12, "longest_chain": 4, "peak_bytes": 10**8}
    answer = json.dumps({"version": "9.9", "took": took})
    keep = f"printf '%s\\n' \"$3\" >> {tmp_path}/asked"
    env = interpreter(tmp_path / "env", f"[ \"$2\" = -c ] || {{ {keep}; echo '{answer}'; }}")
    clients: list[str] = []

    beside = measure_inspect(TINY, env, clients.append)

    assert (beside.version, beside.whole.call_count, clients) == ("9.9", 12, ["inspect_ai", "openai"])
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert [one["client"] for one in asked] == clients
    assert all(one["texts"] == user_texts(TINY.turn_count) for one in asked)
