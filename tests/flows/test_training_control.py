"""What training on self-scores must show: gain where they say what is good, harm where they mislead, nothing where they
say nothing. Exploration is a scripted player's, so that all of it is the training's.

The tests marked ``long`` are other seeds, another game and a real language model: ``python -m pytest -m long``.
"""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "peft")), reason="needs the extra local"
)
long = pytest.mark.long

TRUST = {"learning_rate": 3e-3, "batch": 16, "epochs": 3}
SNAKE = {"learning_rate": 3e-3, "batch": 8, "epochs": 6, "rule": "above", "signal": "return"}
RELAXED_SNAKE = [
    f"game.snake.exploration.{name}" for name in ("collision_ends=true", "unusable_ends=true", "apple_count=6")
]
"""Forgiven collisions cost no self-score, so nothing would speak against walls."""


def curve(data: Path, game: str, explorer: str, episodes: int, training: dict[str, Any], seed: int) -> list[Any]:
    """Mean, low and high before training and after."""
    measure_directly(
        data,
        *(RELAXED_SNAKE if game == "snake" else ()),
        scale="smoke",
        seed=seed,
        games=[game],
        pathways=["training"],
        transfer="off",
        retrospective=False,
        exploration_episodes=episodes,
        evaluation_interval=episodes,
        evaluation_episodes=7 if game == "trust" else 20,
        models=[{"id": "local:tiny", "explorer": explorer, "training": training}],
    )
    points = "select mean_score, score_low, score_high from int_checkpoints order by checkpoint"
    return Warehouse(data).sql(points).rows()


def in_trust(data: Path, seed: int, explorer: str = "player:steady?confidence=honest", **training: Any) -> float:
    """What it scores after training, over the seven opponents."""
    start, end = curve(data, "trust", explorer, 140, TRUST | training, seed)
    assert start[0] < 11  # at random: 10.8
    return float(end[0])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=long), pytest.param(3, marks=long)])
def test_returns_over_the_episode_teach_trust(seed: int, tmp_path: Path) -> None:
    assert in_trust(tmp_path / "data", seed) >= 14


@long
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_shuffled_scores_do_not_teach_trust(seed: int, tmp_path: Path) -> None:
    assert in_trust(tmp_path / "data", seed, shuffle_scores=True) < 14


@long
@pytest.mark.parametrize("seed", [0, 1])
def test_in_trust_the_best_immediate_scores_teach_to_cheat_always(seed: int, tmp_path: Path) -> None:
    assert in_trust(tmp_path / "data", seed, signal="score") == pytest.approx(66 / 7)  # exact, from the pay-offs


@long
def test_an_expert_explorer_is_the_upper_line_of_trust(tmp_path: Path) -> None:
    assert in_trust(tmp_path / "data", 0, "player:expert") >= 15


@long
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_scores_teach_snake(seed: int, tmp_path: Path) -> None:
    explorer = "player:random?confidence=honest"

    start, end = curve(tmp_path / "honest", "snake", explorer, 280, SNAKE, seed)
    assert end[1] > start[2]  # beyond both intervals


@long
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_shuffled_scores_do_not_teach_snake(seed: int, tmp_path: Path) -> None:
    explorer = "player:random?confidence=honest"

    start, end = curve(tmp_path / "shuffled", "snake", explorer, 280, SNAKE | {"shuffle_scores": True}, seed)
    assert end[0] <= start[2] + 0.1


@long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("game", ["trust", "snake"])
@pytest.mark.parametrize("explorer", [None, "player:random?confidence=honest"])
def test_a_real_language_model_goes_through_one_cycle(game: str, explorer: str | None, tmp_path: Path) -> None:
    """Facts alone: whether 135 million parameters learn anything in a minute is for the report to say."""
    data = tmp_path / "data"
    horizons = [f"game.{game}.{phase}.horizon=5" for phase in ("exploration", "evaluation")]
    measure_directly(
        data,
        *horizons,
        scale="smoke",
        games=[game],
        pathways=["training"],
        transfer="off",
        retrospective=False,
        exploration_episodes=4,
        evaluation_interval=4,
        evaluation_episodes=2,
        max_output_tokens=32,
        models=[{"id": "local:smollm2?batch=4", "explorer": explorer}],
        training={"rule": "above", "threshold": -10, "minimum_rows": 4, "epochs": 2, "batch": 4},
    )

    warehouse = Warehouse(data)
    assert all(not verdict.problems for verdict in verify_folder(data))
    (update,) = warehouse.sql("from training_updates").to_dicts()
    print(update, warehouse.sql("select action_status, count(*) from stg_steps group by all").rows())
    print(warehouse.sql("select checkpoint, mean_score from int_checkpoints order by all").rows())
    assert update["considered_count"] == update["kept_count"] + update["filtered_count"] <= 4 * 5
    assert update["is_updated"] == (update["kept_count"] >= 4)
    if update["is_updated"]:
        assert update["last_loss"] < update["first_loss"]
    if explorer:
        assert update["is_updated"]
