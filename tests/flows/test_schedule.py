"""Refreshes by the clock: against a real Prefect server, one at a time, and none lost."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import UUID

import prefect
import pytest
from click.testing import CliRunner, Result
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Scheduled

from flows.server import SCHEDULE_MARK, end_orphans
from s3gym import storage
from s3gym.cli import main
from s3gym.warehouse import Warehouse

REQUEST = ["--game", "trust", "--model", "player:random", "--pathway", "none", "--scale", "smoke"]
WEEKLY = ["--cron", "0 3 * * 1"]
PATIENCE_SECONDS = 90


def cli(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "300"}).invoke(main, [str(argument) for argument in arguments])


@contextmanager
def serving(data: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A scheduler in a process of its own, its server's URL and the name of its deployment."""
    command = [sys.executable, "-c", "from s3gym.cli import main; main()", "serve", *WEEKLY, *REQUEST]
    process = subprocess.Popen(
        [*command, "--data", str(data)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        told = process.stdout.readline()  # type: ignore[union-attr]
        found = re.search(r"as (refresh/\S+) on (http://\S+)\. Next refresh: Monday, \d{4}-\d\d-\d\d 03:00 UTC", told)
        assert found, told + process.communicate(timeout=10)[0]
        yield process, f"{found[2]}/api", found[1]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def trigger(client: SyncPrefectClient, deployment: str, minutes_ago: int = 0) -> UUID:
    """A flow run of a deployment, due now or some minutes ago."""
    due = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    known = client.read_deployment_by_name(deployment)
    return client.create_flow_run_from_deployment(known.id, state=Scheduled(scheduled_time=due)).id


def ended(client: SyncPrefectClient, flow_run_id: UUID) -> FlowRun:
    """The flow run when it has come to an end."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = client.read_flow_run(flow_run_id)
        if found.state is not None and found.state.is_final():
            return found
        time.sleep(0.2)
    raise AssertionError(f"still {found.state}")


def log(data: Path) -> list[tuple[Any, ...]]:
    return Warehouse(data).sql("select trigger, status, stages_made from refreshes order by started_at").rows()


def test_what_came_due_while_nobody_served_is_one_refresh_when_somebody_does(prefect_api: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data) as (process, url, name):
        second = cli("serve", *WEEKLY, *REQUEST, "--data", data)
    assert (url, process.returncode) == (prefect_api, 130)
    assert second.exit_code == 2
    assert f"another schedule (process {process.pid})" in second.output

    with get_client(sync_client=True) as client:
        missed = [trigger(client, name, minutes_ago) for minutes_ago in (20_000, 10_000)]
        with serving(data):
            first, other = (ended(client, flow_run_id) for flow_run_id in missed)
        artifacts = client.request("POST", "/artifacts/filter", json={}).json()
        made_up = client.read_flow_runs(flow_run_filter=FlowRunFilter(tags=FlowRunFilterTags(all_=["missed"])))

    # the runner takes the one that has waited longest, which takes the other off, and the one that makes up for both
    assert (first.state_name, other.state_name) == ("Completed", "Skipped")
    assert [flow_run.state_name for flow_run in made_up] == ["Skipped"]
    assert log(data) == [("schedule", "complete", 2)]
    assert re.fullmatch(r"refresh data \d{4}-\d\d-\d\d \d\d:\d\d", first.name)
    own = {artifact["key"]: artifact["data"] for artifact in artifacts if artifact["flow_run_id"] == str(first.id)}
    assert "| trust | player:random | none | 0 |" in own["s3gym-summary"]
    assert (data / "report.html").exists()
    assert (data / "report.html").resolve().as_uri() in own["s3gym-report"]


def test_a_refresh_that_finds_the_folder_at_work_is_skipped_as_configured(prefect_api: str, tmp_path: Path) -> None:
    from flows.schedule import refresh

    data = tmp_path / "data"
    storage.open_folder(data)
    with storage.exclusive(data):
        state = refresh(data=str(data), settings={"scale": "smoke"}, while_running="skip", return_state=True)

    assert (state.name, state.is_completed()) == ("Skipped", True)
    assert "another run" in (state.message or "")
    assert not (data / "tables").exists()


def test_a_refresh_that_waits_begins_when_the_folder_is_free(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import schedule

    data = tmp_path / "data"
    storage.open_folder(data)
    held = storage.exclusive(data)
    held.__enter__()
    waits: list[float] = []

    def let_go(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            held.__exit__(None, None, None)

    monkeypatch.setattr(schedule, "sleep", let_go)
    monkeypatch.setattr(schedule, "_publish", lambda outcome, data: None)
    settings = {"scale": "smoke", "games": ["trust"], "models": ["player:random"], "pathways": ["none"]}
    schedule.refresh(data=str(data), settings=settings)

    assert waits == [schedule.POLL_SECONDS] * 2
    assert log(data) == [("schedule", "complete", 2)]


def test_what_failed_is_told_by_the_flow_with_cell_and_remedy(prefect_api: str, tmp_path: Path) -> None:
    from flows.schedule import refresh

    data = tmp_path / "data"
    (tmp_path / "broken_agent.py").write_text("def answer(messages):\n    raise ValueError('out of order')\n")
    settings = {"scale": "smoke", "games": ["trust"], "pathways": ["none"], "models": ["python:broken_agent:answer"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setattr("flows.schedule._publish", lambda outcome, data: None)
        state = refresh(data=str(data), settings=settings, return_state=True)

    assert state.is_failed()
    assert "evaluate trust python:broken_agent:answer none r0 @0" in (state.message or "")
    assert "out of order" in (state.message or "")
    assert "the next refresh, or `s3gym run`, tries only what failed" in (state.message or "")
    failed = Warehouse(data).sql("select status, failure, calls_made, paid_usd from stg_refreshes").row(0)
    assert failed[0] == "failed" and "out of order" in failed[1] and failed[2] > 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--cron", "0 3 * *"], "--cron '0 3 * *' is no schedule"),
        (["--cron", "every monday"], "is no schedule; expected minute, hour"),
        (["--cron", "* * * * * *"], "is no schedule"),  # Prefect would take it, and run each second
        (["--cron", "0 0 30 2 *"], "names a time that never comes"),
        ([*WEEKLY, "--timezone", "Mars/Olympus"], "--timezone 'Mars/Olympus' is no time zone"),
        ([*WEEKLY, "--game", "go"], "unknown game 'go'"),
    ],
)
def test_a_wrong_schedule_is_a_sentence_and_nothing_is_written(tmp_path: Path, options: list[str], told: str) -> None:
    refused = cli("serve", *REQUEST, *options, "--data", tmp_path / "data")

    assert refused.exit_code == 2
    assert told in refused.output
    assert not (tmp_path / "data").exists()


def test_a_server_that_is_down_is_a_sentence(tmp_path: Path) -> None:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        refused = cli("serve", *WEEKLY, *REQUEST, "--data", tmp_path / "data")

    assert refused.exit_code == 1
    assert "no Prefect server answers at http://127.0.0.1:9/api; start it, or unset PREFECT_API_URL" in refused.output


def test_a_server_of_another_version_is_a_sentence(tmp_path: Path) -> None:
    class Old(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps("2.20.1").encode())

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Old)
    Thread(target=server.serve_forever, daemon=True).start()
    with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{server.server_port}/api"}):
        refused = cli("serve", *WEEKLY, *REQUEST, "--data", tmp_path / "data")
    server.shutdown()

    assert refused.exit_code == 1
    assert f"has version 2.20.1, this is Prefect {prefect.__version__}" in refused.output


@pytest.mark.long
def test_a_server_of_our_own_that_is_lost_is_started_again_and_makes_up_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with serving(data) as (process, _, name):
        told: list[str] = []
        assert len(end_orphans(data, SCHEDULE_MARK)) == 1
        while "complete: 2 stages made" not in "".join(told):
            told.append(process.stdout.readline())  # type: ignore[union-attr]

    assert "is gone; waiting for it. What was finished is kept" in "".join(told)
    assert f"as {name} on" in "".join(told)
    assert log(data) == [("schedule", "complete", 2)]
    assert end_orphans(data, SCHEDULE_MARK) == []  # it ended with the process
    assert (data / "server" / "prefect.db").exists()
