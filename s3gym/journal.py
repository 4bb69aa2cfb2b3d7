"""Every model call ever made into a data folder, so that none is paid or computed twice: one SQLite file in WAL mode.

A call is found again by its key: model identity, decoding, messages, purpose and seed. Only a success answers
for a later call; failed attempts are kept as facts, with what they cost. A chat message is stored once, compressed,
however many requests repeat it. Several processes may use the file. A killed process loses at most the calls not yet
recorded. Calls are only deleted by ``prune``, when asked; what they cost is still counted then.
No credential gets here: identities hold none and error messages come redacted.
"""

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from s3gym.errors import Explained
from s3gym.models.base import Completion, ModelError, Request
from s3gym.records import CallFacts
from s3gym.transcript import Message

FILE = "journal.sqlite"
"""Its name in a data folder."""
SCHEMA_VERSION = 2
BUSY_SECONDS = 60.0
"""How long a write waits for another process's."""

_TABLES = """
create table if not exists messages (
    hash blob primary key,     -- SHA-256 of role, line break, content
    message blob not null      -- zlib over JSON: role and content
);
create table if not exists calls (
    key text not null,
    attempt integer not null,  -- from 1, over all processes and restarts
    model_id text not null,
    stage_key text,            -- of the stage that asked; null outside a run
    purpose text not null,
    seed integer not null,
    messages blob not null,    -- the hashes of the request's messages, 32 bytes each, in order
    completion text,           -- JSON: text and reasoning, whole; null when the attempt failed
    facts text not null,       -- JSON: tokens, cost, latency, error
    created_at text not null,  -- UTC
    primary key (key, attempt)
);
create table if not exists pruned (
    stage_key text primary key,
    call_count integer not null,  -- calls deleted, which a run's limits still count
    cost_usd real not null
);
"""
_HASH_BYTES = 32
_OF_STAGES = "stage_key in (select value from json_each(?))"
_OF_A_CALL = "model_id, stage_key, purpose, seed, messages, completion, facts, created_at"
"""What an attempt is told apart by, beside its key."""


class JournalError(Explained):
    """The journal cannot be used; the message says which file and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt, as it is kept."""

    key: str
    attempt: int
    """From 1; failures count."""
    model_id: str
    stage_key: str | None
    """Of the stage that asked; None outside a run."""
    purpose: str
    seed: int
    created_at: str
    """When it ended; UTC, ISO 8601."""
    is_answered: bool
    facts: CallFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """A share of what is kept."""

    calls: int
    messages: int
    """Messages that no other call refers to."""
    size: int
    """Bytes, roughly: what the rows hold, compressed as they are."""
    cost_usd: float
    """Paid for these calls, as far as it is known."""
    priced_calls: int
    """Calls whose cost is known."""


