from dataclasses import replace
from typing import Any

import pytest

from s3gym.warehouse import Warehouse
from tests.sql.lab import Lab, row
from tests.sql.test_improvement_verdict import FLOOR


def gains(lab: Lab, game: str, **ends: float | None) -> None:
    """A cell a model: from 1 to ``end`` in three episodes, so that NABA is 3 * (end - 1) / 2 / 1 where it rises."""
    for model, end in ends.items():
        lab.add(f"{game} {model}", {0: [1.0], 3: [end]}, model_id=model, game=game)


def by_game(warehouse: Warehouse, game: str, *columns: str) -> dict[str, list[Any]]:
    query = f"select model_id, {', '.join(columns)} from ranks_by_game where game = '{game}'"
    return {name: values for name, *values in warehouse.sql(query).rows()}


def test_ties_share_the_mean_of_their_ranks_and_scales_do_not_matter(lab: Lab) -> None:
    gains(lab, "snake", a=5.0, b=3.0, c=3.0, d=0.0)
    gains(lab, "trust", a=101.0, b=301.0)
    warehouse = lab.open()

    # gains 4, 2, 2, -1: ranks 1, (2 + 3) / 2, 2.5, 4; below of three others: 3, 1 + 1/2, 1.5, 0
    found = by_game(warehouse, "snake", "change_rank", "change_rival_count", "change_standing")
    assert found == {"a": [1, 4, 1.0], "b": [2.5, 4, 0.5], "c": [2.5, 4, 0.5], "d": [4, 4, 0.0]}
    # areas 6, 3, 3 and, all below the start, 0
    assert by_game(warehouse, "snake", "naba", "naba_rank") == {"a": [6, 1], "b": [3, 2.5], "c": [3, 2.5], "d": [0, 4]}
    a, b, d = (row(warehouse, "game_ranks", f"model_id = '{name}'") for name in "abd")
    # a: ranks 1 and 2, standings 1 and 0; b: 2.5 and 1, 0.5 and 1
    assert (a["game_count"], a["change_game_count"]) == (2, 2)
    assert (a["mean_change_rank"], a["mean_change_standing"]) == (1.5, 0.5)
    assert (b["mean_change_rank"], b["mean_change_standing"], b["mean_naba_rank"]) == (1.75, 0.75, 1.75)
    assert (d["game_count"], d["mean_change_rank"], d["mean_naba_standing"]) == (1, 4.0, 0.0)


def test_improved_games_are_counted_among_those_with_a_verdict(lab: Lab) -> None:
    floors = []
    verdicts = {"snake": ("up", "up", "still"), "trust": ("up", "still", "down"), "pvz": ("down", "down", "down")}
    for game, kinds in verdicts.items():
        for replicate, kind in enumerate(kinds):
            name = f"{game} {replicate}"
            lab.add(name, {0: [1.0], 3: [1.0]}, game=game, replicate=replicate)
            # two-sided and corrected for nine cells: 9 * 2 * 0.001 = 0.018
            above, below = {"up": (0.001, 1.0), "still": (0.5, 0.6), "down": (1.0, 0.001)}[kind]
            observed = -1.0 if kind == "down" else 1.0
            floors.append(replace(FLOOR, cell_id=name, observed=observed, p_above=above, p_below=below))
    lab.add("nobody judged it", {0: [1.0], 3: [1.0]}, game="nullify")
    warehouse = lab.open(materialize=True)
    warehouse.fill("noise_floors", floors)

    found = row(warehouse, "game_ranks")

    # two of three replicates in snake, one of three in trust, none in pvz; worse: three of three in pvz alone
    assert (found["game_count"], found["judged_game_count"]) == (4, 3)
    assert (found["improved_game_count"], found["worse_game_count"], found["too_few_game_count"]) == (1, 1, 0)
    assert by_game(warehouse, "trust", "judged_count", "improved_count", "worse_count") == {"m": [3, 1, 1]}


