"""``bench training``: what is done on both sides and compared. How fast anything is, no test says."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from s3gym.bench import training
from s3gym.bench.harness import BenchError
from s3gym.bench.training import Load, Measured, Pass, Training, Work
from s3gym.cli import main
from s3gym.terminal import comparing
from s3gym.terminal.console import console

for needed in ("torch", "peft"):
    pytest.importorskip(needed, reason="needs the extra local")

from s3gym.bench import _training_job, _training_pass  # noqa: E402

LOAD = Load(model=None, tokens=100, batch=2, steps=2, new_tokens=4, repeat=2)


def a_pass(seconds: float, megabytes: int = 500, said: str = "1.5") -> Pass:
    return Pass(seconds, seconds + 1, 1_000, [said, "same"], 2 * seconds, megabytes * 10**6)


OWN, PEER = [a_pass(5.0), a_pass(4.0, 600)], [a_pass(10.0), a_pass(2.0, said="other")]


def test_of_speeds_the_best_counts_of_memory_the_worst_and_pairs_are_of_neighbours() -> None:
    steps, whole, memory = Work("update", OWN, PEER).measured()

    assert (steps.own, steps.peer, steps.ratio) == (250.0, 500.0, 0.5)  # 1,000 / 4, 1,000 / 2
    assert steps.pairs == pytest.approx((2.0, 0.5))  # 10 / 5, 2 / 4
    assert (whole.own, whole.peer) == pytest.approx((200.0, 1_000 / 3))  # a second more each
    assert (memory.own, memory.peer, memory.ratio) == (600.0, 500.0, 1.2)


def test_ten_percent_more_time_or_memory_is_the_most_that_is_allowed() -> None:
    def is_reached(unit: str, own: float) -> bool:
        return Measured("", unit, own, 100.0, ()).is_reached

    assert is_reached("tokens/s", 91.0) and not is_reached("tokens/s", 90.0)  # 100 / 1.1 = 90.9
    assert is_reached("MB", 109.0) and not is_reached("MB", 111.0)


def test_it_is_told_how_much_of_what_was_said_is_the_same_and_what_the_cpu_time_was() -> None:
    work = Work("evaluation", OWN, [a_pass(8.0, said="other")] * 2)

    assert work.alike == (1, 2)
    assert work.cpu_ratio == 0.5  # 2 x 4 / 2 x 8


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is timed: the figures above."""
    facts: dict[str, Any] = {
        "parameter_count": 10_000_000,
        "row_tokens": [100, 99],
        "prompt_tokens": [80],
        "settings": {"rank": 16},
        "dtype": "fp32",
        "device": "cpu",
        "thread_count": 2,
        "versions": {"torch": "9.9"},
        "python": "3.11",
    }
    told = Training(LOAD, facts, Work("update", OWN, PEER), Work("evaluation", OWN, PEER), a_pass(3.0, 520))
    monkeypatch.setattr(comparing, "measure_training", lambda load, on_pass: told)
    monkeypatch.setattr(console, "width", 300)


def test_the_table_has_ratios_aims_and_what_was_measured_on(measured: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert comparing.bench_training(LOAD, "table") == 0

    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for text in (
        "a random model, 10 million parameters, fp32",
        "update: its steps tokens/s 250 500 0.50x 0.50 to 2.00 at least 0.91x missed",
        "evaluation: peak memory MB 600 500 1.20x 1.00 to 1.20 at most 1.10x missed",
        "evaluation, cache=0: peak memory MB 520 500 1.04x 1.04 to 1.04 at most 1.10x reached",
        "2 steps of 2 rows of 99 to 100 tokens",
        "loss of the last step 1.5, the peer's 1.5; 2 of 2 answers are the same",
        "On cpu, 2 threads",
        "torch 9.9",
    ):
        assert text in told


def in_this_process(what: str, module: str, *arguments: str) -> dict[str, Any]:
    """The passes as they are, but for the seconds that a process of its own takes to import torch."""
    with redirect_stdout(StringIO()) as told:
        if module == "_training_job":
            _training_job.main(json.loads(arguments[0]), Path(arguments[1]))
        else:
            side, work, job = arguments
            _training_pass.main(side, work, json.loads(Path(job).read_text()))
    answer: dict[str, Any] = json.loads(told.getvalue())
    return answer


@pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
def test_both_sides_do_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss after two steps, the number of tokens and every answer, of two programs that share no code."""
    monkeypatch.setattr(training, "_told", in_this_process)
    asked = ["bench", "training", "--tokens", "100", "--batch", "2", "--steps", "2", "--new-tokens", "4"]

    result = CliRunner().invoke(main, [*asked, "--repeat", "1", "--format", "json"])

    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["parameter_count"] == 10_000_320
    assert told["row_tokens"] == [100] * 4
    assert [one["what"] for one in told["measured"]] == [
        "update: its steps",
        "update: whole, with reading and writing weights",
        "update: peak memory",
        "evaluation: its answers",
        "evaluation: whole, with reading weights",
        "evaluation: peak memory",
        "evaluation, cache=0: peak memory",
    ]
    update, evaluation = told["works"]["update"], told["works"]["evaluation"]
    assert update["own"][0]["token_count"] == update["peer"][0]["token_count"] == 400  # 2 x 2 rows of 100
    own, peer = float(update["own"][0]["said"][0]), float(update["peer"][0]["said"][0])
    assert own == pytest.approx(peer, abs=2e-4)  # told with four digits
    assert evaluation["own"][0]["token_count"] == evaluation["peer"][0]["token_count"] == 16  # 4 answers of 4
    assert evaluation["alike"] == [4, 4]
    assert told["lean"]["said"] == evaluation["own"][0]["said"]


@pytest.mark.parametrize(
    ("model", "reason"), [("openai/x", "local:smollm2"), ("local:tiny?batch=0", "a whole number from 1 to 256")]
)
def test_what_cannot_be_trained_here_is_told_before_anything_is_done(model: str, reason: str) -> None:
    result = CliRunner().invoke(main, ["bench", "training", "--model", model])

    assert result.exit_code == 2
    assert model in result.output and reason in result.output


def test_a_pass_that_fails_is_named_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"update \(peer\) failed: FileNotFoundError.*job\.json"):
        training._passed("peer", "update", str(tmp_path))
