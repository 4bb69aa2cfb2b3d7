"""The page as text: what it says of a run, of an empty folder, and that it is the same each time."""

import html
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from s3gym import registry, storage
from s3gym.records import Run
from s3gym.report.render import render, render_text
from s3gym.resampling import refresh
from s3gym.warehouse import Warehouse
from tests.report import folder

SECTIONS = "s3gym.report.sections"
SILENT = {"drift", "break_location"}
"""Those that are left out of the page while there is nothing to say."""


def test_every_section_is_there_in_its_order(page: Path) -> None:
    found = re.findall(r'<section id="(\w+)"', page.read_text())

    orders = [registry.load(SECTIONS, name, "section").ORDER for name in found]
    assert {*registry.names(SECTIONS)} - {*found} <= SILENT
    assert orders == sorted(orders)
    assert found[0] == "summary"


@pytest.mark.parametrize("name", registry.names(SECTIONS))
def test_a_section_reads_views_that_exist(name: str, warehouse: Warehouse) -> None:
    views = {view for _, view in warehouse.views()}

    assert set(registry.load(SECTIONS, name, "section").MARTS) <= views


@pytest.mark.parametrize("name", sorted({*registry.names(SECTIONS)} - SILENT - {"how_to_read"}))
def test_a_section_without_rows_says_what_is_missing(name: str, tmp_path: Path) -> None:
    storage.open_folder(tmp_path / "data")

    built = registry.load(SECTIONS, name, "section").build(Warehouse(tmp_path / "data"))

    assert '<p class="notice">' in built
    assert "s3gym run" in re.sub("<.*?>", "", built)


def test_a_run_in_which_nothing_was_played_yet_can_be_shown(tmp_path: Path) -> None:
    run = Run(
        run_id="run-1",
        requested_at=datetime(2026, 11, 30, tzinfo=UTC),
        scale="smoke",
        config="{}",
        package_version="0.1.0",
    )
    storage.open_folder(tmp_path / "data")
    storage.write_request(tmp_path / "data", run, [folder.one_cell("openai/gpt-4.1", "trust", "memory")], [])

    text = render_text(Warehouse(tmp_path / "data"))

    assert "openai/gpt-4.1" in text
    assert "No episode has been played yet" in text


def test_the_same_tables_give_the_same_bytes(page: Path, tmp_path: Path) -> None:
    folder.make(tmp_path / "data")

    # when: the other way of reading views, which adds up in another order
    warehouse = Warehouse(tmp_path / "data")
    refresh(warehouse)
    again = render(warehouse, tmp_path / "report.html")

    assert again.read_bytes() == page.read_bytes()


def test_the_gain_of_a_cell_is_the_one_of_its_mart(warehouse: Warehouse, page: Path) -> None:
    gain = warehouse.sql("""
        select gain, pair_count
        from improvement_verdict inner join control_gain using (cell_id, model_id, pathway)
        where model_id = 'openai/gpt-4.1' and pathway = 'memory'
    """).to_dicts()[0]

    summary = page.read_text().split('<section id="summary"')[1].split("</section>")[0]
    group = summary.split('<th scope="rowgroup"')[1].split("</tbody>")[0]
    (line,) = [row for row in group.split("<tr>") if "memory" in row]
    words = html.unescape(re.sub("<.*?>", " ", line)).replace("−", "-")
    assert f"{gain['gain']:+.2f} [" in re.sub(r"\s+", " ", words)
    assert re.search(rf"\b{gain['pair_count']}\b", words)


def test_the_report_loads_no_workflow_and_no_model_library(page: Path, tmp_path: Path) -> None:
    folder.make(tmp_path / "data", models=["m"], cycles=1, episodes=1)
    program = (
        "import sys; from pathlib import Path; from s3gym.report.render import render; "
        "from s3gym.warehouse import Warehouse; "
        f"render(Warehouse(Path({str(tmp_path / 'data')!r})), Path({str(tmp_path / 'out.html')!r})); "
        "print(sorted({'prefect', 'litellm', 'torch', 'transformers'} & set(sys.modules)))"
    )

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "[]"
