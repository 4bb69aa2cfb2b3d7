import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from s3gym.journal import Journal, JournalError
from s3gym.models.base import Completion, ModelError, Request
from s3gym.records import CallFacts
from tests.models.loopback import request_of

ANSWER = Completion(
    text="Answer: UP, Score: 0 🍎",
    reasoning="hm",
    facts=CallFacts(prompt_tokens=20, cost_usd=0.1, latency_seconds=0.5, finish_reason="stop"),
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as opened:
        yield opened


def keep(journal: Journal, request: Request, answer: Completion = ANSWER) -> str:
    key = journal.key({"model": "m"}, request)
    journal.record(key, "m", None, request, answer)
    return key


def test_an_answer_comes_back_whole(journal: Journal) -> None:
    key = keep(journal, request_of())
    assert journal.lookup(key) == ANSWER


def test_what_was_never_asked_is_not_there(journal: Journal) -> None:
    assert journal.lookup("nothing") is None
    assert journal.attempts_of("nothing") == []
    assert journal.failed_attempts("nothing") == (0, None)


def test_a_failure_is_kept_and_never_replayed(journal: Journal, tmp_path: Path) -> None:
    key = journal.key({"model": "m"}, request_of())
    journal.record(key, "m", None, request_of(), ModelError("timeout", "no answer within 5 s"))
    assert journal.lookup(key) is None
    stored = sqlite3.connect(tmp_path / "journal.db").execute(
        "select attempt, completion, facts ->> 'error_kind' from calls"
    )
    assert stored.fetchall() == [(1, None, "timeout")]


def test_attempts_are_numbered_on_after_a_restart(tmp_path: Path) -> None:
    request = request_of()
    with Journal(tmp_path / "journal.db") as journal:
        key = journal.key({}, request)
        paid = ModelError("truncated", "too long", paid=CallFacts(cost_usd=0.25))
        journal.record(key, "m", "stage", request, paid)
        journal.record(key, "m", "stage", request, ModelError("server", "oops"))
        assert journal.failed_attempts(key) == (2, 0.25)
    with Journal(tmp_path / "journal.db") as journal:
        journal.record(key, "m", "stage", request, ANSWER)
        assert [call.attempt for call in journal.attempts_of(key)] == [1, 2, 3]
        assert journal.failed_attempts(key) == (2, 0.25)
        assert journal.lookup(key) is not None


def test_the_first_success_is_the_answer_for_ever(journal: Journal) -> None:
    key = keep(journal, request_of())
    keep(journal, request_of(), Completion(text="another"))
    found = journal.lookup(key)
    assert found is not None and found.text == ANSWER.text


def test_the_key_is_made_of_all_that_can_change_an_answer_and_of_nothing_else(journal: Journal) -> None:
    base = request_of("hello", seed=1, temperature=0.5)
    other_requests = [
        request_of("hello!", seed=1, temperature=0.5),
        request_of("hello", seed=2, temperature=0.5),
        request_of("hello", seed=1, temperature=None),
        replace(base, purpose="judge"),
        replace(base, decoding=replace(base.decoding, max_output_tokens=99)),
        replace(base, messages=({"role": "assistant", "content": "hello"},)),
        replace(base, messages=base.messages * 2),
    ]
    keys = {journal.key({"model": "m"}, request) for request in [base, *other_requests]}
    keys.add(journal.key({"model": "m", "revision": "2"}, base))
    assert len(keys) == 1 + len(other_requests) + 1
    patient = request_of("hello", seed=1, temperature=0.5, timeout_seconds=99.0)
    assert journal.key({"model": "m"}, patient) == journal.key({"model": "m"}, base)


def test_a_message_that_requests_share_is_stored_once(journal: Journal, tmp_path: Path) -> None:
    episode = [{"role": "user", "content": f"step {number}"} for number in range(5)]
    for length in (1, 3, 5):  # 9 messages sent, 5 different
        keep(journal, replace(request_of(), messages=tuple(episode[:length])))
    with Journal(tmp_path / "journal.db") as again:  # a new process does not know what is stored
        keep(again, replace(request_of(seed=1), messages=tuple(episode)))
    reader = sqlite3.connect(tmp_path / "journal.db")
    assert reader.execute("select count(*) from messages").fetchone() == (5,)
    # one hash of 32 bytes a message
    assert reader.execute("select length(messages) / 32 from calls order by created_at").fetchall() == [
        (1,),
        (3,),
        (5,),
        (5,),
    ]


def test_any_text_can_be_kept(journal: Journal) -> None:
    strange = "\x00\ud800\u2028'\"\\"
    key = keep(journal, request_of(strange), Completion(text=strange))
    found = journal.lookup(key)
    assert found is not None and found.text == strange


WRITER = """
import os, signal, sys
from pathlib import Path
from s3gym.journal import Journal
from s3gym.models.base import Completion
from tests.models.loopback import request_of
journal = Journal(Path(sys.argv[1]))
for number in range(25):
    journal.record("shared", "m", None, request_of(str(number)), Completion(text=str(number)))
    print(number, flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""
ROOT = Path(__file__).parent.parent


def writer(path: Path, end: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(path), end]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_killed_process_loses_nothing_it_had_recorded(tmp_path: Path) -> None:
    process = writer(tmp_path / "journal.db", "killed")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    with Journal(tmp_path / "journal.db") as journal:
        assert len(journal.attempts_of("shared")) == len(said.split()) == 25


def test_processes_share_a_journal_from_its_first_moment(tmp_path: Path) -> None:
    processes = [writer(tmp_path / "journal.db", "done") for _ in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    reader = sqlite3.connect(tmp_path / "journal.db")
    assert reader.execute("select count(*), max(attempt) from calls").fetchone() == (
        75,
        75,
    )  # 3 x 25, none numbered twice


def test_a_file_that_is_no_journal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(os.urandom(8192))
    with pytest.raises(JournalError, match="journal.db: .*move it away"):
        Journal(path)


def test_a_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    Journal(path).close()
    connection = sqlite3.connect(path)
    connection.execute("pragma user_version = 99")
    connection.close()
    with pytest.raises(JournalError, match="version 99, this s3gym writes 2"):
        Journal(path)


# --- looking at calls ---------------------------------------------------------------------------------------------


def test_calls_come_newest_first_and_can_be_chosen(journal: Journal) -> None:
    for number, (model, stage) in enumerate([("a", "s1"), ("b", "s1"), ("a", "s2")]):
        journal.record(f"k{number}", model, stage, request_of(seed=number), ANSWER)
    journal.record("k2", "a", "s2", request_of(seed=2), ModelError("timeout", "no answer"))

    def keys(limit: int = 9, **chosen: object) -> list[tuple[str, int]]:
        return [(call.key, call.attempt) for call in journal.calls(limit, **chosen)]  # type: ignore[arg-type]

    assert keys() == [("k2", 2), ("k2", 1), ("k1", 1), ("k0", 1)]
    assert keys(limit=2) == [("k2", 2), ("k2", 1)]
    assert keys(model_id="b") == [("k1", 1)]
    assert keys(stage="s1") == [("k1", 1), ("k0", 1)]
    assert keys(only_failed=True) == [("k2", 2)]


def test_a_call_is_shown_as_it_was_asked_and_answered(journal: Journal) -> None:
    request = replace(
        request_of("strange \ud800", seed=4), messages=request_of("a").messages + request_of("b").messages
    )
    journal.record("key", "m", "stage", request, ModelError("server", "oops"))
    journal.record("key", "m", "stage", request, ANSWER)

    failed, answered = journal.attempts_of("ke")

    assert (failed.attempt, failed.is_answered, failed.facts.error_kind) == (1, False, "server")
    assert (answered.attempt, answered.is_answered, answered.facts) == (2, True, ANSWER.facts)
    assert (answered.model_id, answered.stage_key, answered.purpose, answered.seed) == ("m", "stage", "act", 4)
    assert journal.request_of(answered) == request.messages
    assert journal.answer_of(failed) is None
    assert journal.answer_of(answered) == (ANSWER.text, ANSWER.reasoning)


def test_reading_changes_nothing_and_works_beside_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        keep(journal, request_of())
        with Journal(path, is_read_only=True) as reader:
            keep(journal, request_of(seed=1))
            assert len(reader.calls(9)) == 2
            with pytest.raises(JournalError, match="readonly"):
                keep(reader, request_of())
    before = path.read_bytes()
    with Journal(path, is_read_only=True) as reader:
        assert len(reader.calls(9)) == 2
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["journal.db"]


def test_a_journal_to_read_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="unable to open"):
        Journal(tmp_path / "journal.db", is_read_only=True)
    assert list(tmp_path.iterdir()) == []


# --- pruning ------------------------------------------------------------------------------------------------------


def test_pruning_takes_the_calls_of_the_stages_given_and_messages_nobody_else_needs(
    journal: Journal, tmp_path: Path
) -> None:
    shared, own, other = (request_of(text).messages for text in ("shared", "own " * 9999, "other"))
    for key, stage, messages in [("a", "done", shared + own), ("b", "open", shared + other), ("c", None, other)]:
        journal.record(key, "m", stage, replace(request_of(), messages=messages), ANSWER)
    unpriced = ModelError("timeout", "no answer")
    journal.record("a", "m", "done", replace(request_of(), messages=own), unpriced)

    held = journal.holdings({"done"})
    journal.prune({"done"})

    assert (held.calls, held.messages, held.cost_usd, held.priced_calls) == (2, 1, 0.1, 1)
    assert held.size > 100
    assert journal.lookup("a") is None
    assert journal.lookup("b") is not None and journal.lookup("c") is not None
    (kept, _) = journal.attempts_of("b")[0], journal.attempts_of("c")[0]
    assert journal.request_of(kept) == shared + other
    reader = sqlite3.connect(tmp_path / "journal.db")
    assert reader.execute("select count(*) from messages").fetchone() == (2,)


def test_what_was_pruned_is_still_spent(journal: Journal) -> None:
    for seed in range(3):
        journal.record(str(seed), "m", "stage", request_of(seed=seed), ANSWER)
    journal.prune({"stage"})
    journal.record("3", "m", "stage", request_of(seed=3), ANSWER)
    assert journal.spent({"stage"}) == (4, pytest.approx(0.4))
    journal.prune({"stage"})
    assert journal.spent({"stage"}) == (4, pytest.approx(0.4))


def test_a_message_that_was_pruned_is_stored_again_when_it_is_sent_again(journal: Journal) -> None:
    journal.record("a", "m", "done", request_of("hello"), ANSWER)
    journal.prune({"done"})
    journal.record("b", "m", "open", request_of("hello"), ANSWER)
    assert journal.request_of(journal.attempts_of("b")[0]) == request_of("hello").messages


def test_pruning_gives_the_space_back(journal: Journal, tmp_path: Path) -> None:
    for seed in range(20):
        journal.record(str(seed), "m", "done", request_of(os.urandom(5000).hex(), seed=seed), ANSWER)
    size = journal.holdings({"done"}).size
    journal.prune(set())
    before = (tmp_path / "journal.db").stat().st_size
    journal.prune({"done"})
    freed = before - (tmp_path / "journal.db").stat().st_size
    assert 0.7 * freed < size < 1.3 * freed
