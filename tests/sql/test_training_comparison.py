from typing import Any

from s3gym.registry import GAMES, names
from tests.sql.lab import SFT_ROW, TRAINING_STEP, Lab, row

TRAINED: dict[str, Any] = {"pathway": "training", "training": "{}"}


def test_a_trained_cell_stands_beside_the_published_row_of_its_game(lab: Lab) -> None:
    lab.add(curve={0: [0.0], 3: [2.0]}, game="trust", model_id="local:tiny", explorer_id="player:expert", **TRAINED)
    lab.train(3, [SFT_ROW], [TRAINING_STEP])

    found = row(lab.open(), "training_comparison")

    assert (found["trained_avg_score"], found["published_trained_avg_score"]) == (2.0, 8.684)
    assert (found["trained_max_score"], found["published_trained_max_score"]) == (2.0, 30.0)
    assert (found["last_score"], found["published_last_score"]) == (2.0, None)
    # 3 * 2/2 = 3 over episodes is 1 over updates
    assert (found["auc_plus_updates"], found["published_auc_plus"]) == (1.0, 163.5)
    assert (found["above_count"], found["compared_count"]) == (1, 1)
    assert (found["published_above_count"], found["published_compared_count"]) == (18, 19)
    assert found["differences"] == (
        "local:tiny, not Qwen3-8B; explored by player:expert; 2 checkpoints, not 20; "
        "an update every 3 exploration episodes, not an epoch; the published recipe is not known"
    )
    assert found["source"] == "arXiv 2608.31100, CC BY 4.0"


def test_what_agrees_is_not_told_as_a_difference(lab: Lab) -> None:
    curve = {3 * k: [0.0] for k in range(20)}
    lab.add(curve=curve, model_id="local:Qwen/Qwen3-8B", evaluation_episode_count=4, **TRAINED)

    assert row(lab.open(), "training_comparison")["differences"] == (
        "4 held-out episodes a checkpoint, not 3; "
        "an update every 3 exploration episodes, not an epoch; the published recipe is not known"
    )


def test_games_without_a_published_row_and_cells_without_training_have_none(lab: Lab) -> None:
    lab.add("a", {0: [1.0]}, game="chess", **TRAINED)
    lab.add("b", {0: [1.0]}, game="trust")

    assert lab.open().sql("from training_comparison").rows() == []


def test_published_rows_are_of_games_that_exist_and_agree_with_themselves(lab: Lab) -> None:
    published = {found["game"]: found for found in lab.open().sql("from stg_published_training").to_dicts()}

    assert len(published) == 7
    assert set(published) <= set(names(GAMES))
    assert published["pvz"]["initial_score"] == 23
    assert published["latent_chess"]["trained_avg_score"] is None
    for found in published.values():
        assert found["compared_count"] == found["checkpoint_count"] - 1
        assert found["above_count"] is None or found["above_count"] <= found["compared_count"]
