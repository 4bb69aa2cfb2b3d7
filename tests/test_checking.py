"""``models check``, as a person calls it: against a real server, scripted players, and agents of one's own."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from s3gym.terminal import checking
from tests.models.loopback import ANSWER, CANARY, Loopback, chat, failure, hang
from tests.test_cli import cli

SAID = "Answer: cheat, Score: 1"
MODEL = "openai/gpt-4.1"


def check(*arguments: object) -> tuple[int, str]:
    """Exit code, and what is shown with its cells on one line each."""
    told = cli("models", "check", *arguments)
    assert told.exception is None or isinstance(told.exception, SystemExit), told.exception
    return told.exit_code, told.output


def row(output: str, name: str) -> str:
    """What a row of the table says, broken lines joined."""
    lines = iter(output.splitlines())
    start = next(line for line in lines if f" {name} " in line)
    cells = [cell.strip() for cell in start.split("│")[2:4]]
    for line in lines:
        parts = line.split("│")
        if len(parts) < 4 or parts[1].strip():
            break
        cells[1] += f" {parts[3].strip()}"
    return ": ".join(cells)


@pytest.fixture
def hosted(loopback: Loopback) -> Loopback:
    loopback.handler = lambda body: chat(SAID, reasoning_content=f"seed {body.get('seed')}")
    return loopback


def test_a_hosted_model_that_works(hosted: Loopback) -> None:
    code, output = check(MODEL, "--base-url", hosted.base_url)

    assert code == 0, output
    assert row(output, "key and set-up") == "yes: nothing is missing"
    assert row(output, "reachable") == "yes: 7 calls were answered"
    assert row(output, "answer contract") == "yes: 2 of 2 answers are usable"
    # the server reports 20 and 5 tokens a call
    assert row(output, "tokens reported") == "yes: 140 prompt (unknown cached), 35 completion, in 7 of 7 answers"
    # 140 x 2 + 35 x 8 = 560 millionths of a dollar
    assert row(output, "price known") == (
        "yes: $2 prompt, $0.5 cached, $8 completion a million tokens, by litellm's list; this check cost $0.00056"
    )
    assert row(output, "context size known") == "yes: 1,047,576 tokens"
    assert row(output, "seed honoured").startswith("yes: 2 answers came again word by word")
    assert row(output, "temperature accepted") == "yes: 0.5 was taken"
    assert row(output, "reasoning apart").startswith("yes: in 7 of 7 answers")
    assert re.match(r"\d+\.\d\d s: median of 7", row(output, "latency"))
    assert len(hosted.requests) == 7
    assert CANARY not in output


def test_a_model_in_no_list_works_with_unknown_price_and_size(hosted: Loopback) -> None:
    code, output = check("hosted_vllm/any", "--base-url", hosted.base_url, "--max-output-tokens", 50)

    assert code == 0, output
    assert row(output, "price known").startswith("unknown: in no list")
    assert row(output, "context size known").startswith("unknown: in no list")
    assert {received.body["max_tokens"] for received in hosted.requests} == {50}


def test_a_missing_key_is_named_by_its_variable(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")

    code, output = check(MODEL)

    assert code == 1
    assert "set the environment variable OPENAI_API_KEY" in row(output, "key and set-up")
    assert row(output, "reachable") == "unknown: nothing was asked"
    assert "Failed: key and set-up." in output
    assert not loopback.requests


def test_one_of_two_keys_is_enough_and_both_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)

    code, output = check("gemini/gemini-2.5-pro", "--base-url", "http://127.0.0.1:9/v1")

    assert code == 1
    told = row(output, "key and set-up")
    assert told == "no: set the environment variable GOOGLE_API_KEY or GEMINI_API_KEY"


def test_a_key_that_is_refused_is_told_and_not_shown(loopback: Loopback) -> None:
    loopback.handler = lambda body: failure(401, f"Incorrect API key provided: {CANARY}")

    code, output = check(MODEL, "--base-url", loopback.base_url)

    assert code == 1
    assert row(output, "key and set-up").startswith("no: Incorrect API key provided: [redacted]")
    assert CANARY not in output
    assert len(loopback.requests) == 1


@pytest.mark.parametrize(
    ("reply", "failing", "told"),
    [
        (failure(404, "no such model"), "answer contract", "no: no answer came: not_found: no such model"),
        (failure(500, "oops"), "answer contract", "no: no answer came: server: oops"),
        (chat(None, finish_reason="length"), "answer contract", "no: no answer came: truncated: the output limit"),
        (hang(), "reachable", "no: timeout: no answer within 0.3 s"),
    ],
)
def test_an_endpoint_that_gives_no_answer_is_told_with_its_reason(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, reply: Any, failing: str, told: str
) -> None:
    monkeypatch.setattr(checking, "TIMEOUT_SECONDS", 0.3 if reply.is_hanging else 10.0)
    loopback.handler = lambda body: reply

    code, output = check(MODEL, "--base-url", loopback.base_url)

    assert code == 1
    assert row(output, failing).startswith(told)
    assert f"Failed: {failing}. A run" in output
    assert len(loopback.requests) <= 2


def test_a_server_that_is_not_there_is_not_reachable() -> None:
    code, output = check("hosted_vllm/any", "--base-url", "http://127.0.0.1:9/v1")

    assert code == 1
    assert row(output, "reachable").startswith("no: connection: ")
    assert row(output, "answer contract") == "unknown: not tried"


def test_a_reply_that_breaks_the_contract_is_quoted_and_does_nothing_to_the_terminal(loopback: Loopback) -> None:
    loopback.handler = lambda body: "\x1b[2J[red]I would\rrather\u202e not"

    code, output = check(MODEL, "--base-url", loopback.base_url)

    assert code == 1
    told = row(output, "answer contract")
    assert told == r"no: 0 of 2 answers are usable; unparsable: '\x1b[2J[red]I would rather\u202e not'"
    assert not set("\x1b\u202e") & set(output)


def test_an_answer_to_another_game_is_no_usable_answer(loopback: Loopback) -> None:
    code, output = check(MODEL, "--base-url", loopback.base_url)  # ``ANSWER`` is one of a game of directions

    assert code == 1
    assert ANSWER in row(output, "answer contract")


@pytest.mark.parametrize("player", ["expert", "learner", "tit_for_tat", "careful"])  # the last one is no trust player
def test_a_scripted_player_works(player: str) -> None:
    code, output = check(f"player:{player}")

    assert code == 0, output
    assert row(output, "price known") == "yes: free"
    assert "2 of 2 answers are usable" in row(output, "answer contract")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "checked_agent", raising=False)
    return tmp_path


def test_an_agent_of_ones_own_works(folder: Path) -> None:
    (folder / "checked_agent.py").write_text(
        f"def answer(messages, seed, temperature=None): return f'{{seed}}: so I cheat.\\n{SAID}'"
    )

    code, output = check("python:checked_agent:answer")

    assert code == 0, output
    assert row(output, "seed honoured").startswith("yes: 2 answers came again")
    assert row(output, "temperature accepted") == "yes: 0.5 was taken"


def test_an_agent_that_fails_is_told_with_the_line(folder: Path) -> None:
    (folder / "checked_agent.py").write_text("def answer(messages):\n    return messages['role']")

    code, output = check("python:checked_agent:answer")

    assert code == 1
    told = row(output, "answer contract")
    assert "python:checked_agent:answer raised TypeError (checked_agent.py, line 2): " in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["openia/gpt-4.1"], "unknown model provider 'openia'. Did you mean openai"),
        (["playr:expert"], "unknown kind of model 'playr'. Did you mean player"),
        (["player:exprt"], "unknown player 'exprt'. Did you mean expert"),
        (["player:expert", "--base-url", "http://x/v1"], "model 'player:expert': a scripted player has no base_url"),
        ([MODEL, "--base-url", "localhost"], f"model '{MODEL}': base_url is no address like http://localhost:8000/v1"),
        (["python:nowhere_at_all:answer"], "'nowhere_at_all'"),
        ([MODEL, "--max-output-tokens", 0], "0 is not in the range"),
        ([], "Missing argument 'MODEL'"),
    ],
)
def test_a_wrong_request_is_told_and_nothing_is_asked(folder: Path, arguments: list[object], told: str) -> None:
    code, output = check(*arguments)

    assert code == 2
    assert told in output
    assert "│ reachable" not in output


def test_nothing_is_written(hosted: Loopback, folder: Path) -> None:
    check(MODEL, "--base-url", hosted.base_url)

    assert list(folder.iterdir()) == []
