"""The Prefect server of a run: the one PREFECT_API_URL names, else a temporary one that ends with the run.

A run that is killed leaves its temporary server behind. It carries the data folder's name in its environment, so
the next run on that folder, which holds the folder's lock, knows it as an orphan and ends it, and no other process.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "S3GYM_SERVER_OF"
_COMMAND = b"prefect.server.api.server:create_app"


@contextmanager
def orchestration_server(data: Path) -> Iterator[None]:
    """A server for the time of a run on ``data``; the caller holds the folder's lock."""
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if PREFECT_API_URL.value():
        yield
        return
    end_orphans(data)
    os.environ[MARK] = str(data.resolve())
    server = SubprocessASGIServer()
    try:
        server.start()
        with temporary_settings({PREFECT_API_URL: server.api_url}):
            yield
    finally:
        server.stop()
        del os.environ[MARK]


def end_orphans(data: Path) -> list[int]:
    """Ends the servers that killed runs on ``data`` left behind; their process ids. Needs /proc (Linux)."""
    mark = f"{MARK}={data.resolve()}".encode()
    ended = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = _COMMAND in (folder / "cmdline").read_bytes() and mark in (folder / "environ").read_bytes().split(
                b"\0"
            )
            if is_ours:
                os.kill(int(folder.name), signal.SIGTERM)
                ended.append(int(folder.name))
        except OSError:  # gone meanwhile, or another user's
            continue
    return ended
