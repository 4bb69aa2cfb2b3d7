"""Killed anywhere and run again, the tables are those of an undisturbed run, and no answered call is asked twice."""

import hashlib
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from s3gym.config import RunConfig
from tests.flows.tables import contents
from tests.models.loopback import Loopback

IN_FLIGHT = RunConfig.model_fields["parallel"].default
POINTS = [("before_write", 3), ("middle_of_write", 6), ("before_manifest", 4), ("inside_task", 200)]
RANDOM_KILLS = 5
LATEST_MILLISECONDS = 500
"""A run that has all to do takes some two seconds from here."""


def plays(body: dict[str, Any]) -> str:
    """A deterministic model: the same prompt, the same answer, whatever was asked before."""
    text = body["messages"][-1]["content"]
    if "Answer: <ACTION>" not in text:
        return "Retain: what paid. Avoid: the rest. Next: more of it."
    action = ("collaborate", "cheat")[hashlib.sha256(repr(body["messages"]).encode()).digest()[0] % 2]
    return f"Answer: {action}, Score: 1"


def start(data: Path, point: str = "none", nth: int = 0, *base_url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.flows.killed_run", point, str(nth), str(data), *base_url]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(data: Path, *base_url: str) -> None:
    process = start(data, "none", 0, *base_url)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output


@pytest.fixture(scope="module")
def undisturbed(prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Tables of a run that nobody disturbs."""
    data = tmp_path_factory.mktemp("undisturbed") / "data"
    finish(data)
    return contents(data)


@pytest.mark.parametrize(("point", "nth"), POINTS)
def test_a_run_killed_at_a_stated_point_ends_with_the_same_tables(
    point: str, nth: int, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    process = start(data, point, nth)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL

    finish(data)

    assert contents(data) == undisturbed


def test_a_run_killed_at_random_moments_ends_with_the_same_tables(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    data, rng = tmp_path / "data", random.Random(7)
    killed = 0
    for _ in range(RANDOM_KILLS):
        process = start(data, "moment", rng.randrange(LATEST_MILLISECONDS))
        process.communicate(timeout=120)
        killed += process.returncode == -signal.SIGKILL
        contents(data)  # nothing half-written is ever seen

    finish(data)

    print(f"{killed} of {RANDOM_KILLS} runs were killed at work")
    assert killed >= 1
    assert contents(data) == undisturbed


def test_a_run_killed_inside_the_journal_asks_only_what_was_in_flight_again(
    prefect_api: str, loopback: Loopback, tmp_path: Path
) -> None:
    loopback.handler = plays
    finish(tmp_path / "undisturbed", loopback.base_url)
    call_count = len(loopback.requests)
    data = tmp_path / "data"
    process = start(data, "inside_journal", 100, loopback.base_url)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    before_the_kill = len(loopback.requests) - call_count
    assert 100 <= before_the_kill < call_count

    finish(data, loopback.base_url)

    assert contents(data) == contents(tmp_path / "undisturbed")
    asked_again = len(loopback.requests) - 2 * call_count
    assert 1 <= asked_again <= IN_FLIGHT
