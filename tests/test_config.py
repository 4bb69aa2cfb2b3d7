"""What a request may say, who wins, and how a wrong one is told."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from s3gym.config import SCALES, ConfigError, load_config


def toml(folder: Path, text: str) -> Path:
    path = folder / "request.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("scale", "budgets"), [("smoke", (3, 3, 2)), ("small", (9, 3, 7)), ("paper", (30, 3, 3))])
def test_a_scale_sets_the_three_budgets(scale: str, budgets: tuple[int, int, int]) -> None:
    config = load_config(None, {"scale": scale})

    assert (config.exploration_episodes, config.evaluation_interval, config.evaluation_episodes) == budgets


def test_small_is_the_default_scale() -> None:
    assert load_config(None, {}) == load_config(None, {"scale": "small"})


@pytest.mark.parametrize("is_there", [True, False])
def test_the_default_players_are_two_readers_two_controls_and_one_to_train(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: is_there or name != "peft")

    config = load_config(None, {})

    trained = [("local:tiny", ("none", "training"), ("snake", "trust"))]
    assert [(entry.id, entry.pathways, entry.games) for entry in config.models] == [
        ("player:learner", None, None),
        ("player:myopic", None, None),
        ("player:random", ("none",), None),
        ("player:expert", ("none",), None),
        *(trained if is_there else []),
    ]


def test_the_file_beats_the_scale_and_the_command_line_beats_the_file(tmp_path: Path) -> None:
    path = toml(tmp_path, 'scale = "smoke"\nevaluation_episodes = 4\nseed = 5\n')

    config = load_config(path, {"seed": 6, "replicates": None}, ["replicates=2"])

    assert config.exploration_episodes == 3  # of the scale in the file
    assert config.evaluation_episodes == 4  # of the file
    assert config.seed == 6  # of the command line
    assert config.replicates == 2  # of --set; None on the command line is no value


def test_the_scale_may_be_set_anywhere(tmp_path: Path) -> None:
    path = toml(tmp_path, 'scale = "smoke"\n')

    assert load_config(path, {}, ['scale="paper"']).exploration_episodes == 30


def test_set_reaches_into_tables_and_reads_values_as_toml(tmp_path: Path) -> None:
    path = toml(tmp_path, "[game.snake.evaluation]\nsize = 7\n")

    config = load_config(path, {}, ["game.snake.evaluation.horizon=9", "game.trust.exploration.horizon = 4"])

    assert config.game["snake"].evaluation == {"size": 7, "horizon": 9}
    assert config.game["trust"].exploration == {"horizon": 4}


@pytest.mark.parametrize("text", ["oldest", '"oldest"'])
def test_a_bare_word_is_a_string(text: str) -> None:
    assert load_config(None, {}, [f"history_cut={text}"]).history_cut == "oldest"


def test_a_model_may_be_a_name_or_a_table(tmp_path: Path) -> None:
    path = toml(tmp_path, 'models = ["openai/gpt-4o", { id = "player:random", pathways = ["none"] }]\n')

    models = load_config(path, {}).models

    assert [(model.id, model.pathways) for model in models] == [
        ("openai/gpt-4o", None),
        ("player:random", ("none",)),
    ]


@pytest.mark.parametrize(
    ("assignment", "nearest"),
    [
        ("evaluation_episode=5", "evaluation_episodes"),
        ("game.snake.evalution.size=5", "evaluation"),
        ('models=[{id="player:random", pathway=["none"]}]', "pathways"),
    ],
)
def test_an_unknown_setting_is_named_with_its_nearest(assignment: str, nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown setting .*did you mean {nearest}"):
        load_config(None, {}, [assignment])


def test_a_setting_like_no_other_is_answered_with_all_of_them() -> None:
    with pytest.raises(ConfigError, match="unknown setting 'zzz'; valid: .*replicates.*temperature"):
        load_config(None, {}, ["zzz=1"])


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ('replicates="two"', "replicates = 'two'"),
        ("evaluation_episodes=0", "evaluation_episodes = 0: .*greater than or equal to 1"),
        ("evaluation_episodes=2.5", r"evaluation_episodes = 2\.5"),
        ("temperature=-1", "temperature = -1"),
        ("temperature=nan", "temperature = nan"),
        ("history_cut=middle", "history_cut = 'middle': .*'newest' or 'oldest'"),
        ('games="snake"', "games = 'snake'"),
        ("models=[]", r"models = .*give at least one"),
        ("pathways=[]", r"pathways = .*give at least one"),
        ("game=3", "game = 3"),
        ("scale=huge", "scale = 'huge': expected one of smoke, small, paper"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(assignment: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(None, {}, [assignment])


def test_all_wrong_values_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match="replicates = 0.*; .*seed = -1|seed = -1.*; .*replicates = 0"):
        load_config(None, {"replicates": 0, "seed": -1})


def test_exploration_has_to_be_a_multiple_of_the_interval() -> None:
    with pytest.raises(ConfigError, match="exploration_episodes = 10 is not a multiple of evaluation_interval = 3"):
        load_config(None, {}, ["exploration_episodes=10"])

    assert load_config(None, {}, ["exploration_episodes=10", "evaluation_interval=5"]).exploration_episodes == 10


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("replicates", "expected key=value"),
        ("seed.x=1", "seed is not a table"),
        ("seed.x.y=1", "seed is not a table"),
    ],
)
def test_an_assignment_that_assigns_nothing_is_refused(assignment: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_config(None, {"seed": 1}, [assignment])


def test_a_file_that_is_missing_or_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config file .*nowhere\.toml"):
        load_config(tmp_path / "nowhere.toml", {})
    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        load_config(toml(tmp_path, "scale ="), {})
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        load_config(binary, {})
    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        load_config(tmp_path, {})


def test_what_is_stored_reads_back_as_the_same_request() -> None:
    priced = {"id": "openai/gpt-4.1", "prompt_price": 2.0, "completion_price": 8.0}
    config = load_config(
        None,
        {"scale": "paper", "models": [priced], "max_cost": 3.0},
        ["game.snake.evaluation.size=7", "temperature=0.5"],
    )

    stored = json.loads(config.model_dump_json())

    assert load_config(stored, {}) == config


def test_every_scale_is_a_valid_request() -> None:
    values: dict[str, Any] = {scale: load_config(None, {"scale": scale}).scale for scale in SCALES}

    assert values == {scale: scale for scale in SCALES}


def test_one_model_at_two_endpoints_is_two_runs() -> None:
    here, there = ({"id": "hosted_vllm/m", "base_url": f"http://{host}/v1"} for host in ("here", "there"))

    with pytest.raises(ConfigError, match="'hosted_vllm/m' stands there with two endpoints"):
        load_config(None, {"models": [here, there]})
    assert len(load_config(None, {"models": [here, here]}).models) == 2
