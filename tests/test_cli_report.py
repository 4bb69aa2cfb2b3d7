"""``s3gym report`` with its options, as typed."""

import shutil
from pathlib import Path

import pytest

from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.test_cli import cli


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two players in one game; read only."""
    folder = tmp_path_factory.mktemp("report") / "data"
    models = ["player:random", "player:learner"]
    measure_directly(folder, scale="smoke", games=["trust"], models=models, pathways=["none", "history"])
    return folder


def test_the_text_is_written_with_its_charts_and_tables(data: Path, tmp_path: Path) -> None:
    told = cli("report", "--data", data, "--out", tmp_path / "r.md", "--tables", tmp_path / "t", "--charts", tmp_path)

    assert told.exit_code == 0, told.output
    text = (tmp_path / "r.md").read_text()
    assert text.startswith("# Does the agent get better")
    charts = sorted(tmp_path.glob("*.svg"))
    assert charts and all(f"](<{chart.name}>)" in text for chart in charts)
    marts = [name for layer, name in Warehouse(data).views() if layer == "marts"]
    assert sorted(path.stem for path in (tmp_path / "t").iterdir()) == sorted(marts)
    assert f"Tables: {len(marts)} files in {tmp_path / 't'}" in told.output
    assert f"Charts: {len(charts)} files in {tmp_path}" in told.output


def test_the_format_may_be_named_and_charts_may_be_png(data: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(data, tmp_path / "data")

    told = cli(
        "report", "--data", folder, "--format", "md", "--game", "trust", "--model", "player:learner",
        "--charts", tmp_path / "c", "--chart-format", "png",
    )  # fmt: skip

    assert told.exit_code == 0, told.output
    part = (folder / "report-part.md").read_text()
    assert "A part of all that was measured: model player:learner; game trust." in part
    assert not (folder / "report.md").exists()
    assert {path.suffix for path in (tmp_path / "c").iterdir()} == {".png"}


def test_a_part_is_the_same_bytes_each_time_and_shows_nobody_else(data: Path, tmp_path: Path) -> None:
    pages = []
    for name in ("a.html", "b.html"):
        told = cli(
            "report", "--data", data, "--out", tmp_path / name, "--model", "player:learner", "--since", "2020-01-01"
        )
        assert told.exit_code == 0, told.output
        pages.append((tmp_path / name).read_bytes())

    assert pages[0] == pages[1]
    assert b"player:random" not in pages[0]
    assert b"runs since 1 January 2020" in pages[0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--model", "player:lerner"], "unknown model 'player:lerner'"),
        (["--game", "snak"], "unknown game 'snak'"),
        (["--since", "2999-01-01"], "no run since 2999-01-01"),
        (["--since", "tomorrow"], "does not match the format"),
        (["--since", "2020-01-01", "--run", "x"], "leave one of them out"),
    ],
)
def test_a_part_that_is_not_there_is_refused_and_nothing_written(
    data: Path, tmp_path: Path, options: list[str], told: str
) -> None:
    refused = cli("report", "--data", data, "--out", tmp_path / "r.html", *options)

    assert (refused.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert told in refused.output
