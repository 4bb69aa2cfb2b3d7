"""Bad days of a hosted model, against a real HTTP server: what happens to calls, rows, messages and money.

Single replies are the business of ``tests/models/test_api.py``, the pace of many calls of
``tests/protocol/test_limiter.py``, and kills at stated points of ``test_kill``.
"""

import asyncio
import json
import logging
import os
import signal
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from s3gym import cli
from s3gym.config import load_config
from s3gym.journal import Journal
from s3gym.models import api
from s3gym.models.base import Completion
from s3gym.protocol import limiter as limiter_module
from s3gym.protocol.asking import Asker
from s3gym.protocol.limiter import REFUSALS_BELIEVED, Limiter
from s3gym.storage import StorageError
from s3gym.terminal import running
from s3gym.warehouse import Warehouse
from tests.clocks import run_hurried
from tests.flows.conftest import run
from tests.flows.hosted import CALLS, Gate, distinct, play, request, start
from tests.flows.tables import contents
from tests.models.loopback import ANSWER, CANARY, Loopback, Reply, chat, failure, hang, request_of

CEILING = 16


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Loopback]:
    """One server for all tests here, so that their runs have the same keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", CANARY)
        patch.setenv("NO_PROXY", "127.0.0.1")
        server = Loopback()
        asyncio.run(api.load("openai/gpt-4.1", server.base_url).complete(request_of()))  # imports what takes long
        yield server
        server.close()


@pytest.fixture
def server(endpoint: Loopback) -> Loopback:
    """It, as new."""
    endpoint.requests.clear()
    endpoint.handler = play
    return endpoint


@pytest.fixture(scope="module")
def undisturbed(prefect_api: str, endpoint: Loopback, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Tables of ``request`` on a good day."""
    endpoint.handler = play
    endpoint.requests.clear()
    data = tmp_path_factory.mktemp("undisturbed") / "data"
    assert run(data, **request(endpoint.base_url)).failures == []
    assert len(endpoint.requests) == CALLS
    return contents(data)


# --- calls -----------------------------------------------------------------------------------------------------


def ask(
    server: Loopback, journal_file: Path, count: int, hurry: float, timeout_seconds: float
) -> tuple[list[Completion], Asker, Limiter]:
    """The answers to so many requests made at once, on a clock that goes ``hurry`` times as fast as ours."""
    limiter = Limiter(CEILING, name="here")

    async def together(asker: Asker) -> list[Completion]:
        requests = [request_of(seed=seed, timeout_seconds=timeout_seconds) for seed in range(count)]
        return await asyncio.gather(*map(asker.ask, requests))

    with Journal(journal_file) as journal:
        asker = Asker(api.load("openai/gpt-4.1", server.base_url), journal, limiter)
        return run_hurried(together(asker), hurry), asker, limiter


def failures_in(journal_file: Path) -> list[str]:
    """Kinds of the failures that are kept."""
    query = "select facts ->> 'error_kind' from calls where completion is null"
    with closing(sqlite3.connect(journal_file)) as journal:
        return [kind for (kind,) in journal.execute(query)]


def test_a_minute_of_429_costs_a_minute_few_calls_and_no_answer(server: Loopback, tmp_path: Path) -> None:
    hurry = 60.0
    over_at = time.monotonic() + 60.0 / hurry
    server.handler = lambda body: failure(429, "slow down") if time.monotonic() < over_at else ANSWER

    answers, asker, limiter = ask(server, tmp_path / "journal", 100, hurry, 60 * hurry)

    assert [answer.text for answer in answers] == [ANSWER] * 100
    assert (asker.calls_made, len(server.requests)) == (100 + asker.failures, 100 + asker.failures)
    # those in flight when it begins; then pauses of 0.5 to 16 s, and a few calls before the next refusal
    assert 1 <= asker.failures <= CEILING + 50
    assert set(failures_in(tmp_path / "journal")) == {"rate_limit"}
    assert limiter.allowed == CEILING


