"""Seeds pair across models and pathways, keep the phases apart, and never move when a budget grows."""

from typing import Any

import pytest

from s3gym import registry
from s3gym.config import load_config
from s3gym.games.snake import GAME as SNAKE
from s3gym.games.trust import GAME as TRUST
from s3gym.games.trust import OPPONENTS
from s3gym.plan import make_plan
from s3gym.protocol.splits import SplitError, Splits, hashed, phase_of

GAMES = [registry.load("s3gym.games", name, "game").GAME for name in registry.names("s3gym.games")]


def splits(**changes: Any) -> Splits:
    ranges = {"exploration_range": (0, 2**31), "evaluation_range": (2**31, 2**32)}
    return Splits(**{"base_seed": 0, **ranges, **changes})


def ids(game: Any, config: Any, seeds: list[int]) -> list[str]:
    return [game.instance_id(game.reset(config, seed)) for seed in seeds]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.id)
def test_a_larger_budget_begins_with_the_smaller_one(game: Any) -> None:
    few, many = (
        splits().exploration(game, game.exploration, 0, 3),
        splits().exploration(game, game.exploration, 0, 8),
    )
    assert many[:3] == few

    few, many = (
        splits().evaluation(game, game.evaluation, 0, 3),
        splits().evaluation(game, game.evaluation, 0, 8),
    )
    assert many[:3] == few


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.id)
def test_phases_share_no_seed_and_no_instance_where_there_are_enough(game: Any) -> None:
    explored = splits().exploration(game, game.exploration, 0, 10)
    held_out = splits().evaluation(game, game.evaluation, 0, 10)

    assert len(set(explored + held_out)) == 20
    assert max(explored) < 2**31 <= min(held_out)
    if not game.is_instances_shared:
        assert {phase_of(name) for name in ids(game, game.exploration, explored)} == {"exploration"}
        assert {phase_of(name) for name in ids(game, game.evaluation, held_out)} == {"evaluation"}


def test_the_last_bit_of_an_instance_says_which_phase_may_use_it() -> None:
    assert [phase_of(name) for name in ("00000000000000a0", "00000000000000a1", "f")] == [
        "evaluation",
        "exploration",
        "exploration",
    ]


def test_all_models_and_pathways_play_the_same_instances() -> None:
    run = make_plan(load_config(None, {"scale": "smoke", "games": ["snake"]}))
    drawn = {
        (
            tuple(cell.stages[0].subject.splits.exploration(SNAKE, SNAKE.exploration, 0, 3)),
            tuple(cell.stages[0].subject.splits.evaluation(SNAKE, SNAKE.evaluation, 0, 2)),
        )
        for cell in run.cells
    }

    assert len(run.cells) > 4 and len(drawn) == 1


def test_replicates_explore_other_instances_and_are_measured_on_the_same() -> None:
    first, second = (splits().exploration(SNAKE, SNAKE.exploration, replicate, 5) for replicate in (0, 1))

    assert set(first).isdisjoint(second)
    run = make_plan(load_config(None, {"scale": "smoke", "games": ["snake"], "replicates": 2}))
    assert len({tuple(c.stages[0].subject.splits.evaluation(SNAKE, SNAKE.evaluation, 0, 2)) for c in run.cells}) == 1


def test_shuffled_replicates_explore_the_same_instances_each_in_an_order_of_its_own() -> None:
    drawn = splits().exploration(SNAKE, SNAKE.exploration, 0, 6)
    orders = [splits(shuffled_count=6).exploration(SNAKE, SNAKE.exploration, replicate, 6) for replicate in range(3)]

    assert [sorted(order) for order in orders] == [sorted(drawn)] * 3
    assert len({tuple(order) for order in (drawn, *orders)}) == 4
    # what is explored first is the beginning of the same order
    assert splits(shuffled_count=6).exploration(SNAKE, SNAKE.exploration, 1, 2) == orders[1][:2]
    assert splits(shuffled_count=6).evaluation(SNAKE, SNAKE.evaluation, 0, 3) == splits().evaluation(
        SNAKE, SNAKE.evaluation, 0, 3
    )


def test_another_base_seed_or_game_plays_other_seeds() -> None:
    base = splits().evaluation(SNAKE, SNAKE.evaluation, 0, 5)

    assert set(base).isdisjoint(splits(base_seed=1).evaluation(SNAKE, SNAKE.evaluation, 0, 5))
    assert set(base).isdisjoint(splits().evaluation(TRUST, TRUST.evaluation, 0, 5))


def test_a_fixed_set_is_the_same_at_every_checkpoint_and_a_fresh_one_is_not() -> None:
    fixed = [splits().evaluation(SNAKE, SNAKE.evaluation, checkpoint, 5) for checkpoint in (0, 3)]
    fresh = [splits(evaluation_set="fresh").evaluation(SNAKE, SNAKE.evaluation, checkpoint, 5) for checkpoint in (0, 3)]

    assert fixed[0] == fixed[1]
    assert set(fresh[0]).isdisjoint(fresh[1])


@pytest.mark.parametrize("evaluation_set", ["fixed", "fresh"])
def test_trust_meets_each_opponent_once_in_seven_held_out_episodes(evaluation_set: str) -> None:
    seeds = splits(evaluation_set=evaluation_set).evaluation(TRUST, TRUST.evaluation, 3, 14)

    met = [TRUST.reset(TRUST.evaluation, seed).opponent for seed in seeds]
    assert met == [*OPPONENTS, *OPPONENTS]
    assert len(set(seeds)) == 14


def test_small_ranges_are_respected_to_the_last_seed() -> None:
    small = splits(exploration_range=(10, 13), evaluation_range=(20, 27))

    assert sorted(small.exploration(TRUST, TRUST.exploration, 0, 3)) == [10, 11, 12]
    assert sorted(small.evaluation(TRUST, TRUST.evaluation, 0, 7)) == [20, 21, 22, 23, 24, 25, 26]


def test_a_range_with_too_few_instances_is_refused() -> None:
    small = splits(exploration_range=(10, 13))

    with pytest.raises(SplitError, match=r"exploration_seeds = \[10, 13\] holds too few instances of trust for 4"):
        small.exploration(TRUST, TRUST.exploration, 0, 4)


@pytest.mark.parametrize(
    ("exploration", "evaluation", "told"),
    [
        ((0, 100), (50, 150), "overlap; held-out seeds must be disjoint"),
        ((0, 100), (99, 150), "overlap"),
        ((50, 60), (0, 100), "overlap"),
        ((5, 5), (10, 20), r"exploration_seeds = \[5, 5\] is empty"),
        ((0, 5), (20, 10), r"evaluation_seeds = \[20, 10\] is empty"),
        ((-5, 5), (10, 20), "0 <= first < end"),
    ],
)
def test_ranges_that_overlap_or_are_empty_are_refused(
    exploration: tuple[int, int], evaluation: tuple[int, int], told: str
) -> None:
    with pytest.raises(SplitError, match=told):
        splits(exploration_range=exploration, evaluation_range=evaluation)


def test_ranges_that_only_touch_are_disjoint() -> None:
    assert splits(exploration_range=(0, 100), evaluation_range=(100, 200)).base_seed == 0


def test_a_decoding_seed_is_made_of_what_it_stands_for() -> None:
    assert hashed("a", 1) == hashed("a", 1) != hashed("a", 2)
    assert 0 <= hashed() < 2**63
    assert hashed(0, "snake", 3) == 3140341342401529650  # the same on every machine