def test_too_few_episodes_are_told_apart_from_no_improvement(lab: Lab) -> None:
    gains(lab, "snake", a=1.0, b=1.0)
    warehouse = lab.open(materialize=True)
    few = replace(FLOOR, cell_id="snake a", smallest_p=0.4, p_above=0.5)
    warehouse.fill("noise_floors", [few, replace(FLOOR, cell_id="snake b", p_above=0.5)])

    a, b = (row(warehouse, "game_ranks", f"model_id = '{name}'") for name in "ab")

    assert (a["too_few_game_count"], a["improved_game_count"], a["judged_game_count"]) == (1, 0, 1)
    assert (b["too_few_game_count"], b["judged_game_count"]) == (0, 1)


def test_one_contestant_has_no_rank_among_others(lab: Lab) -> None:
    gains(lab, "snake", a=5.0)

    found = row(lab.open(), "game_ranks")

    assert (found["game_count"], found["change_game_count"], found["naba_game_count"]) == (1, 0, 0)
    assert (found["mean_change_rank"], found["mean_change_standing"], found["mean_naba_rank"]) == (None, None, None)
    assert found["judged_game_count"] == 0, "noise floors have not been computed"


def test_what_has_no_valid_curve_has_no_rank_and_takes_none(lab: Lab) -> None:
    gains(lab, "snake", a=5.0, b=3.0, lost=None)
    lab.add("never started", {0: [None], 3: [None]}, model_id="lost", game="trust")
    warehouse = lab.open()

    ranks = by_game(warehouse, "snake", "change_rank", "change_rival_count")
    assert ranks == {"a": [1, 2], "b": [2, 2], "lost": [None, 0]}
    lost = row(warehouse, "game_ranks", "model_id = 'lost'")
    assert (lost["game_count"], lost["change_game_count"], lost["mean_change_standing"]) == (2, 0, None)


def test_a_start_below_zero_is_ranked_by_gain_alone(lab: Lab) -> None:
    lab.add("a", {0: [-2.0], 3: [4.0]}, model_id="a", game="trust")
    lab.add("b", {0: [1.0], 3: [2.0]}, model_id="b", game="trust")
    lab.add("c", {0: [1.0], 3: [3.0]}, model_id="c", game="trust")

    found = by_game(lab.open(), "trust", "change_rank", "naba_rank", "naba_rival_count", "naba_standing")

    assert found == {"a": [1, None, 0, None], "b": [3, 2, 2, 0.0], "c": [2, 1, 2, 1.0]}


def test_replicates_are_one_contestant_with_the_mean_of_their_gains(lab: Lab) -> None:
    for replicate, end in enumerate((5.0, 2.0)):
        lab.add(f"a {replicate}", {0: [1.0], 3: [end]}, model_id="a", replicate=replicate)
    lab.add("b", {0: [1.0], 3: [3.0]}, model_id="b")

    found = by_game(lab.open(), "snake", "replicate_count", "score_delta", "change_rank")

    # (4 + 1) / 2 against 2
    assert found == {"a": [2, 2.5, 1], "b": [1, 2.0, 2]}


def test_only_like_budgets_and_interventions_are_ranked_and_controls_never(lab: Lab) -> None:
    lab.add("a", {0: [1.0], 3: [5.0]}, model_id="a")
    lab.add("b", {0: [1.0], 3: [3.0]}, model_id="b", exploration_episode_count=30)
    lab.add("c", {0: [1.0], 3: [9.0]}, model_id="c", intervention="oracle")
    lab.add("control", {0: [1.0], 3: [9.0]}, model_id="a", pathway="none", exploration_episode_count=0)

    found = by_game(lab.open(), "snake", "change_rank", "change_rival_count")

    assert found == {"a": [1, 1], "b": [1, 1], "c": [1, 1]}


def test_of_two_settings_the_latest_counts(lab: Lab) -> None:
    lab.add("old", {0: [1.0], 3: [5.0]}, run="run-1")
    lab.add("new", {0: [1.0], 3: [2.0]}, run="run-2", history_token_limit=2000)

    assert row(lab.open("all"), "ranks_by_game")["score_delta"] == pytest.approx(1.0)


def test_an_empty_folder_has_no_ranks(lab: Lab) -> None:
    warehouse = lab.open()

    assert warehouse.sql("from ranks_by_game").rows() == warehouse.sql("from game_ranks").rows() == []
