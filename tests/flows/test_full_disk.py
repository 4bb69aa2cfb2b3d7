"""A disk that fills up in the middle of a run."""

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from s3gym.config import load_config
from s3gym.terminal import running
from tests.direct import measure_directly
from tests.flows.conftest import run
from tests.flows.tables import contents

REQUEST: dict[str, Any] = {
    "scale": "smoke",
    "games": ["nullify"],
    "models": ["player:learner"],
    "pathways": ["history"],
}
WRITES = 7
"""Parquet files that the disk has room for: three of the request, and some of the first stages."""


def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_space(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    write_table, written = pq.write_table, iter(range(WRITES))

    def until_full(*arguments: Any, **options: Any) -> None:
        if next(written, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_table(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", until_full)
        assert running.run(load_config(None, REQUEST), data) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "No space left on device; free some disk space and run again; nothing written before is lost" in told
    assert "Traceback" not in told
    kept = {path: path.stat().st_mtime_ns for path in (data / "manifests").iterdir()}
    assert kept

    assert run(data, **REQUEST).failures == []

    assert kept.items() <= {path: path.stat().st_mtime_ns for path in (data / "manifests").iterdir()}.items()
    measure_directly(tmp_path / "undisturbed", **REQUEST)
    assert contents(data) == contents(tmp_path / "undisturbed")