def test_every_seventh_call_failing_costs_these_calls_and_slows_nobody(server: Loopback, tmp_path: Path) -> None:
    asked = iter(range(1, 1000))
    server.handler = lambda body: failure(500, "oops") if next(asked) % 7 == 0 else ANSWER

    answers, asker, limiter = ask(server, tmp_path / "journal", 100, 20.0, 1200.0)

    assert [answer.text for answer in answers] == [ANSWER] * 100
    assert len(server.requests) == asker.calls_made == 116  # of which every seventh, 16, failed
    assert failures_in(tmp_path / "journal") == ["server"] * 16
    assert sum(answer.facts.failed_attempts or 0 for answer in answers) == 16
    assert limiter.allowed == CEILING


ONE_IN_TEN = {
    "never answered": (hang(), "timeout"),
    "a slow drip without end": (Reply(" " * 10**6, byte_seconds=0.02), "timeout"),  # for more than five hours
    "reset in mid-body": (Reply(chat(ANSWER).body, is_reset=True), "connection"),
    "JSON cut in half": (Reply(chat(ANSWER).body[:120]), "malformed_reply"),
    "a page with status 200": (Reply("<html>Sign in</html>", headers={"Content-Type": "text/html"}), "malformed_reply"),
}


@pytest.mark.parametrize(("reply", "kind"), ONE_IN_TEN.values(), ids=ONE_IN_TEN)
def test_one_bad_reply_among_ten_is_asked_for_again_and_the_others_are_not(
    server: Loopback, tmp_path: Path, reply: Reply, kind: str
) -> None:
    began = time.monotonic()
    server.handler = lambda body: ANSWER
    server.enqueue(*["Answer: UP, Score: 1"] * 4, reply)
    hurry, timeout_seconds = 5.0, 7.5  # 1.5 of our seconds

    answers, asker, _ = ask(server, tmp_path / "journal", 10, hurry, timeout_seconds)

    assert sorted(answer.text for answer in answers) == [ANSWER] * 6 + ["Answer: UP, Score: 1"] * 4
    assert (len(server.requests), len(distinct(server.requests))) == (11, 10)
    assert failures_in(tmp_path / "journal") == [kind]
    assert sum(answer.facts.failed_attempts or 0 for answer in answers) == 1
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_moves_no_deadline_and_no_pause(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    class Moved(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(hours=hours)

    hurry, arrivals, true_time = 20.0, [], time.time

    def handler(body: dict[str, Any]) -> Reply | str:
        arrivals.append(time.monotonic() * hurry)
        if len(arrivals) == 1:  # in the middle of a call
            monkeypatch.setattr(time, "time", lambda: true_time() + 3600 * hours)
            monkeypatch.setattr(limiter_module, "datetime", Moved)
            return failure(429, "slow down", {"Retry-After": "10"})
        return hang() if len(arrivals) == 2 else ANSWER

    server.handler = handler
    (answer,), _, _ = ask(server, tmp_path / "journal", 1, hurry, 20.0)

    first, second, third = arrivals
    assert 10.0 <= second - first < 60.0  # the pause that was asked for
    assert 15.0 <= third - second < 70.0  # the timeout, less what the request took to arrive, and a wait of our own
    assert failures_in(tmp_path / "journal") == ["rate_limit", "timeout"]
    assert answer.facts.latency_seconds is not None and 0 < answer.facts.latency_seconds < 60


# --- rows and messages -----------------------------------------------------------------------------------------

NEVER = {
    "authentication": (failure(401, f"bad key {CANARY}"), "check the key in the provider's environment variable"),
    "not_found": (failure(404, "The model does not exist"), "check the model's name and base_url"),
    "context_window": (
        failure(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        "lower history_token_limit or max_output_tokens",
    ),
}


@pytest.mark.parametrize(("kind", "reply", "remedy"), [(kind, *given) for kind, given in NEVER.items()], ids=NEVER)
def test_what_no_second_try_can_mend_is_invalid_and_told_with_a_remedy(
    undisturbed: dict[str, Any], server: Loopback, tmp_path: Path, kind: str, reply: Reply, remedy: str
) -> None:
    data = tmp_path / "data"
    server.handler = lambda body: reply

    outcome = run(data, **request(server.base_url))

    assert all(remedy in told and CANARY not in told for told in outcome.failures)
    if kind == "context_window":  # another prompt may fit
        assert len(outcome.failures) == 3  # two evaluations and the exploration
        assert len(server.requests) == 7 + 7 + 1  # once each episode
    else:
        assert len(outcome.failures) == 1
        assert REFUSALS_BELIEVED <= len(server.requests) <= REFUSALS_BELIEVED + CEILING
    warehouse = Warehouse(data)
    rows = warehouse.sql("select distinct status, final_score, end_reason from stg_episodes").rows()
    assert rows == [("invalid", None, kind)]
    assert warehouse.sql("select distinct error_kind, verifier_reward from stg_steps").rows() == [(kind, None)]
    assert warehouse.sql("select distinct score, is_valid from improvement_curve").rows() == [(None, False)]

    if kind == "authentication":  # once the key is there, nothing is left of it
        server.handler = play
        assert run(data, **request(server.base_url)).failures == []
        assert but_for_failures(contents(data)) == but_for_failures(undisturbed)


def but_for_failures(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Tables without the columns that tell of calls which failed on the way."""
    told = ("failed_attempts", "failed_cost_usd")
    kept = {name: [{k: v for k, v in row.items() if k not in told} for row in rows] for name, rows in tables.items()}
    return {name: sorted(rows, key=repr) for name, rows in kept.items()}


def test_an_endpoint_that_goes_down_in_mid_run_ends_it_is_told_once_and_makes_no_zero(
    undisturbed: dict[str, Any], server: Loopback, tmp_path: Path
) -> None:
    data, answered = tmp_path / "data", 30
    asked = iter(range(1, 1000))
    server.handler = lambda body: play(body) if next(asked) <= answered else failure(500, "out of order")
    began = time.monotonic()

    outcome = run(data, **request(server.base_url, give_up_seconds=0.5))

    assert time.monotonic() - began < 30
    (told,) = outcome.failures
    assert told.startswith(f"{server.base_url} is given up: ") and "out of order" in told
    warehouse = Warehouse(data)
    invalid = "select distinct end_reason, final_score, is_success from stg_episodes where status = 'invalid'"
    assert warehouse.sql(invalid).rows() == [("server", None, None)]
    curve = warehouse.sql("select is_valid, score from improvement_curve").rows()
    assert all((score is None) != is_valid for is_valid, score in curve) and (False, None) in curve

    server.handler = play
    server.requests.clear()
    assert run(data, **request(server.base_url)).failures == []
    assert len(server.requests) == CALLS - answered
    assert but_for_failures(contents(data)) == but_for_failures(undisturbed)


def test_a_run_stops_at_its_limit_of_calls_and_raised_ends_as_if_there_had_been_none(
    undisturbed: dict[str, Any], server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"

    stopped = run(data, **request(server.base_url, max_calls=20))
    assert stopped.failures == [] and stopped.stopped is not None
    assert len(server.requests) == 20
    assert running.run(load_config(None, request(server.base_url, max_calls=33)), data) == 1
    told = capsys.readouterr().err
    assert "Stopped: 33 calls are made, max_calls = 33" in told and "Failed" not in told
    assert len(server.requests) == 33

    raised = run(data, **request(server.base_url, max_calls=CALLS))
    assert (raised.failures, raised.stopped, len(server.requests)) == ([], None, CALLS)
    assert contents(data) == undisturbed


# --- processes -------------------------------------------------------------------------------------------------

IN_FLIGHT, RECORDED = 64, 5


@pytest.fixture(scope="module")
def held(prefect_api: str, endpoint: Loopback, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happens to a run with 64 calls in flight: a second one beside it, SIGKILL, and the same run again."""
    data = tmp_path_factory.mktemp("held") / "data"
    one_round = {"trust": {"evaluation": {"horizon": 1}}}
    asked = request(endpoint.base_url, game=one_round, pathways=["none"], evaluation_episodes=70, parallel=IN_FLIGHT)
    endpoint.requests.clear()
    gate = endpoint.handler = Gate(RECORDED, IN_FLIGHT)
    process = start(data, asked)
    try:
        gate.wait_until_full(process)
        with pytest.raises(StorageError) as refused:
            run(data, **asked)
    finally:
        process.kill()
        process.communicate()
        gate.open()
    before = distinct(endpoint.requests)
    with closing(sqlite3.connect(data / "journal.sqlite")) as journal:
        (recorded,) = journal.execute("select count(*) from calls").fetchone()
    endpoint.requests.clear()
    endpoint.handler = play
    outcome = run(data, **asked)
    return {
        "exit": process.returncode,
        "owner": process.pid,
        "refused": str(refused.value),
        "before": before,
        "in flight": {json.dumps(body, sort_keys=True) for body in gate.held},
        "recorded": recorded,
        "failures": outcome.failures,
        "call count": len(endpoint.requests),
        "after": distinct(endpoint.requests),
        "data": data,
    }


def test_a_second_process_on_the_folder_is_told_who_holds_it_and_asks_nothing(held: dict[str, Any]) -> None:
    assert f"another run (process {held['owner']}) is writing to {held['data']}" in held["refused"]
    assert len(held["before"]) == RECORDED + IN_FLIGHT


def test_of_64_calls_in_flight_at_a_sigkill_those_alone_are_made_again(held: dict[str, Any]) -> None:
    assert (held["exit"], held["recorded"]) == (-signal.SIGKILL, RECORDED)
    assert held["failures"] == []
    # 70 matches of one round at two checkpoints
    assert held["call count"] == len(held["after"]) == 2 * 70 - RECORDED
    assert held["before"].keys() & held["after"].keys() == held["in flight"]
    assert len(held["in flight"]) == IN_FLIGHT


# --- credentials -----------------------------------------------------------------------------------------------

HEADER, ADDRESS = "Zx81-header-secret", "Qy27-address-secret"
NASTY = (
    f"upstream refused {CANARY}: {{'Authorization': 'Bearer {HEADER}', 'x-api-key': '{HEADER}'}} "
    f"for http://me:{ADDRESS}@10.0.0.1/v1?key={ADDRESS}"
)


def written(folder: Path) -> str:
    """Every byte of every file below ``folder``, as text."""
    return "".join(path.read_bytes().decode("latin-1") for path in sorted(folder.rglob("*")) if path.is_file())


def told_by_journal(data: Path) -> str:
    """Everything in a journal, its compressed messages too."""
    with closing(sqlite3.connect(data / "journal.sqlite")) as journal:
        calls = journal.execute("select completion, facts from calls").fetchall()
        messages = journal.execute("select message from messages").fetchall()
    return repr(calls) + "".join(zlib.decompress(message).decode() for (message,) in messages)


def test_no_credential_is_found_anywhere_after_a_run(
    undisturbed: dict[str, Any],
    server: Loopback,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = tmp_path / "data"
    asked = iter(range(1, 1000))
    bad = {3: failure(500, NASTY), 9: failure(400, NASTY), 12: failure(401, NASTY, {"WWW-Authenticate": HEADER})}
    server.handler = lambda body: bad.get(next(asked)) or play(body)
    caplog.set_level(logging.DEBUG)

    assert running.run(load_config(None, request(server.base_url)), data) == 1

    out, err = capfd.readouterr()
    prefect = written(Path(os.environ["PREFECT_HOME"]))
    places = {
        "output": out + err,
        "log": caplog.text,
        "files": written(data),  # the report, and what Prefect keeps of results
        "tables": repr(contents(data)),
        "journal": told_by_journal(data),
        "Prefect": prefect,
    }
    assert server.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    assert all("[redacted]" in places[place] for place in ("output", "files", "tables", "journal"))
    assert Warehouse(data).sql("select run_id from stg_runs").item() in prefect
    assert (data / "report.html").exists()
    found = [
        (place, secret) for place, text in places.items() for secret in (CANARY, HEADER, ADDRESS) if secret in text
    ]
    assert found == []


@pytest.mark.parametrize("address", [f"http://me:{ADDRESS}@127.0.0.1:9/v1", f"http://127.0.0.1:9/v1?key={ADDRESS}"])
@pytest.mark.parametrize("price", ["", ", prompt_price = 1.0"])
def test_an_address_with_a_credential_is_refused_before_anything_is_written(
    tmp_path: Path, address: str, price: str
) -> None:
    model = f'models=[{{id = "openai/x", base_url = "{address}"{price}}}]'
    arguments = ["run", "--data", str(tmp_path / "data"), "--set", model]

    ended = CliRunner().invoke(cli.main, arguments)

    assert ended.exit_code == 2 and "Error: model" in ended.output
    assert ADDRESS not in ended.output
    assert not (tmp_path / "data").exists()
