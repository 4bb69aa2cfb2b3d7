"""The command line: what it shows, what it refuses, and that it writes nothing when it refuses."""

import csv
import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from s3gym import __version__, registry, storage
from s3gym.cli import main
from s3gym.records import Episode, Step
from tests.direct import measure_directly

REQUEST = [
    "--game",
    "trust",
    "--model",
    "player:learner",
    "--scale",
    "smoke",
    "--set",
    "game.trust.exploration.horizon=4",
]


def cli(*arguments: object, typed: str | None = None) -> Result:
    """Runs a command in this process, in a wide terminal."""
    return CliRunner(env={"COLUMNS": "300"}).invoke(main, [str(argument) for argument in arguments], input=typed)


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of ``REQUEST``; read only."""
    data = tmp_path_factory.mktemp("cli") / "data"
    request = {"scale": "smoke", "games": ["trust"], "models": ["player:learner"]}
    measure_directly(data, "game.trust.exploration.horizon=4", **request)
    return data


@pytest.fixture
def copied(measured: Path, tmp_path: Path) -> Path:
    """The same to write to."""
    return Path(shutil.copytree(measured, tmp_path / "data"))


# --- help ---------------------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom s3gym.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'prefect', 'litellm', 'polars', 'duckdb', 'pyarrow', 'pydantic', 'altair', 'rich', 'torch'}"
        "\nprint(sorted(heavy & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert told.splitlines()[-1] == "[]"
    assert "Usage:" in told


def test_every_command_is_in_the_help_and_has_its_own() -> None:
    told = cli("--help").output

    for name in main.commands:
        assert f"\n  {name} " in told
        assert cli(name, "--help").exit_code == cli(name, "-h").exit_code == 0


def test_the_version_is_told() -> None:
    assert __version__ in cli("--version").output


# --- wrong requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rnu"], "unknown command 'rnu'. Did you mean run"),
        (["run", "--game", "sanke"], "unknown game 'sanke'. Did you mean snake"),
        (["run", "--model", "player:expret"], "Did you mean expert"),
        (["run", "--pathway", "memry"], "Did you mean memory"),
        (["run", "--scale", "huge"], "scale = 'huge': expected one of smoke, small, paper"),
        (["run", "--suite", "half"], "suite = 'half'"),
        (["run", "--replicates", "0"], "replicates = 0"),
        (["run", "--replicates", "two"], "'two' is not a valid integer"),
        (["run", "--set", "evaluation_episode=5"], "did you mean evaluation_episodes"),
        (["run", "--set", "evaluation_episodes"], "expected key=value"),
        (["run", "--set", "evaluation_seeds=[0, 10]"], "overlap; held-out seeds must be disjoint"),
        (["run", "nowhere.toml"], "no config file nowhere.toml"),
        (["run", "--dry-run", "--game", "sanke"], "Did you mean snake"),
        (["status"], "no s3gym data in"),
        (["report"], "no s3gym data in"),
        (["sql", "select 1"], "no s3gym data in"),
        (["replay", "x"], "no s3gym data in"),
        (["verify"], "no s3gym data in"),
    ],
    ids=" ".join,
)
def test_a_wrong_request_is_told_in_a_sentence_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    data = tmp_path / "data"

    result = cli(*arguments, *([] if arguments == ["rnu"] else ["--data", data]))

    assert result.exit_code == 2
    assert told in result.output
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_setting_in_a_file_is_told(tmp_path: Path) -> None:
    config = tmp_path / "request.toml"
    config.write_text("replicate = 2\n")

    result = cli("run", config, "--data", tmp_path / "data")

    assert (result.exit_code, [path.name for path in tmp_path.iterdir()]) == (2, ["request.toml"])
    assert "unknown setting 'replicate'; did you mean replicates" in result.output


@pytest.mark.parametrize("arguments", [["play", "sanke"], ["anchors", "--game", "sanke", "--out", "x.csv"]])
def test_a_game_that_is_not_there_is_told_everywhere(arguments: list[str]) -> None:
    result = cli(*arguments)

    assert result.exit_code == 2
    assert "Did you mean snake" in result.output


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")

    result = cli("run", *REQUEST, "--data", tmp_path)

    assert result.exit_code == 2
    assert "not empty and not an s3gym data folder" in result.output


def test_an_unexpected_error_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s3gym.terminal.scales.show_games", lambda: 1 // 0)

    assert isinstance(cli("games").exception, ZeroDivisionError)


# --- games --------------------------------------------------------------------------------------------------


def test_games_lists_every_game_with_its_players() -> None:
    told = cli("games")

    assert told.exit_code == 0
    for name in registry.names("s3gym.games"):
        assert name in told.output
    assert "tit_for_tat" in told.output


# --- run and status -----------------------------------------------------------------------------------------


def test_a_dry_run_says_what_it_takes_and_does_nothing(tmp_path: Path) -> None:
    told = cli("run", *REQUEST, "--data", tmp_path / "data", "--dry-run")

    assert told.exit_code == 0
    # held out: seven at 0 for all and seven at 3 for each pathway; explored: three for each of two pathways
    assert "3 cells, 10 stages; to do: 3 cells, 10 stages, 34 episodes" in told.output
    # 28 held-out episodes of 10 steps, 6 of 4, 6 judgments; of memory one call an exploration episode
    assert f"at most {28 * 10 + 6 * 4 + 6 + 3} model calls" in told.output
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_takes_an_empty_folder_as_it_is(tmp_path: Path) -> None:
    told = cli("run", *REQUEST, "--data", tmp_path, "--dry-run")

    assert (told.exit_code, list(tmp_path.iterdir())) == (0, [])


def test_a_dry_run_of_what_is_done_has_nothing_to_do(measured: Path) -> None:
    told = cli("run", *REQUEST, "--data", measured, "--dry-run")

    assert "to do: 0 cells, 0 stages, 0 episodes, at most 0 model calls" in told.output


def test_a_run_of_what_is_done_only_writes_the_report(copied: Path) -> None:
    told = cli("run", *REQUEST, "--data", copied)

    assert told.exit_code == 0, told.output
    assert "Nothing to do: every stage is complete" in told.output
    assert (copied / "report.html").exists()
    assert not (copied / "prefect").exists()


def test_status_shows_the_latest_run_or_the_one_asked_for(measured: Path) -> None:
    latest = cli("status", "--data", measured)
    assert latest.exit_code == 0
    assert "3 of 3 cells done" in latest.output

    more = cli("status", "--data", measured, *REQUEST, "--set", "evaluation_episodes=8", "--game", "snake")
    assert "0 of 6 cells done" in more.output
    assert "evaluate @0" in more.output
    assert "trust/player:learner/history/r0/s0#" in more.output


# --- sql ----------------------------------------------------------------------------------------------------

QUERY = "select phase, count(*) as episodes, null as nothing from stg_episodes group by phase order by phase"
# held out: seven at 0 for all, seven at 3 for each of three pathways; explored: three for each of two
EPISODES = [
    {"phase": "evaluation", "episodes": 28, "nothing": None},
    {"phase": "exploration", "episodes": 6, "nothing": None},
]


def test_json_is_a_list_of_objects(measured: Path) -> None:
    assert json.loads(cli("sql", QUERY, "--data", measured, "--format", "json").output) == EPISODES
    assert json.loads(cli("sql", "from stg_runs where false", "--data", measured, "--format", "json").output) == []


def test_csv_has_a_header_and_leaves_missing_values_empty(measured: Path) -> None:
    told = cli("sql", QUERY, "--data", measured, "--format", "csv").output

    assert list(csv.reader(io.StringIO(told))) == [
        ["phase", "episodes", "nothing"],
        ["evaluation", "28", ""],
        ["exploration", "6", ""],
    ]


def test_a_table_is_the_default(measured: Path) -> None:
    told = cli("sql", QUERY, "--data", measured).output

    assert all(word in told for word in ("phase", "episodes", "evaluation", "28", "6"))
    assert "None" not in told


def test_parquet_goes_to_a_file(measured: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    assert cli("sql", QUERY, "--data", measured, "--format", "parquet", "--out", out).exit_code == 0
    assert pl.read_parquet(out).to_dicts() == EPISODES

    refused = cli("sql", QUERY, "--data", measured, "--format", "parquet")
    assert (refused.exit_code, refused.output) == (2, "Error: --format parquet needs --out FILE\n")


def test_a_query_may_come_from_a_file_and_go_to_one(measured: Path, tmp_path: Path) -> None:
    query, out = tmp_path / "q.sql", tmp_path / "out.json"
    query.write_text(QUERY)

    assert cli("sql", query, "--data", measured, "--format", "json", "--out", out).exit_code == 0
    assert json.loads(out.read_text()) == EPISODES


def test_a_query_may_be_piped_in(measured: Path) -> None:
    assert json.loads(cli("sql", "--data", measured, "--format", "json", typed=f"{QUERY};\n").output) == EPISODES
    assert "expected one SELECT" in cli("sql", "--data", measured, typed="select 1; select 2;").output


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_query_file_that_cannot_be_read_is_told(measured: Path, tmp_path: Path, content: bytes | None) -> None:
    query = tmp_path / "q.sql"
    if content is not None:
        query.write_bytes(content)

    result = cli("sql", query, "--data", measured)

    assert result.exit_code == 2
    assert f"{query} cannot be read as UTF-8 text" in result.output


def test_views_are_exported_and_told(measured: Path, tmp_path: Path) -> None:
    result = cli("sql", "--data", measured, "--export", tmp_path / "views")

    assert result.exit_code == 0, result.output
    assert f"Views: {tmp_path / 'views' / 'views.duckdb'}" in result.output
    assert sorted(path.name for path in (tmp_path / "views").iterdir()) == ["views.duckdb", "views.sql"]


def test_without_a_query_the_views_are_listed_and_one_is_described(measured: Path) -> None:
    listed = cli("sql", "--data", measured).output
    assert all(name in listed for name in ("stg_episodes", "improvement", "raw.episodes"))

    described = cli("sql", "--data", measured, "--describe", "improvement").output
    assert "grain:" in described
    missing = cli("sql", "--data", measured, "--describe", "improvment")
    assert missing.exit_code == 2 and "Did you mean improvement" in missing.output


@pytest.mark.parametrize(
    "query", ["select * from nowhere", "selct 1", "delete from raw.episodes", "drop view stg_steps"]
)
def test_a_query_that_is_wrong_or_writes_is_refused(measured: Path, query: str) -> None:
    result = cli("sql", query, "--data", measured)

    assert result.exit_code == 2
    assert result.output.startswith("Error: ")


# --- replay and verify --------------------------------------------------------------------------------------


def test_replay_shows_an_episode_step_by_step(measured: Path) -> None:
    query = "select episode_id from stg_episodes where phase = 'exploration' order by episode_id limit 1"
    (row,) = json.loads(cli("sql", query, "--data", measured, "--format", "json").output)
    episode_id = row["episode_id"]

    told = cli("replay", episode_id, "--data", measured)

    assert told.exit_code == 0
    assert told.output.startswith(f"{episode_id}  seed ")
    assert [f" step {number} of 4 " in told.output for number in range(1, 6)] == [True] * 4 + [False]
    assert "Round 1 of 4." in told.output and "reply: Answer: c" in told.output
    assert "last_round; final score" in told.output


@pytest.mark.parametrize(
    ("beginning", "told"), [("trust:", "34 episodes begin with 'trust:'"), ("'", "0 episodes begin")]
)
def test_replay_wants_one_episode(measured: Path, beginning: str, told: str) -> None:
    result = cli("replay", beginning, "--data", measured)

    assert result.exit_code == 2
    assert told in result.output and "give a whole episode_id" in result.output


def test_verify_of_an_honest_folder_is_all_well(measured: Path) -> None:
    told = cli("verify", "--data", measured)

    assert (told.exit_code, told.output) == (0, "34 episodes replayed, 0 differ; 0 SQL checks failed\n")


def test_verify_names_a_changed_reward(copied: Path) -> None:
    path = storage.visible_files(copied, "steps")[0]
    steps = [Step(**row) for row in storage.read_part(copied, "steps", "trust", path.stem)]
    storage.write_rows(path, "steps", [replace(steps[0], verifier_reward=99.0), *steps[1:]])

    told = cli("verify", "--data", copied)

    assert told.exit_code == 1
    assert f"{steps[0].episode_id}: step 0, reward: stored 99.0, replayed" in told.output
    assert "34 episodes replayed, 1 differ" in told.output
    assert "check reward_sum: 1 offending rows" in told.output


def test_verify_names_a_seed_that_the_split_does_not_give(copied: Path) -> None:
    path = next(path for path in storage.visible_files(copied, "episodes") if path.stem.startswith("evaluate"))
    episodes = [Episode(**row) for row in storage.read_part(copied, "episodes", "trust", path.stem)]
    moved = replace(episodes[0], seed=episodes[0].seed + 7)  # the same opponent
    storage.write_rows(path, "episodes", [moved, *episodes[1:]])

    told = cli("verify", "--data", copied)

    assert told.exit_code == 1
    assert f"{moved.episode_id}: seed: stored {moved.seed}, the split gives {moved.seed - 7}" in told.output


# --- report and anchors -------------------------------------------------------------------------------------


def test_report_writes_one_file_where_it_is_told_to(measured: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "page.html"

    told = cli("report", "--data", measured, "--out", out)

    assert (told.exit_code, told.output) == (0, f"Report: {out}\n"), told.output
    assert out.read_text().lstrip().startswith("<!doctype html>")
    assert not (measured / "report.html").exists()


def test_a_report_of_a_run_that_is_not_there_is_refused(measured: Path, tmp_path: Path) -> None:
    told = cli("report", "--data", measured, "--out", tmp_path / "x.html", "--run", "nowhere")

    assert (told.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "no run 'nowhere'" in told.output


def test_anchors_are_written_as_csv(tmp_path: Path) -> None:
    out = tmp_path / "anchors.csv"

    told = cli("anchors", "--game", "snake", "--episodes", "40", "--out", out)

    assert told.exit_code == 0, told.output
    rows = list(csv.DictReader(out.open(newline="")))
    assert [(row["phase"], row["player"]) for row in rows] == [
        (phase, player) for phase in ("exploration", "evaluation") for player in ("random", "expert", "careful")
    ]
    assert {row["episode_count"] for row in rows} == {"40"}  # a sixth of the scale over sqrt(40) is below 3 %


def test_anchors_of_a_present_version_are_kept_and_others_dropped(tmp_path: Path) -> None:
    out = tmp_path / "anchors.csv"
    cli("anchors", "--game", "trust", "--out", out)
    text = out.read_text()
    kept, stale = text.splitlines()[-1], text.splitlines()[1]
    marked = kept.rsplit(",", 5)[0] + ",1234.5,0.0,0.0,0,1"
    out.write_text(text.replace(kept, marked).replace(stale, stale.replace(stale.split(",")[1], "0" * 16)))

    told = cli("anchors", "--game", "trust", "--out", out)

    assert told.exit_code == 0, told.output
    assert marked in out.read_text()  # not measured again
    assert stale in out.read_text()  # measured again: its configuration was another
    assert "0" * 16 not in out.read_text()


def test_lists_go_into_csv_as_json(measured: Path) -> None:
    query = "select source_episode_ids from stg_experiences where len(source_episode_ids) = 3 limit 1"

    told = cli("sql", query, "--data", measured, "--format", "csv")

    assert told.exit_code == 0, told.output
    (row,) = csv.DictReader(told.output.splitlines())
    assert len(json.loads(row["source_episode_ids"])) == 3


def test_a_type_that_cannot_be_shown_is_told(measured: Path) -> None:
    told = cli("sql", "select interval 1 day", "--data", measured)

    assert told.exit_code == 2
    assert "cannot be shown, cast it" in told.output


def test_a_damaged_earlier_request_is_told_before_anything_is_played(copied: Path) -> None:
    (request,) = storage.visible_files(copied, "runs")
    request.write_bytes(request.read_bytes()[:20])

    told = cli("run", "--data", copied, "--scale", "smoke", "--game", "snake", "--model", "player:expert")

    assert told.exit_code == 2
    assert request.name in told.output and not (copied / "tables" / "steps" / "snake").exists()
