from typing import Any

from tests.sql.lab import Lab, Turn, row

SNAKE: dict[str, Any] = {
    "exploration_config": '{"horizon": 64, "collision_ends": false, "unusable_ends": false}',
    "evaluation_config": '{"horizon": 64, "collision_ends": true, "unusable_ends": true}',
    "exploration_episode_count": 30,
}
AS_PUBLISHED = {3 * k: [1.0, 2.0, 0.0] for k in range(11)}


def test_a_listed_model_stands_beside_its_own_row_and_no_other(lab: Lab) -> None:
    # agreement, over- and under-confidence of four steps with a self-score: 2, 1, 1
    turns = [Turn(1.0, 1.0), Turn(0.0, 0.0), Turn(2.0, 0.0), Turn(0.0, 1.0), Turn(None, 1.0)]
    lab.add(curve=AS_PUBLISHED, explored={0: [turns]}, model_id="openai/gpt-4.1", pathway="memory", **SNAKE)

    found = row(lab.open(), "paper_comparison")

    assert (found["published_as"], found["published_model"], found["published_model_count"]) == ("model", "GPT-4.1", 7)
    # 3 points in 3 episodes everywhere
    assert (found["avg_score"], found["published_avg_score"]) == (1.0, 0.545)
    assert (found["max_score"], found["published_max_score"]) == (1.0, 1.0)
    assert (found["auc_plus"], found["published_auc_plus"]) == (0.0, 0.0)
    assert (found["agreement"], found["published_agreement"]) == (0.5, 0.879)
    assert (found["over_confidence"], found["published_over_confidence"]) == (0.25, 0.11)
    assert (found["under_confidence"], found["published_under_confidence"]) == (0.25, 0.011)
    assert (found["unit"], found["source"]) == ("apples", "arXiv 2608.31100, CC BY 4.0")
    assert found["differences"] == (
        "when GPT-4.1 was called is not published; the size of the board is not said; "
        "prompts and decoding are not published"
    )


def test_any_other_model_stands_beside_the_best_and_the_median(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [2.0]}, model_id="openai/gpt-4o-mini")
    found = {one["published_as"]: one for one in lab.open().sql("from paper_comparison").to_dicts()}

    assert sorted(found) == ["best", "median"]
    # means of snake under history: 0.212, 0.515, 1.424, 1.576, 4.000, 8.455, 9.061; the best one's own area is 0.163
    assert (found["best"]["published_model"], found["best"]["published_avg_score"]) == ("GPT-5.5", 9.061)
    assert (found["best"]["published_max_score"], found["best"]["published_auc_plus"]) == (11.333, 0.163)
    assert (found["median"]["published_model"], found["median"]["published_avg_score"]) == (None, 1.576)
    # maxima 0.667, 1.667, 2.333, 4.333, 9.667, 11.333, 13; areas 0, 0, 0, 0.163, 7.317, 8.501, 37.387
    assert (found["median"]["published_max_score"], found["median"]["published_auc_plus"]) == (4.333, 0.163)
    assert found["best"]["differences"].startswith("openai/gpt-4o-mini, not GPT-5.5; ")
    assert found["median"]["differences"].startswith("openai/gpt-4o-mini, not the median of 7 models; ")


def test_what_differs_is_told(lab: Lab) -> None:
    settings: dict[str, Any] = {
        "game": "latent_chess",
        "model_id": "gpt-4o",
        "explorer_id": "player:expert",
        "intervention": "oracle",
        "evaluation_interval": 2,
        "evaluation_episode_count": 2,
        "exploration_config": '{"horizon": 5, "history": 7, "pieces": 12}',
        "evaluation_config": '{"horizon": 5, "history": 7, "pieces": 20}',
    }
    for replicate in range(2):
        lab.add(f"cell {replicate}", {0: [0.0, 0.0], 2: [0.0, None]}, replicate=replicate, **settings)

    assert row(lab.open(), "paper_comparison", "replicate = 1")["differences"] == (
        "when GPT-4o was called is not published; the link oracle was replaced; explored by player:expert; "
        "6 exploration episodes, not 30; 2 checkpoints, not 11; 1 of them not valid; "
        "2 exploration episodes between two, not 3; 2 held-out episodes a checkpoint, not 3; one of 2 replicates; "
        "evaluation with pieces 20, not 22; the text has 22 pieces, the scores fit 15 equal items a step; "
        "prompts and decoding are not published"
    )


def test_other_games_and_pathways_have_no_row(lab: Lab) -> None:
    lab.add("another game", {0: [1.0]}, game="chess")
    lab.add("the control", {0: [1.0]}, pathway="none")
    lab.add("a pathway of the other study", {0: [1.0]}, pathway="training", training="{}")

    assert lab.open().sql("from paper_comparison").rows() == []


def test_nothing_played_is_null_beside_what_was_published(lab: Lab) -> None:
    lab.add(curve={0: [None], 3: [None]}, model_id="gpt-4o")

    found = row(lab.open(), "paper_comparison")

    assert [found[name] for name in ("avg_score", "max_score", "auc_plus", "agreement")] == [None] * 4
    assert found["published_avg_score"] == 0.212
    assert "2 checkpoints, not 11; 2 of them not valid" in found["differences"]


def test_an_empty_folder_has_no_rows(lab: Lab) -> None:
    assert lab.open().sql("from paper_comparison").rows() == []
