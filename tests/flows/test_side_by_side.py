"""A hosted model and one of another back end in one run, interrupted twice: nothing is lost, doubled or summed wrong.

The other is an agent of one's own. To see the same of a model computed here, which takes minutes, name it::

    S3GYM_OTHER_MODEL=local:smollm2 pytest tests/flows/test_side_by_side.py
"""

import json
import os
import signal
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.flows.conftest import run
from tests.flows.hosted import CALLS, MODEL, Gate, distinct, dollars, play, request, start, tokens
from tests.flows.tables import contents
from tests.models.loopback import Loopback

AGENT = "python:tests.flows.agent:answer"
OTHER = os.environ.get("S3GYM_OTHER_MODEL", AGENT)
SETTINGS = {"parallel": 8, "history_token_limit": 1500, "max_output_tokens": 48}
"""Small enough for a small model on a CPU."""
HELD = 4
"""Calls that are surely in flight when the run is interrupted: one cell evaluates seven matches at once."""


@pytest.fixture
def endpoint(loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loopback:
    """The hosted model's server; the agent, too, finds what it needs."""
    monkeypatch.setenv("AGENT_CALLS", str(tmp_path / "agent calls"))
    return loopback


def interrupt(data: Path, asked: dict[str, Any], endpoint: Loopback, answered: int, number: signal.Signals) -> int:
    """Runs until so many calls are answered and more are in flight, then signals; the exit code."""
    gate = endpoint.handler = Gate(answered, HELD)
    process = start(data, asked)
    try:
        gate.wait_until_full(process)
        process.send_signal(number)
        process.communicate(timeout=60)
    finally:
        process.kill()
        gate.open()
    return process.returncode


def spent_in_rows(data: Path) -> dict[str, tuple[int, int, float]]:
    """(prompt tokens, completion tokens, dollars) of each model, over all rows that rest on a call."""
    tables = contents(data)
    model_of_cell = {cell["cell_id"]: cell["model_id"] for cell in tables["cells"]}
    model_of_stage = {link["stage_key"]: model_of_cell[link["cell_id"]] for link in tables["cell_stages"]}
    rows = [*tables["steps"], *tables["judgments"], *tables["experiences"]]
    return summed((model_of_stage[row["stage_key"]], row) for row in rows)


def spent_in_manifests(data: Path) -> dict[str, tuple[int, int, float]]:
    """The same, over all manifests."""
    manifests = [json.loads(path.read_text()) for path in (data / "manifests").iterdir()]
    return summed((manifest["model_id"], manifest) for manifest in manifests)


def summed(facts: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, tuple[int, int, float]]:
    total: dict[str, tuple[int, int, float]] = {}
    for model, row in facts:
        prompt, completion, cost = total.get(model, (0, 0, 0.0))
        own = [row[name] or 0 for name in ("prompt_tokens", "completion_tokens", "cost_usd")]
        total[model] = (prompt + own[0], completion + own[1], cost + own[2])
    return total


def test_two_back_ends_side_by_side_interrupted_twice_end_with_right_sums_and_identical_tables(
    prefect_api: str, endpoint: Loopback, tmp_path: Path
) -> None:
    asked = request(endpoint.base_url, **SETTINGS)
    asked["models"] = [*asked["models"], {"id": OTHER}]
    data, quiet = tmp_path / "data", tmp_path / "quiet"

    exits = [
        interrupt(data, asked, endpoint, 6, signal.SIGKILL),
        interrupt(data, asked, endpoint, 15, signal.SIGINT),
    ]
    endpoint.handler = play
    assert run(data, **asked).failures == []
    assert exits == [-signal.SIGKILL, 130]

    # only what was in flight when it was interrupted was asked again
    again = len(endpoint.requests) - CALLS
    assert len(distinct(endpoint.requests)) == CALLS and 2 * HELD <= again <= 2 * SETTINGS["parallel"]
    with closing(sqlite3.connect(data / "journal.sqlite")) as journal:
        kept = dict(journal.execute("select model_id, count(*) from calls group by model_id"))
    assert kept == {MODEL: CALLS, OTHER: CALLS}
    if OTHER == AGENT:
        seeds = Path(os.environ["AGENT_CALLS"]).read_text().split()
        assert len(set(seeds)) == CALLS and len(seeds) <= CALLS + 2 * SETTINGS["parallel"]

    reported = [tokens(body["messages"]) for body in distinct(endpoint.requests).values()]
    prompt, completion = sum(p for p, _ in reported), sum(c for _, c in reported)
    right = pytest.approx((prompt, completion, dollars(prompt, completion)))
    assert spent_in_rows(data)[MODEL] == right
    assert spent_in_manifests(data)[MODEL] == right

    assert run(quiet, **asked).failures == []
    assert contents(data) == contents(quiet)
    assert spent_in_manifests(data)[OTHER] == pytest.approx(spent_in_rows(quiet)[OTHER])
