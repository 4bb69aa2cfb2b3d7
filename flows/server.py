"""The Prefect server of a run: the one PREFECT_API_URL names, else a temporary one that ends with the run.

It is started in a session of its own, so that a Ctrl-C reaches the run alone and the server is there until the run
has said goodbye. A run that is killed leaves its server behind. The server carries the data folder's name in its
environment, so the next run on that folder, which holds the folder's lock, knows it as an orphan and ends it, and
no other process.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from s3gym.errors import Explained

MARK = "S3GYM_SERVER_OF"
PATIENCE_SECONDS = 120
"""A first start makes Prefect's database, which may take long."""

_APP = "prefect.server.api.server:create_app"


class ServerError(Explained):
    """The temporary server cannot be had."""


@contextmanager
def orchestration_server(data: Path) -> Iterator[None]:
    """A server for the time of a run on ``data``; the caller holds the folder's lock."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if PREFECT_API_URL.value():
        yield
        return
    end_orphans(data)
    with temporary_server(data) as url, temporary_settings({PREFECT_API_URL: url}):
        yield


@contextmanager
def temporary_server(data: Path) -> Iterator[str]:
    """URL of a Prefect server that ends with the block.

    Raises:
        ServerError: it ends at once, or does not answer in time.
    """
    from prefect.settings import get_current_settings

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--factory", _APP, "--host", "127.0.0.1", "--port", str(port)]
    settings = get_current_settings().to_environment_variables(exclude_unset=True)
    process = subprocess.Popen(
        [*command, "--log-level", "critical"],
        env={**os.environ, **settings, "PREFECT_UI_ENABLED": "0", MARK: str(data.resolve())},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}/api"
    try:
        _await_answer(f"{url}/health", process)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def end_orphans(data: Path) -> list[int]:
    """Ends the servers that killed runs on ``data`` left behind; their process ids. Needs /proc (Linux)."""
    mark = f"{MARK}={data.resolve()}".encode()
    ended = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            if mark in environment and _APP.encode() in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGTERM)
                ended.append(int(folder.name))
        except OSError:  # gone meanwhile, or another user's
            continue
    return ended


def _await_answer(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerError(
                f"the temporary Prefect server ended at once (code {process.returncode}); "
                "start one with `prefect server start` and name it in PREFECT_API_URL"
            )
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise ServerError(
        f"the temporary Prefect server did not answer in {PATIENCE_SECONDS} s; "
        "start one with `prefect server start` and name it in PREFECT_API_URL"
    )
