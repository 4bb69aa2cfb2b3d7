"""Every hosted call ever made into a data folder, so that none is paid twice: one SQLite file in WAL mode.

A call is found again by its key: model identity, decoding, messages, purpose and seed. Only a success answers
for a later call; failed attempts are kept as facts. A chat message is stored once, however many requests
repeat it. Several processes may use the file. A killed process loses at most the calls not yet recorded.
No credential gets here: identities hold none and error messages come redacted.
"""

import json
import sqlite3
from collections.abc import Iterator
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

SCHEMA_VERSION = 1
BUSY_SECONDS = 60.0
"""How long a write waits for another process's."""

_TABLES = """
create table if not exists messages (
    hash blob primary key,     -- SHA-256 of role, line break, content
    message text not null      -- JSON: role and content
);
create table if not exists calls (
    key text not null,
    attempt integer not null,  -- from 1, over all processes and restarts
    model_id text not null,
    purpose text not null,
    seed integer not null,
    messages blob not null,    -- the hashes of the request's messages, 32 bytes each, in order
    completion text,           -- JSON, whole; null when the attempt failed
    error_kind text,           -- null when it succeeded
    error_message text,
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
        rows = self._select(f"select completion from calls where {found}", key)
        if not rows:
            return None
        stored = json.loads(rows[0][0])
        return Completion(**{**stored, "facts": CallFacts(**stored["facts"]), "is_replayed": True})

    def attempts(self, key: str) -> int:
        """How often the call was made, failures included."""
        return int(self._select("select count(*) from calls where key = ?", key)[0][0])

    def record_success(self, key: str, model_id: str, request: Request, completion: Completion) -> None:
        """Keeps an answer as the next attempt of its key."""
        self._record(key, model_id, request, json.dumps(asdict(completion)), None, None)

    def record_failure(self, key: str, model_id: str, request: Request, error: ModelError) -> None:
        """Keeps a failure as the next attempt of its key."""
        self._record(key, model_id, request, None, error.kind, error.message)

    def _record(
        self,
        key: str,
        model_id: str,
        request: Request,
        completion: str | None,
        error_kind: str | None,
        error_message: str | None,
    ) -> None:
        hashes = _hashes(request)
        new = {
            digest: json.dumps(message)  # ASCII: any text can be stored
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
                    request.purpose,
                    request.seed,
                    b"".join(hashes),
                    completion,
                    error_kind,
                    error_message,
                    datetime.now(UTC).isoformat(),
                ),
            )
        self._stored.update(new)

    def _select(self, query: str, key: str) -> list[tuple[Any, ...]]:
        with self._lock, self._explained():
            return self._connection.execute(query, (key,)).fetchall()

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
