"""``calls`` and ``prune``: what is shown of the journal, and what goes from it when."""

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from s3gym import storage
from s3gym.cli import main
from s3gym.journal import FILE, Journal
from s3gym.models.base import Completion, ModelError
from s3gym.records import CallFacts
from s3gym.terminal.pruning import finished
from tests.direct import measure_directly
from tests.flows.test_kill import plays
from tests.models.loopback import Loopback, failure, request_of

HOSTILE = "\x1b[2J[red]\u202e</b> 🍎"


def cli(*arguments: object) -> Result:
    """Runs a command in this process, in a wide terminal."""
    return CliRunner(env={"COLUMNS": "200"}).invoke(main, [str(argument) for argument in arguments])


def key_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with three calls, one of which failed first."""
    data = tmp_path / "data"
    storage.open_folder(data)
    facts = CallFacts(prompt_tokens=20, completion_tokens=5, cost_usd=0.25, latency_seconds=1.5, finish_reason="stop")
    answer = Completion(text=f"Answer: UP {HOSTILE}", reasoning="because", facts=facts)
    with Journal(data / FILE) as journal:
        journal.record(key_of("0"), "m/1", key_of("s"), request_of(HOSTILE, seed=7), ModelError("timeout", "too slow"))
        journal.record(key_of("0"), "m/1", key_of("s"), request_of(HOSTILE, seed=7), answer)
        journal.record(key_of("1"), "m/2", None, request_of(), answer)
    return data


def listed(data: Path, *options: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(cli("calls", "--data", data, "--format", "json", *options).output)
    return rows


# --- calls ----------------------------------------------------------------------------------------------------


def test_calls_are_listed_newest_first(data: Path) -> None:
    told = cli("calls", "--data", data)

    assert told.exit_code == 0
    lines = [line for line in told.output.splitlines() if "m/" in line]
    assert [line.split("│")[1].strip() for line in lines] == [key_of(name)[:12] for name in "100"]
    assert all(text in lines[1] for text in ("m/1", "act", key_of("s")[:12], "20 + 5", "0.25", "1.5", "stop"))
    assert all(text in lines[2] for text in ("- + -", "timeout"))


def test_options_choose(data: Path) -> None:
    assert [row["model_id"] for row in listed(data, "--model", "m/2")] == ["m/2"]
    assert [row["attempt"] for row in listed(data, "--stage", key_of("s")[:6])] == [2, 1]
    assert [row["error_kind"] for row in listed(data, "--failed")] == ["timeout"]
    assert len(listed(data, "--limit", 1)) == 1
    assert listed(data, "--model", "m/3") == []


def test_json_and_csv_hold_whole_keys_and_leave_out_nothing(data: Path) -> None:
    rows = listed(data)
    table = list(csv.DictReader(io.StringIO(cli("calls", "--data", data, "--format", "csv").output)))

    assert rows[1]["key"] == table[1]["key"] == key_of("0")
    assert (rows[1]["cost_usd"], rows[1]["is_answered"], rows[1]["cached_tokens"]) == (0.25, True, None)
    assert (table[1]["cost_usd"], table[1]["is_answered"], table[1]["cached_tokens"]) == ("0.25", "True", "")
    assert (rows[2]["error_kind"], rows[2]["error_message"]) == ("timeout", "too slow")


def test_one_call_is_shown_whole_and_inert(data: Path) -> None:
    told = cli("calls", key_of("0")[:8], "--data", data)

    assert told.exit_code == 0
    for text in ("message 1 of 1: user", "attempt 1: timeout", "error_message: too slow", "attempt 2: stop"):
        assert text in told.output
    assert "reasoning: because" in told.output and "prompt_tokens: 20" in told.output and "seed 7" in told.output
    assert told.output.count(r"\x1b[2J[red]\u202e</b> 🍎") == 2  # in the message and in the reply
    assert "\x1b" not in told.output and "\u202e" not in told.output


def test_one_call_as_json_is_exact(data: Path) -> None:
    told = json.loads(cli("calls", key_of("0"), "--data", data, "--format", "json").output)

    assert told["messages"] == [{"role": "user", "content": HOSTILE}]
    assert [attempt["text"] for attempt in told["attempts"]] == [None, f"Answer: UP {HOSTILE}"]
    assert told["attempts"][1]["reasoning"] == "because"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["x"], "0 calls begin with 'x' (none)"),
        (["", "--format", "json"], "2 calls begin with ''"),
        (["ab", "--failed"], "KEY names one call"),
        (["--limit", "0"], "0 is not in the range"),
    ],
    ids=str,
)
def test_a_wrong_request_is_told(data: Path, arguments: list[str], told: str) -> None:
    result = cli("calls", *arguments, "--data", data)

    assert result.exit_code == 2
    assert told in result.output


def test_a_folder_without_calls_says_so(tmp_path: Path) -> None:
    assert "no s3gym data in" in cli("calls", "--data", tmp_path / "nowhere").output
    storage.open_folder(tmp_path / "data")

    told = cli("calls", "--data", tmp_path / "data")

    assert (told.exit_code, listed(tmp_path / "data")) == (0, [])
    assert "No such call" in told.output
    assert cli("calls", "ab", "--data", tmp_path / "data").exit_code == 2
    assert not (tmp_path / "data" / FILE).exists()


def test_calls_are_listed_while_a_run_holds_the_folder_and_writes(data: Path) -> None:
    with storage.exclusive(data), Journal(data / FILE) as journal:
        journal.record(key_of("2"), "m/3", None, request_of(), Completion(text="now"))
        assert [row["model_id"] for row in listed(data)][:2] == ["m/3", "m/2"]


# --- prune ----------------------------------------------------------------------------------------------------


def measure(data: Path, base_url: str, episodes: int) -> None:
    """Two evaluations of ``episodes`` matches of ten rounds."""
    model = {"id": "openai/loopback", "base_url": base_url, "prompt_price": 1.0, "completion_price": 1.0}
    request = {"games": ["trust"], "models": [model], "pathways": ["none"], "evaluation_episodes": episodes}
    measure_directly(data, scale="smoke", **request)


@pytest.fixture
def half_done(loopback: Loopback, tmp_path: Path) -> Path:
    """A folder of a run whose second evaluation was refused after 35 of 70 answers."""
    loopback.handler = lambda body: plays(body) if len(loopback.requests) <= 105 else failure(400, "no more")
    measure(tmp_path / "data", loopback.base_url, 7)
    return tmp_path / "data"


def files(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}


def call_count(data: Path) -> int:
    with Journal(data / FILE, is_read_only=True) as journal:
        return len(journal.calls(10**6))


def test_without_yes_it_is_only_said_what_would_go(half_done: Path) -> None:
    before = files(half_done)

    told = cli("prune", "--data", half_done)

    assert told.exit_code == 0
    # seven matches of ten rounds are complete; each answer cost 20 + 5 tokens at a dollar a million
    assert "70 calls of 1 complete stages" in told.output
    assert "0.00175 dollars were paid for them." in told.output
    assert "made, and paid for or computed, again" in told.output
    assert "The calls of 1 unfinished stages stay." in told.output
    assert "Nothing was changed" in told.output
    assert files(half_done) == before


def test_calls_of_complete_stages_go_and_those_of_unfinished_ones_are_not_asked_again(
    half_done: Path, loopback: Loopback
) -> None:
    kept, size = call_count(half_done) - 70, (half_done / FILE).stat().st_size

    told = cli("prune", "--data", half_done, "--yes")

    assert told.exit_code == 0, told.output
    assert "70 calls" in told.output and "Deleted. The journal takes" in told.output
    assert call_count(half_done) == kept
    assert (half_done / FILE).stat().st_size < size
    assert "Nothing to delete." in cli("prune", "--data", half_done, "--yes").output
    asked = len(loopback.requests)
    loopback.handler = plays
    measure(half_done, loopback.base_url, 7)
    assert len(loopback.requests) - asked == 70 - 35


def test_a_run_holding_the_folder_is_not_disturbed(half_done: Path) -> None:
    with storage.exclusive(half_done):
        told = cli("prune", "--data", half_done, "--yes")

    assert told.exit_code == 2
    assert "is writing to" in told.output
    assert call_count(half_done) > 100


def test_what_was_answered_of_a_larger_budget_stays_until_that_is_done(loopback: Loopback, tmp_path: Path) -> None:
    data = tmp_path / "data"
    loopback.handler = plays
    measure(data, loopback.base_url, 7)
    assert len(finished(data)) == 2
    loopback.handler = lambda body: plays(body) if len(loopback.requests) <= 140 + 30 else failure(400, "no more")
    measure(data, loopback.base_url, 14)

    assert finished(data) == set()

    loopback.handler = plays
    measure(data, loopback.base_url, 14)
    assert len(finished(data)) == 2


def test_a_stage_whose_tables_are_gone_is_not_complete(half_done: Path) -> None:
    for file in (half_done / "tables" / "steps").rglob("*.parquet"):
        file.unlink()

    assert "0 calls of 0 complete stages" in cli("prune", "--data", half_done).output


def test_a_folder_in_which_nobody_was_asked_has_nothing_to_delete(tmp_path: Path) -> None:
    storage.open_folder(tmp_path / "data")

    told = cli("prune", "--data", tmp_path / "data", "--yes")

    assert told.exit_code == 0
    assert "Nothing to delete" in told.output