class Journal:
    """The calls of one data folder. Close it, or use it in ``with``."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        """Opens the file.

        Args:
            path: of the file; made if missing.
            is_read_only: changes nothing, and works on a folder that cannot be written to and beside a run; the file
                must be there.

        Raises:
            JournalError: it is no journal of this version, or cannot be opened.
        """
        self._path = path
        self._lock = Lock()  # one connection may serve several threads, a transaction at a time
        self._stored: set[bytes] = set()  # messages known to be in the file
        with self._explained():
            self._connection = _reader(path) if is_read_only else _writer(path)
            (version,) = self._connection.execute("pragma user_version").fetchone()
            if version == 0 and not is_read_only:
                version = SCHEMA_VERSION
                self._connection.execute(f"pragma user_version = {version}")
        if version != SCHEMA_VERSION:
            self.close()
            raise JournalError(
                f"journal {path} has schema version {version}, this s3gym writes {SCHEMA_VERSION}; "
                "use the s3gym that wrote it, or another folder with --data"
            )

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the file back."""
        self._connection.close()

    def key(self, identity: dict[str, Any], request: Request) -> str:
        """SHA-256 of all that can change the answer; the timeout cannot."""
        decoding = asdict(request.decoding)
        del decoding["timeout_seconds"]
        said = {
            "identity": identity,
            "decoding": decoding,
            "messages": [digest.hex() for digest in _hashes(request)],
            "purpose": request.purpose,
            "seed": request.seed,
        }
        return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def lookup(self, key: str) -> Completion | None:
        """The answer to a call made before, the first success of its attempts; None when there is none."""
        found = "key = ? and completion is not null order by attempt limit 1"
        rows = self._select(f"select completion, facts from calls where {found}", key)
        if not rows:
            return None
        stored, facts = (json.loads(text) for text in rows[0])
        return Completion(**stored, facts=CallFacts(**facts))

    def failed_attempts(self, key: str) -> tuple[int, float | None]:
        """(number, cost in US dollars where a provider said so) of the attempts that failed before any answer."""
        failed = "key = ? and completion is null"
        query = f"select count(*), sum(json_extract(facts, '$.cost_usd')) from calls where {failed}"
        count, cost = self._select(query, key)[0]
        return count, cost

    def spent(self, stage_keys: Collection[str]) -> tuple[int, float]:
        """(calls, US dollars where they are known) that these stages have ever made, failed ones included."""
        query = """
            select stage_key, count(*), total(json_extract(facts, '$.cost_usd')) from calls group by stage_key
            union all
            select stage_key, call_count, cost_usd from pruned
        """
        by_stage: dict[str, tuple[int, float]] = {}
        for stage, count, cost in self._select(query):
            before = by_stage.get(stage, (0, 0.0))
            by_stage[stage] = before[0] + count, before[1] + cost
        own = [by_stage[key] for key in stage_keys if key in by_stage]
        return sum(count for count, _ in own), sum(cost for _, cost in own)

    def record(
        self, key: str, model_id: str, stage_key: str | None, request: Request, outcome: Completion | ModelError
    ) -> None:
        """Keeps an answer or a failure as the next attempt of its key."""
        completion = None
        if isinstance(outcome, Completion):
            completion = json.dumps({"text": outcome.text, "reasoning": outcome.reasoning})
        hashes = _hashes(request)
        new = {
            digest: zlib.compress(json.dumps(message).encode())  # ASCII: any text can be stored
            for digest, message in zip(hashes, request.messages, strict=True)
            if digest not in self._stored
        }
        with self._lock, self._explained(), self._connection:
            self._connection.execute("begin immediate")  # attempts are numbered under the write lock
            self._connection.executemany("insert or ignore into messages values (?, ?)", new.items())
            self._connection.execute(
                "insert into calls select ?1, coalesce(max(attempt), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 "
                "from calls where key = ?1",
                (
                    key,
                    model_id,
                    stage_key,
                    request.purpose,
                    request.seed,
                    b"".join(hashes),
                    completion,
                    json.dumps(asdict(outcome.facts)),
                    datetime.now(UTC).isoformat(),
                ),
            )
        self._stored.update(new)

    def calls(self, limit: int, stage: str = "", model_id: str | None = None, only_failed: bool = False) -> list[Call]:
        """At most ``limit`` calls, newest first.

        Args:
            limit: most of them.
            stage: what the keys of their stages begin with.
            model_id: whose they are; None for all.
            only_failed: leaves out what was answered.
        """
        return self._calls(
            "substr(coalesce(stage_key, ''), 1, length(?1)) = ?1 and coalesce(model_id = ?2, true) "
            "and (completion is null or not ?3) order by rowid desc limit ?4",  # clocks jump, rowids only grow
            stage,
            model_id,
            only_failed,
            limit,
        )

    def attempts_of(self, key: str) -> list[Call]:
        """The attempts of each call whose key begins with ``key``, by key, in order."""
        return self._calls("substr(key, 1, length(?1)) = ?1 order by key, attempt", key)

    def request_of(self, call: Call) -> tuple[Message, ...]:
        """What was asked."""
        ((hashes,),) = self._select("select messages from calls where key = ? and attempt = ?", call.key, call.attempt)
        stored = (self._select("select message from messages where hash = ?", digest) for digest in _digests(hashes))
        return tuple(json.loads(zlib.decompress(rows[0][0])) for rows in stored)

    def answer_of(self, call: Call) -> tuple[str, str | None] | None:
        """Text and reasoning of the answer; None where the attempt failed."""
        query = "select completion from calls where key = ? and attempt = ?"
        ((completion,),) = self._select(query, call.key, call.attempt)
        if completion is None:
            return None
        answer = json.loads(completion)
        return answer["text"], answer["reasoning"]

    def stage_keys(self) -> set[str]:
        """The stages that asked."""
        return {key for (key,) in self._select("select distinct stage_key from calls where stage_key is not null")}

    def holdings(self, stage_keys: Collection[str]) -> Holdings:
        """What the calls of these stages take, with the messages nobody else refers to."""
        cost = "json_extract(facts, '$.cost_usd')"
        content = "2 * length(key) + length(messages) + length(facts) + coalesce(length(cast(completion as blob)), 0)"
        query = f"select count(*), total({cost}), count({cost}), total({content}) from calls where {_OF_STAGES}"
        ((calls, cost_usd, priced, size),) = self._select(query, json.dumps(list(stage_keys)))
        lonely = self._lonely(stage_keys)
        return Holdings(
            calls=calls,
            messages=len(lonely),
            size=int(size) + sum(lonely.values()),
            cost_usd=cost_usd,
            priced_calls=priced,
        )

    def prune(self, stage_keys: Collection[str]) -> None:
        """Deletes the calls of these stages and messages nobody refers to, and gives the space back.

        ``spent`` still counts them. The caller holds the folder: another process would not know that a message it
        has stored is gone.
        """
        given = json.dumps(list(stage_keys))
        lonely = [(digest,) for digest in self._lonely(stage_keys)]
        with self._lock, self._explained():
            with self._connection:
                self._connection.execute("begin immediate")
                self._connection.execute(
                    "insert into pruned select stage_key, count(*), total(json_extract(facts, '$.cost_usd')) "
                    f"from calls where {_OF_STAGES} group by stage_key on conflict (stage_key) do update "
                    "set call_count = call_count + excluded.call_count, cost_usd = cost_usd + excluded.cost_usd",
                    (given,),
                )
                self._connection.execute(f"delete from calls where {_OF_STAGES}", (given,))
                self._connection.executemany("delete from messages where hash = ?", lonely)
            self._stored.clear()
            self._connection.execute("vacuum")
            self._connection.execute("pragma wal_checkpoint(truncate)")

    def unite(self, other: "Journal") -> int:
        """Takes over what another journal holds and this does not, all of it or nothing; how many calls that were.

        An attempt that both have is one. Calls of a stage that was pruned here stay out, and what another pruned counts
        where nothing is known of its stage here: neither is counted twice by ``spent``.
        """
        with self._lock, self._explained(), self._connection:
            self._connection.execute("begin immediate")
            pruned = {key for (key,) in self._connection.execute("select stage_key from pruned")}
            known = {key for (key,) in self._connection.execute("select distinct stage_key from calls")} | pruned
            theirs = [row for row in other._select("select * from pruned") if row[0] not in known]
            self._connection.executemany("insert into pruned values (?, ?, ?)", theirs)
            needed: set[bytes] = set()

            def taken() -> Iterator[tuple[Any, ...]]:  # one by one: they may be many
                for row in other._connection.execute(f"select key, {_OF_A_CALL} from calls order by rowid"):
                    if row[2] not in pruned:
                        needed.update(_digests(row[5]))
                        yield row

            before = self._connection.total_changes
            same = " and ".join(f"{name} is ?{place}" for place, name in enumerate(_OF_A_CALL.split(", "), 2))
            self._connection.executemany(
                f"insert into calls (key, attempt, {_OF_A_CALL}) select ?1, "
                "(select coalesce(max(attempt), 0) + 1 from calls where key = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 "
                f"where not exists (select 1 from calls where key = ?1 and {same})",
                taken(),
            )
            count = self._connection.total_changes - before
            for digest, message in other._connection.execute("select hash, message from messages"):
                if digest in needed:
                    self._connection.execute("insert or ignore into messages values (?, ?)", (digest, message))
        return count

    def _calls(self, which: str, *values: Any) -> list[Call]:
        columns = "key, attempt, model_id, stage_key, purpose, seed, created_at, completion is not null, facts"
        return [
            Call(
                key=key,
                attempt=attempt,
                model_id=model_id,
                stage_key=stage_key,
                purpose=purpose,
                seed=seed,
                created_at=created_at,
                is_answered=bool(is_answered),
                facts=CallFacts(**json.loads(facts)),
            )
            for key, attempt, model_id, stage_key, purpose, seed, created_at, is_answered, facts in self._select(
                f"select {columns} from calls where {which}", *values
            )
        ]

    def _lonely(self, stage_keys: Collection[str]) -> dict[bytes, int]:
        """Messages to which no call but those of these stages refers, and the bytes of each."""
        others = f"select messages from calls where ({_OF_STAGES}) is not true"
        sizes = "select hash, 2 * length(hash) + length(message) from messages"
        with self._lock, self._explained():
            rows = self._connection.execute(others, (json.dumps(list(stage_keys)),))  # one by one: they may be many
            needed = {digest for (hashes,) in rows for digest in _digests(hashes)}
            return {digest: size for digest, size in self._connection.execute(sizes) if digest not in needed}

    def _select(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, self._explained():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise JournalError(
                f"journal {self._path}: {error}; check that the disk has space and that you may write there. "
                "If the file is damaged, move it away: calls of unfinished stages are then made again"
            ) from error


def _writer(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")  # safe against a kill, not power loss
    connection.executescript(_TABLES)
    return connection


def _reader(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing and leaves no file behind.

    SQLite reads a WAL file with the help of two more files. They are there beside a run and after a killed one; else
    a connection that might write takes them away again. Where they cannot be made, nobody writes either.
    """
    is_in_use = path.with_name(f"{path.name}-wal").exists()
    for how in ("mode=ro",) if is_in_use else ("mode=rw", "immutable=1"):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{how}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("pragma query_only = on")
        with suppress(sqlite3.OperationalError):
            connection.execute("select 1 from sqlite_master").fetchone()
            break
    return connection


def _digests(hashes: bytes) -> list[bytes]:
    return [hashes[place : place + _HASH_BYTES] for place in range(0, len(hashes), _HASH_BYTES)]


def _hashes(request: Request) -> list[bytes]:
    said = (f"{message['role']}\n{message['content']}" for message in request.messages)
    return [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in said]
