"""One Prefect server for all flow tests, and a run that is played once and read by many."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.benchmark import Outcome, measure
from s3gym.config import load_config


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server of our own, also in the environment of subprocesses."""
    import flows  # noqa: F401 - sets the environment Prefect reads on import

    os.environ["PREFECT_HOME"] = str(tmp_path_factory.mktemp("prefect"))
    from prefect.server.api.server import SubprocessASGIServer
    from prefect.settings import PREFECT_API_URL, temporary_settings

    server = SubprocessASGIServer()
    server.start(timeout=120)
    os.environ["PREFECT_API_URL"] = server.api_url
    with temporary_settings({PREFECT_API_URL: server.api_url}):
        yield server.api_url
    server.stop()
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
