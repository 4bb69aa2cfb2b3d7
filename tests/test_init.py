"""The example of a request, keys that are never kept, and earlier runs made again."""

import json
import os
import re
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from s3gym import storage
from s3gym.config import GameSettings, ModelEntry, RunConfig, TrainingSettings, load_config
from s3gym.plan import make_plan
from s3gym.protocol.prompts import PROMPT_VERSION
from s3gym.records import Refresh
from s3gym.terminal.starting import example, stored_request
from s3gym.versions import versions
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.models.loopback import ANSWER, Loopback
from tests.storage.test_storage import record
from tests.test_cli import cli

REQUEST: dict[str, Any] = {
    "games": ["trust"],
    "models": [{"id": "player:learner", "pathways": ["none"]}],
    "exploration_episodes": 2,
    "evaluation_interval": 2,
    "max_calls": 77,
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run; read only."""
    data = tmp_path_factory.mktemp("init") / "data"
    measure_directly(data, **REQUEST)
    return data


def run_id(data: Path) -> str:
    return str(Warehouse(data).sql("select run_id from stg_runs").item())


# --- init -----------------------------------------------------------------------------------------------------


def test_the_example_is_the_default_request(tmp_path: Path) -> None:
    told = cli("init", tmp_path / "request.toml")

    assert told.exit_code == 0 and "--dry-run` says what it takes" in told.output.replace("\n", " ")
    assert load_config(tmp_path / "request.toml", {}) == load_config(None, {})


@pytest.mark.parametrize("model", [RunConfig, TrainingSettings, ModelEntry, GameSettings])
def test_every_setting_is_in_the_example(model: type[BaseModel]) -> None:
    tables = {"models": r"#\[\[models\]\]", "game": r"#\[game\.snake\]", "training": r"\[training\]"}
    shown = example("x.toml")

    for name in model.model_fields:
        line = rf"#?{name} = " if model is not RunConfig or name not in tables else tables[name]
        assert re.search(rf"^{line}", shown, re.M), name


def test_every_line_that_shows_an_example_may_be_taken_as_it_is() -> None:
    shown = re.sub(r"^#(?=[\w\[])", "", example("x.toml"), flags=re.M)

    config = load_config(tomllib.loads(shown), {})

    assert config.models[0].id == "openai/gpt-4.1-mini"
    assert (config.temperature, config.max_cost, config.as_of) == (0.7, 5.0, "2026-12-01")
    assert config.game.keys() == {"snake"}


def test_no_file_is_written_over_unless_told(tmp_path: Path) -> None:
    file = tmp_path / "s3gym.toml"
    file.write_text("seed = 7\n")

    refused = cli("init", file)
    assert (refused.exit_code, file.read_text()) == (2, "seed = 7\n")
    assert "is there already; give another name, or --force" in refused.output

    assert cli("init", file, "--force").exit_code == 0
    assert "seed = 0\n" in file.read_text()


# --- keys -----------------------------------------------------------------------------------------------------


def test_a_key_in_a_file_env_reaches_the_provider_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = "sk-canary-in-a-file"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "")  # so that what the file brings goes again
    monkeypatch.delenv("OPENAI_API_KEY")
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={canary}\n")
    server = Loopback()
    server.handler = lambda body: ANSWER
    try:
        assert cli("status").exit_code == 2  # any command reads the file
        model = {"id": "openai/gpt-4.1", "base_url": server.base_url, "pathways": ["none"]}
        measure_directly(tmp_path / "data", "game.trust.evaluation.horizon=1", **{**REQUEST, "models": [model]})
    finally:
        server.close()

    assert {asked.headers["authorization"] for asked in server.requests} == {f"Bearer {canary}"}
    for path in (tmp_path / "data").rglob("*"):
        assert not path.is_file() or canary.encode() not in path.read_bytes()


def test_the_environment_goes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("S3GYM_TEST_KEY", "of the environment")
    (tmp_path / ".env").write_text("S3GYM_TEST_KEY=of the file\n")

    cli("status")

    assert os.environ["S3GYM_TEST_KEY"] == "of the environment"


def test_a_file_env_that_is_no_text_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00")

    told = cli("games")

    assert told.exit_code == 2 and ".env cannot be read" in told.output


# --- run --from -----------------------------------------------------------------------------------------------


def test_a_run_is_asked_for_again_by_its_id_or_the_beginning_of_it(measured: Path) -> None:
    settings = stored_request(measured, run_id(measured)[:5])

    config = load_config(settings, {})

    assert config == load_config(None, REQUEST)
    assert make_plan(config).run.run_id == run_id(measured)
    told = cli("run", "--from", run_id(measured), "--data", measured, "--dry-run")
    assert "to do: 0 cells, 0 stages, 0 episodes" in told.output


def test_what_is_given_on_top_counts_and_another_scale_brings_its_budgets(measured: Path) -> None:
    again = ("run", "--from", run_id(measured), "--data", measured, "--dry-run")

    more = cli(*again, "--model", "player:myopic", "--model", "player:learner", "--pathway", "none").output
    # seven opponents at both checkpoints, of the model that is new
    assert "2 cells, 4 stages; to do: 1 cells, 2 stages, 14 episodes" in more

    smoke = cli(*again, "--model", "player:learner", "--pathway", "history", "--scale", "smoke").output
    # explored: three; held out: seven after them, those before are there
    assert "10 episodes" in smoke


def test_an_unknown_run_is_told_with_those_there_are(measured: Path) -> None:
    told = cli("run", "--from", "xyz", "--data", measured, "--dry-run")

    assert told.exit_code == 2
    assert f"unknown run 'xyz'. Valid: {run_id(measured)}" in told.output


def test_a_beginning_of_several_runs_is_told(measured: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(measured, tmp_path / "data"))
    measure_directly(data, **{**REQUEST, "seed": 1})

    told = cli("run", "--from", "", "--data", data, "--dry-run")

    assert told.exit_code == 2 and "is the beginning of several runs" in told.output


def test_a_file_and_an_earlier_run_are_not_mixed(measured: Path) -> None:
    told = cli("run", "x.toml", "--from", run_id(measured), "--data", measured)

    assert told.exit_code == 2 and "give one of them" in told.output


def test_other_versions_than_then_are_told_in_a_line(measured: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(measured, tmp_path / "data"))
    again = ("run", "--from", run_id(data), "--data", data, "--dry-run")
    storage.write_refresh(data, refresh_of(data, {**versions(), "prompts": str(PROMPT_VERSION)}))
    assert "was made with" not in cli(*again).output

    storage.write_refresh(data, refresh_of(data, {**versions(), "prompts": "0", "duckdb": "1.0.0"}))

    told = f"was made with duckdb 1.0.0 (now {versions()['duckdb']}), prompts 0 (now {PROMPT_VERSION}). Stages that"
    assert told in cli(*again).output


def refresh_of(data: Path, made_with: dict[str, str]) -> Refresh:
    """A refresh of the run in ``data``."""
    bare: Refresh = record("refreshes", "x", is_bare=True)
    return replace(bare, run_id=run_id(data), versions=json.dumps(made_with))
