"""One small run, rendered once; and a browser to look at it with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from s3gym.report import render
from s3gym.resampling import refresh
from s3gym.warehouse import Warehouse
from tests.report import folder
from tests.report.chromium import Chromium


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    data = tmp_path_factory.mktemp("report") / "data"
    folder.make(data)
    warehouse = Warehouse(data, materialize=True)
    refresh(warehouse)
    return warehouse


@pytest.fixture(scope="session")
def built(warehouse: Warehouse) -> render.Page:
    return render.build(warehouse)


@pytest.fixture(scope="session")
def page(built: render.Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render.html(built), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Two models trained in each of two games, and tried in the other one."""
    data = tmp_path_factory.mktemp("trained") / "data"
    folder.make(data, games=("trust", "snake"), pathways=("none", "training"))
    return Warehouse(data, materialize=True)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
