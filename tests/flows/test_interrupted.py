"""Interrupted with calls in flight: what is paid for is kept, and nothing more is asked. A second time ends at once."""

import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from s3gym.journal import FILE
from s3gym.protocol.allowance import GRACE_SECONDS
from tests.flows.conftest import run
from tests.flows.hosted import Gate, distinct, play, request, start
from tests.models.loopback import Loopback

ANSWERED = 3
IN_FLIGHT = 7 + 1
"""An evaluation plays seven matches at once, and the first match is explored beside it."""


def kept(data: Path) -> list[str | None]:
    """The error kind of every call in the journal."""
    with closing(sqlite3.connect(data / FILE)) as journal:
        return [kind for (kind,) in journal.execute("select facts ->> 'error_kind' from calls")]


@contextmanager
def working(data: Path, asked: dict[str, Any], gate: Gate) -> Iterator["subprocess.Popen[str]"]:
    """A run as a process, from when its calls are held on."""
    process = start(data, asked)
    try:
        gate.wait_until_full(process)
        yield process
    finally:
        process.kill()
        gate.open()


def wait_for_line(process: "subprocess.Popen[str]", words: str) -> str:
    """The first line the process prints that has ``words`` in it."""
    assert process.stdout is not None
    return next(line for line in process.stdout if words in line)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_calls_in_flight_are_kept_and_not_made_again(
    prefect_api: str, loopback: Loopback, tmp_path: Path, number: signal.Signals
) -> None:
    data, asked = tmp_path / "data", request(loopback.base_url, pathways=["memory"])
    gate = loopback.handler = Gate(ANSWERED, IN_FLIGHT)
    with working(data, asked, gate) as process:
        process.send_signal(number)
        told = wait_for_line(process, "Stopping: ")
        gate.open()
        began = time.monotonic()
        process.communicate(timeout=60)
        seconds = time.monotonic() - began

    assert f"{IN_FLIGHT} calls are in flight" in told
    assert process.returncode == 130
    assert seconds < GRACE_SECONDS
    # nothing was asked after the interruption, and all that was asked is there
    assert len(loopback.requests) == ANSWERED + IN_FLIGHT
    assert kept(data) == [None] * (ANSWERED + IN_FLIGHT)

    loopback.handler = play
    assert run(data, **asked).failures == []
    # two evaluations of 7 matches and 3 explored matches, of two calls each; 3 memory texts and 3 looks back
    assert len(loopback.requests) == len(distinct(loopback.requests)) == len(kept(data)) == 2 * 7 * 2 + 3 * 2 + 3 + 3


def test_a_second_interruption_gives_up_what_is_in_flight_at_once(
    prefect_api: str, loopback: Loopback, tmp_path: Path
) -> None:
    data, asked = tmp_path / "data", request(loopback.base_url, pathways=["memory"])
    gate = loopback.handler = Gate(ANSWERED, IN_FLIGHT)
    with working(data, asked, gate) as process:
        process.send_signal(signal.SIGINT)
        wait_for_line(process, "Stopping: ")
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        output, _ = process.communicate(timeout=60)
        seconds = time.monotonic() - began

    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert seconds < GRACE_SECONDS
    assert kept(data) == [None] * ANSWERED


def test_players_are_not_waited_for(prefect_api: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    asked = {"scale": "paper", "games": ["snake"], "models": ["player:learner"], "pathways": ["history"]}
    process = start(data, asked)
    try:
        while not list(data.glob("manifests/*")):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        output, _ = process.communicate(timeout=60)
        seconds = time.monotonic() - began
    finally:
        process.kill()

    assert process.returncode == 130, output
    assert "Stopping" not in output
    assert seconds < GRACE_SECONDS
