"""The Prefect server of a run or a schedule: the one PREFECT_API_URL names, else one of our own.

A run's own server is temporary. It is started in a session of its own, so that a Ctrl-C reaches the run alone and the
server is there until the run has said goodbye. A run that is killed leaves its server behind. The server carries the
data folder's name in its environment, so the next run on that folder, which holds the folder's lock, knows it as an
orphan and ends it, and no other process. A schedule's own server is the same but for its database, which stays in the
data folder: what was due while nobody served is known afterwards.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from s3gym.errors import Explained

MARK = "S3GYM_SERVER_OF"
SCHEDULE_MARK = "S3GYM_SCHEDULE_SERVER_OF"
PATIENCE_SECONDS = 120
"""A first start makes Prefect's database, which may take long."""
PREFERRED_PORT = 4200
"""Where people expect Prefect's pages; another one when it is taken."""

_APP = "prefect.server.api.server:create_app"
_REMEDY = "start one with `prefect server start` and name it in PREFECT_API_URL"


class ServerError(Explained):
    """The server cannot be had, or used."""


class ServerUnreachable(ServerError):
    """Nobody answers; that may pass."""


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
def schedule_server(data: Path) -> Iterator[str]:
    """URL of a server that schedules refreshes of ``data``; the caller holds the folder as its schedule.

    Raises:
        ServerError: it cannot be had, does not answer, or is of a version that cannot be used.
    """
    from prefect.settings import PREFECT_API_URL, temporary_settings

    if url := PREFECT_API_URL.value():
        check_server()
        yield url
        return
    end_orphans(data, SCHEDULE_MARK)
    with lasting_server(data) as url, temporary_settings({PREFECT_API_URL: url}):
        yield url


def check_server() -> None:
    """Whether the server that PREFECT_API_URL names can be used.

    Raises:
        ServerUnreachable: it does not answer.
        ServerError: it refuses us, or is of another version.
    """
    import httpx
    from prefect import __version__
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

    url = str(PREFECT_API_URL.value())
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 1}), get_client(sync_client=True) as client:
        try:
            found = str(client.api_version())
        except httpx.HTTPStatusError as error:
            raise ServerError(
                f"the Prefect server at {url} answers {error.response.status_code}; check PREFECT_API_URL, "
                "PREFECT_API_KEY and PREFECT_API_AUTH_STRING"
            ) from None
        except (httpx.HTTPError, OSError, ValueError):
            raise ServerUnreachable(
                f"no Prefect server answers at {url}; start it, or unset PREFECT_API_URL for one of our own"
            ) from None
    if found.split(".")[0] != __version__.split(".")[0]:
        raise ServerError(
            f"the Prefect server at {url} has version {found}, this is Prefect {__version__}: their first numbers must "
            "agree; install one of the other's, or unset PREFECT_API_URL for a server of our own"
        )


@contextmanager
def temporary_server(data: Path) -> Iterator[str]:
    """URL of a Prefect server that ends with the block.

    Raises:
        ServerError: it ends at once, or does not answer in time.
    """
    with _server(_free_port(0), {"PREFECT_UI_ENABLED": "0", MARK: str(data.resolve())}) as url:
        yield url


@contextmanager
def lasting_server(data: Path) -> Iterator[str]:
    """URL of a Prefect server with pages to look at, which ends with the block and keeps its state in ``data``.

    Raises:
        ServerError: it ends at once, or does not answer in time.
    """
    folder = data.resolve() / "server"
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port(PREFERRED_PORT)
    environment = {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder / 'prefect.db'}",
        "PREFECT_UI_ENABLED": "1",
        "PREFECT_UI_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_UI_STATIC_DIRECTORY": str(folder / "pages"),
        SCHEDULE_MARK: str(data.resolve()),
    }
    with _server(port, environment) as url:
        yield url


@contextmanager
def _server(port: int, environment: Mapping[str, str]) -> Iterator[str]:
    from prefect.settings import get_current_settings

    command = [sys.executable, "-m", "uvicorn", "--factory", _APP, "--host", "127.0.0.1", "--port", str(port)]
    settings = get_current_settings().to_environment_variables(exclude_unset=True)
    process = subprocess.Popen(
        [*command, "--log-level", "critical"],
        env={**os.environ, **settings, **environment},
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


def _free_port(preferred: int) -> int:
    """``preferred`` where nobody listens there, else any."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ServerError(f"no port is free for the temporary Prefect server; {_REMEDY}")


def end_orphans(data: Path, mark: str = MARK) -> list[int]:
    """Ends the servers that killed runs on ``data`` left behind; their process ids. Needs /proc (Linux)."""
    marked = f"{mark}={data.resolve()}".encode()
    ended = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            if marked in environment and _APP.encode() in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGTERM)
                ended.append(int(folder.name))
        except OSError:  # gone meanwhile, or another user's
            continue
    return ended


def _await_answer(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerError(f"the temporary Prefect server ended at once (code {process.returncode}); {_REMEDY}")
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise ServerError(f"the temporary Prefect server did not answer in {PATIENCE_SECONDS} s; {_REMEDY}")
