"""``s3gym data``: what is in a folder, and folders that are packed, copied, merged and brought up to date."""

import json
import re
import shutil
from pathlib import Path

import pytest

from s3gym import storage
from s3gym.config import load_config
from s3gym.terminal.folder import size_of
from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.flows.tables import contents
from tests.test_cli import cli

SETTINGS = (
    "game.trust.exploration.horizon=4",
    'models=["player:learner"]',
    'games=["trust"]',
    'pathways=["none", "history"]',
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small folder; read only."""
    data = tmp_path_factory.mktemp("data") / "data"
    measure_directly(data, *SETTINGS, scale="smoke")
    return data


@pytest.fixture
def data(measured: Path, tmp_path: Path) -> Path:
    """The same to write to."""
    return Path(shutil.copytree(measured, tmp_path / "data"))


def settings() -> list[str]:
    return [word for setting in SETTINGS for word in ("--set", setting)]


def test_sizes_are_told_by_table_and_stage_and_what_could_go(data: Path) -> None:
    for part in ("build_experience-dead-00000-00003", "build_experience-dead-00003-00006.partial"):
        (data / "weights" / part).mkdir(parents=True)
        (data / "weights" / part / "half").write_bytes(b"x" * 1000)

    told = cli("data", "--data", data)

    assert told.exit_code == 0
    rows = {line.split("│")[1].strip(): line for line in told.output.splitlines() if line.startswith("│")}
    # held out: seven at 0, and seven at 3 for none and history; explored: three
    assert [word.strip() for word in rows["episodes"].split("│")[2:4]] == ["4", "24"]
    assert [word.strip() for word in rows["evaluate"].split("│")[2:3]] == ["3"]
    assert "manifests: 6 files" in told.output
    assert "small files of complete stages: `s3gym data compact` packs them into few" in told.output
    assert "2 files that no reader looks at, 2.0 kB" in told.output


def test_packed_tables_show_the_same_rows_in_fewer_files(data: Path) -> None:
    before = cli("data", "--data", data).output
    assert cli("data", "compact", "--data", data).exit_code == 0
    after = cli("data", "--data", data).output

    def rows(told: str) -> list[tuple[str, str]]:
        cells = [[cell.strip() for cell in line.split("│")] for line in told.splitlines() if line.startswith("│")]
        return [(line[1], line[3]) for line in cells]

    assert rows(after) == rows(before)
    assert "data compact" in before and "data compact" not in after
    assert "Nothing to pack" in cli("data", "compact", "--data", data).output


def test_a_packed_folder_reads_reports_verifies_and_reruns_as_before(measured: Path, data: Path) -> None:
    cli("data", "compact", "--data", data)

    assert contents(data) == contents(measured)
    assert Warehouse(data).checks() == Warehouse(measured).checks()
    assert [verdict for verdict in verify_folder(data) if verdict.problems] == []
    assert "to do: 0 cells" in cli("run", *settings(), "--scale", "smoke", "--data", data, "--dry-run").output
    # three rounds more at each of three checkpoints
    measure_directly(data, *SETTINGS, "evaluation_episodes=10", scale="smoke")
    assert Warehouse(data).sql("select count(*) from stg_episodes").item() == 24 + 3 * 7


def test_queries_see_no_row_of_a_packed_part_that_was_made_again(measured: Path, data: Path, tmp_path: Path) -> None:
    cli("data", "compact", "--data", data)
    part = next(part for part in storage.parts_of(data, "evaluate-"))
    storage.manifest_path(data, part).unlink()
    assert Warehouse(data).sql("select count(*) from stg_episodes").item() == 24 - 7
    cli("sql", "--export", tmp_path / "views.sql", "--data", data)
    assert "file_row_number" in (tmp_path / "views.sql").read_text()

    measure_directly(data, *SETTINGS, scale="smoke")

    assert contents(data) == contents(measured)
    frame = Warehouse(data).sql("from stg_steps order by all")
    assert frame.equals(Warehouse(measured).sql("from stg_steps order by all"))


def test_a_copied_or_moved_folder_keeps_its_cache_and_its_report(data: Path, tmp_path: Path) -> None:
    cli("report", "--data", data, "--out", tmp_path / "before.html")
    moved = shutil.move(shutil.copytree(data, tmp_path / "copied"), tmp_path / "else" / "where")
    shutil.rmtree(data)

    assert (
        "to do: 0 cells, 0 stages" in cli("run", *settings(), "--scale", "smoke", "--data", moved, "--dry-run").output
    )
    cli("report", "--data", moved, "--out", tmp_path / "after.html")
    assert (tmp_path / "after.html").read_bytes() == (tmp_path / "before.html").read_bytes()


def test_merging_says_what_came_along(data: Path, tmp_path: Path) -> None:
    measure_directly(tmp_path / "other", *SETTINGS[:3], 'pathways=["none", "memory"]', scale="smoke")

    told = cli("data", "merge", tmp_path / "other", "--data", data)

    # evaluations at 0 and, without experience, at 3 are in both; one exploration, judging, memory, evaluation is new
    assert "4 parts, 1 runs and 0 model calls were added; 2 parts were here already" in told.output
    assert cli("data", "merge", data, "--data", data).exit_code == 2


def test_migration_says_what_it_did(data: Path) -> None:
    (data / "s3gym.json").write_text(json.dumps({"schema_version": 3}))

    refused = cli("status", "--data", data)
    assert refused.exit_code == 2 and "`s3gym data migrate` brings it up to date" in refused.output
    told = cli("data", "--data", data, "migrate").output

    assert "had schema version 3, now 4; 0 files were written again" in told
    assert "Version 4 brought" in told
    assert "Nothing to do" in cli("data", "migrate", "--data", data).output


@pytest.mark.parametrize("arguments", [[], ["compact"], ["migrate"], ["merge", "."]], ids=str)
def test_no_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)

    told = cli("data", *arguments)

    assert told.exit_code == 2
    assert "no s3gym data in" in told.output
    assert list(tmp_path.iterdir()) == []


CARE = re.search(r"<!-- care -->\n```bash\n(.*?)```", (Path(__file__).parents[1] / "README.md").read_text(), re.S)


def test_what_the_readme_shows_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CARE is not None
    monkeypatch.chdir(tmp_path)
    measure_directly(tmp_path / "data", scale="smoke", games=["trust"], models=["player:learner"], pathways=["none"])
    run_id = str(Warehouse(tmp_path / "data").sql("select run_id from stg_runs").item())

    for line in CARE[1].splitlines():
        command = line.partition("#")[0].replace("RUN", run_id[:6]).split()
        if command[0] == "cp":
            shutil.copytree(command[2], command[3])
        else:
            told = cli(*command[1:], *(["--dry-run"] if command[1] == "run" else []))
            assert told.exit_code == 0, (line, told.output)

    assert load_config(tmp_path / "s3gym.toml", {}) == load_config(None, {})


@pytest.mark.parametrize(("count", "told"), [(0, "0.0 kB"), (1234, "1.2 kB"), (2_500_000, "2.5 MB")])
def test_sizes_read_well(count: int, told: str) -> None:
    assert size_of(count) == told
