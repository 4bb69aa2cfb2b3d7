"""One Prefect server for all flow tests, and a run that is played once and read by many."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.benchmark import Outcome, measure
from flows.server import temporary_server
from s3gym.config import load_config


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server of our own, also in the environment of subprocesses."""
    os.environ["PREFECT_HOME"] = str(tmp_path_factory.mktemp("prefect"))
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_server(tmp_path_factory.mktemp("server")) as url, temporary_settings({PREFECT_API_URL: url}):
        os.environ["PREFECT_API_URL"] = url
        yield url
        del os.environ["PREFECT_API_URL"]


def run(data: Path, *assignments: str, **values: Any) -> Outcome:
    """Measures in this process."""
    config = load_config(None, values, assignments)
    return measure(config, data, lambda kind, number: None, lambda work: None)


@pytest.fixture(scope="session")
def smoke(prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data folder of a default smoke run: three games, all players and pathways. Read only."""
    data = tmp_path_factory.mktemp("smoke") / "data"
    outcome = run(data, scale="smoke")
    assert outcome.failures == []
    return data
