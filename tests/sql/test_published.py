"""The published tables as they ship: whole, of games that exist, and in agreement with themselves."""

from typing import Any

import pytest

from s3gym.reference import PUBLISHED
from s3gym.registry import GAMES, PATHWAYS, load, names
from tests.sql.lab import Lab, row


@pytest.fixture
def published(lab: Lab) -> Any:
    warehouse = lab.open()
    return lambda name: warehouse.sql(f"from stg_published_{name}").to_dicts()


def test_every_game_has_all_models_under_both_pathways(published: Any) -> None:
    rows = published("improvement")

    assert len(rows) == 7 * 2 * 7
    assert len({(found["game"], found["pathway"], found["model"]) for found in rows}) == len(rows)
    assert len({found["model"] for found in rows}) == 7
    assert {found["game"] for found in rows} < set(names(GAMES))
    assert {found["pathway"] for found in rows} < set(names(PATHWAYS))


def test_a_mean_is_between_zero_or_the_worst_and_the_best(published: Any) -> None:
    for found in published("improvement"):
        assert found["max_score"] >= found["avg_score"] >= 0
        # K = 10 segments of 3 episodes, none higher than the best score over a start of no less than 0
        assert 0 <= found["auc_plus"] <= found["exploration_episode_count"] * found["max_score"] + 0.0005


def test_checkpoints_follow_from_the_budget(published: Any) -> None:
    for found in published("improvement"):
        intervals = found["exploration_episode_count"] / found["evaluation_interval"]
        assert found["checkpoint_count"] == intervals + 1 == 11


def test_agreement_over_and_under_confidence_are_everything(published: Any) -> None:
    rows = published("judge_reliability")

    assert len(rows) == 7
    for found in rows:
        # three roundings of at most 0.0005
        assert found["agreement"] + found["over_confidence"] + found["under_confidence"] == pytest.approx(1, abs=0.0016)


def test_wins_and_ties_are_all_pairs(published: Any) -> None:
    rows = published("memory_vs_history")

    assert len(rows) == 7
    for found in rows:
        wins = found["memory_win_count"] + found["history_win_count"]
        assert wins + found["tie_count"] == found["pair_count"] == 7


def test_coupling_is_of_every_game_and_of_all_together(published: Any) -> None:
    rows = published("judge_coupling")

    assert {found["game"] for found in rows} == {"all"} | {found["game"] for found in published("improvement")}
    assert all(abs(found["agreement_rho"]) <= 1 and abs(found["negative_error_rho"]) <= 1 for found in rows)


def test_published_area_mean_and_best_are_those_of_one_curve_integrated_exactly(lab: Lab) -> None:
    # thirds: 2/3, 1/3, 1, 0, then 1/3 seven times; mean (2 + 1 + 3 + 0 + 7) / 3 / 11 = 13/33 = 0.394
    # above 2/3: 3 * (1/3)^2 / (2 * 2/3) + 3 * (1/3)^2 / (2 * 1) = 1/4 + 1/6 = 5/12 = 0.417
    thirds = [2, 1, 3, 0, *[1] * 7]
    lab.add(curve={3 * k: [1.0] * n + [0.0] * (3 - n) for k, n in enumerate(thirds)}, game="nullify")
    warehouse = lab.open()
    where = "game = 'nullify' and pathway = 'history' and model = 'Gemini-3.5-Flash'"
    theirs = row(warehouse, "stg_published_improvement", where)

    ours = row(warehouse, "improvement")

    assert (theirs["avg_score"], theirs["max_score"], theirs["auc_plus"]) == (0.394, 1.0, 0.417)
    for name in ("avg_score", "max_score", "auc_plus"):
        assert round(ours[name], 3) == theirs[name]


def test_settings_are_fields_of_our_configurations(published: Any) -> None:
    rows = published("settings")

    assert {found["game"] for found in rows} == {found["game"] for found in published("improvement")}
    for found in rows:
        assert hasattr(getattr(load(GAMES, found["game"], "game").GAME, found["phase"]), found["setting"]), found


def test_names_of_models_mean_published_ones(published: Any) -> None:
    known = {found["model"] for found in published("improvement")}

    assert {found["published_model"] for found in published("models")} == known


def test_every_row_has_its_source_and_licence(published: Any) -> None:
    for table in PUBLISHED:
        for found in published(table.removeprefix("published_")):
            assert found.get("source", "arXiv 2608.31100, CC BY 4.0") == "arXiv 2608.31100, CC BY 4.0"
            assert table == "published_models" or "source" in found
