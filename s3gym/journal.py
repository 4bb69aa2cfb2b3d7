"""Every hosted call ever made into a data folder, so that none is paid twice: one SQLite file in WAL mode.

A call is found again by its key: model identity, decoding, messages, purpose and seed. Only a success answers
for a later call; failed attempts are kept as facts, with what they cost. A chat message is stored once, compressed,
however many requests repeat it. Several processes may use the file. A killed process loses at most the calls not yet
recorded.
No credential gets here: identities hold none and error messages come redacted.
"""

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from s3gym.errors import Explained
from s3gym.models.base import Completion, ModelError, Request
from s3gym.records import CallFacts

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
"""


class JournalError(Explained):
    """The journal cannot be used; the message says which file and what to do."""


class Journal:
    """The calls of one data folder. Close it, or use it in ``with``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()  # one connection may serve several threads, a transaction at a time
        self._stored: set[bytes] = set()  # messages known to be in the file
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = normal")  # safe against a kill, not power loss
            self._connection.executescript(_TABLES)
            (version,) = self._connection.execute("pragma user_version").fetchone()
            if version == 0:
                self._connection.execute(f"pragma user_version = {SCHEMA_VERSION}")
        if version not in (0, SCHEMA_VERSION):
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
        return Completion(**stored, facts=CallFacts(**facts), is_replayed=True)

    def attempts(self, key: str) -> int:
        """How often the call was made, failures included."""
        return int(self._select("select count(*) from calls where key = ?", key)[0][0])

    def failed_attempts(self, key: str) -> tuple[int, float | None]:
        """(number, cost in US dollars where a provider said so) of the attempts that failed before any answer."""
        failed = "key = ? and completion is null"
        query = f"select count(*), sum(json_extract(facts, '$.cost_usd')) from calls where {failed}"
        count, cost = self._select(query, key)[0]
        return count, cost

    def spent(self, stage_keys: Collection[str]) -> tuple[int, float]:
        """(calls, US dollars where they are known) that these stages have ever made, failed ones included."""
        query = "select stage_key, count(*), total(json_extract(facts, '$.cost_usd')) from calls group by stage_key"
        by_stage = {stage: (count, cost) for stage, count, cost in self._select(query)}
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

    def _select(self, query: str, *values: str) -> list[tuple[Any, ...]]:
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


def _hashes(request: Request) -> list[bytes]:
    said = (f"{message['role']}\n{message['content']}" for message in request.messages)
    return [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in said]
