import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.server import MARK, end_orphans

SERVER = [sys.executable, "-c", "import time; time.sleep(60)", "prefect.server.api.server:create_app"]
OTHER = [sys.executable, "-c", "import time; time.sleep(60)", "something.else"]


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_only_the_server_of_a_killed_run_on_this_folder_is_ended(
    processes: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    here, elsewhere = {MARK: str(tmp_path.resolve())}, {MARK: "/another/folder"}
    processes += [subprocess.Popen(SERVER, env=here), subprocess.Popen(SERVER, env=elsewhere)]
    processes += [subprocess.Popen(SERVER, env={}), subprocess.Popen(OTHER, env=here)]
    orphan, *others = processes

    ended = end_orphans(tmp_path)

    assert ended == [orphan.pid]
    assert orphan.wait(timeout=5) < 0
    assert [process.poll() for process in others] == [None, None, None]
