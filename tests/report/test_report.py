"""The page as text: what it says of a run, of an empty folder, and that it is the same each time."""

import html
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from s3gym import registry, storage
from s3gym.records import Run
from s3gym.report.render import render, render_text
from s3gym.report.sections import trajectories
from s3gym.warehouse import Warehouse
from tests.report import folder

SECTIONS = "s3gym.report.sections"


def test_every_section_is_there_in_its_order(page: Path) -> None:
    found = re.findall(r'<section id="(\w+)"', page.read_text())

    orders = [registry.load(SECTIONS, name, "section").ORDER for name in found]
    assert sorted(found) == registry.names(SECTIONS)
    assert orders == sorted(orders)
    assert found[0] == "summary"


@pytest.mark.parametrize("name", registry.names(SECTIONS))
def test_a_section_reads_views_that_exist(name: str, warehouse: Warehouse) -> None:
    views = {view for _, view in warehouse.views()}

    assert set(registry.load(SECTIONS, name, "section").MARTS) <= views


@pytest.mark.parametrize("name", registry.names(SECTIONS))
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
    again = render(Warehouse(tmp_path / "data"), tmp_path / "report.html")

    assert again.read_bytes() == page.read_bytes()


def test_the_gain_of_a_cell_is_the_one_of_its_mart(warehouse: Warehouse, page: Path) -> None:
    gain = warehouse.sql("""
        select mean_difference, pair_count
        from control_gain
        where model_id = 'openai/gpt-4.1' and pathway = 'memory'
    """).to_dicts()[0]

    summary = page.read_text().split('<section id="summary"')[1].split("</section>")[0]
    group = summary.split("openai/gpt-4.1</th>")[1].split("</tbody>")[0]
    (line,) = [row for row in group.split("<tr>") if "memory" in row]
    words = html.unescape(re.sub("<.*?>", " ", line)).replace("−", "-")
    assert f"{gain['mean_difference']:+.2f} [" in re.sub(r"\s+", " ", words)
    assert re.search(rf"\b{gain['pair_count']}\b", words)


def test_how_many_episodes_are_embedded_is_said(warehouse: Warehouse, page: Path) -> None:
    # per model: 4 held-out ones before, 4 after each of 2 cycles in 3 pathways, of which the last cycle's are
    # embedded, and 4 exploration episodes in 2 pathways: 4 + 12 + 8 = 24 of 4 + 24 + 8 = 36; two models
    assert "48 of 72 episodes are in this page" in page.read_text()


def test_more_episodes_than_fit_are_cut_evenly_over_the_models(tmp_path: Path) -> None:
    # 3 steps of 20,000 characters and some words are about 61,000, so some 98 of 6 x 24 episodes fit into
    # 6,000,000: the 8 first and the 8 second ones of each model's kinds and cells, and few of the third
    folder.make(tmp_path / "data", models=[f"m{i}" for i in range(6)], reply="x" * 24_000)
    query = Path(trajectories.__file__).with_suffix(".sql").read_text()

    chosen = Warehouse(tmp_path / "data", materialize=True).sql(query).to_dicts()

    shares = Counter(episode["uses"][0]["model"] for episode in chosen)
    replies = [step["reply"] for episode in chosen for step in episode["steps"] if step["reply"]]
    assert 95 <= len(chosen) <= 100
    assert len(shares) == 6
    assert set(shares.values()) <= {16, 17, 18}
    assert all(len(reply) == 20_000 + len(" [cut]") for reply in replies)


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
