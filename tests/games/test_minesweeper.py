import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from math import comb
from statistics import mean, stdev

import pytest

from s3gym.games._mines import (
    CELLS,
    EXPLODED,
    FLAG,
    NEAR,
    SIZE,
    UNKNOWN,
    certain,
    mask,
    mine_chances,
    showing,
)
from s3gym.games.base import Move
from s3gym.games.minesweeper import GAME, MinesweeperConfig, MinesweeperState, MinesweeperView

EVALUATION, EXPLORATION = GAME.evaluation, GAME.exploration

WALL = """
    . . . . * . . . .
    . . . . * . . . .
    . . . . * . . . .
    . . . . * . . . .
    . . . . * . . . .
    . . . . * . . . .
    . . . . * . . . .
    . . . . * . . . .
    . . . . * . . . *
"""
"""Ten mines: column 4, and the corner (8,8)."""


def position(drawing: str = WALL, config: MinesweeperConfig = EVALUATION) -> MinesweeperState:
    """A start state with its mines as drawn; spare cells in order."""
    glyphs = "".join(drawing.split())
    mines, spares = mask(showing(glyphs, "*")), tuple(showing(glyphs, "."))
    return MinesweeperState(config=config, mines=mines, spares=spares, board=UNKNOWN * CELLS, lives=config.extra_lives)


def played(state: MinesweeperState, *actions: str) -> tuple[MinesweeperState, list[float], str | None]:
    """The state after ``actions``, the rewards, and how it ended."""
    rewards, end_reason = [], None
    for action in actions:
        assert end_reason is None, f"ended before {action}"
        taken = GAME.take(state, action)
        assert taken.status == "ok", (action, taken)
        state, end_reason = taken.outcome.state, taken.outcome.end_reason
        rewards.append(taken.outcome.reward)
    return state, rewards, end_reason


def row(state: MinesweeperState, index: int) -> str:
    return state.board[SIZE * index : SIZE * index + SIZE]


def flags_on_column_4(count: int = SIZE) -> list[str]:
    return [f"flag ({index},4)" for index in range(count)]


def episode(
    config: MinesweeperConfig, player: str, seed: int
) -> tuple[float, list[tuple[MinesweeperView, Move, float]]]:
    """Final score, and (view, move, reward) of every step."""
    state, rng = GAME.reset(config, seed), random.Random(seed)
    steps: list[tuple[MinesweeperView, Move, float]] = []
    for _ in range(config.horizon):
        view = GAME.view(state)
        move = GAME.players[player](view, rng)
        outcome = GAME.take(state, move.action).outcome
        steps.append((view, move, outcome.reward))
        state = outcome.state
        if outcome.end_reason:
            break
    return GAME.final_score(reward for *_, reward in steps), steps


def assert_mean(scores: list[float], expected: float) -> None:
    """Within three standard errors: the seeds are fixed, so this never flickers."""
    assert abs(mean(scores) - expected) < 3 * stdev(scores) / len(scores) ** 0.5


# --- the draw -----------------------------------------------------------------------------------------------


def test_ten_to_twenty_mines_are_drawn_and_stated_truthfully() -> None:
    states = [GAME.reset(EVALUATION, seed) for seed in range(300)]
    counts = {state.mines.bit_count() for state in states}
    assert counts == set(range(10, 21))
    assert all(f"Mines: {state.mines.bit_count()}." in GAME.render(GAME.view(state)) for state in states)


def test_equal_seeds_are_the_same_instance_and_others_are_not() -> None:
    ids = {GAME.instance_id(GAME.reset(EVALUATION, seed)) for seed in range(200)}
    assert len(ids) == 200
    assert GAME.instance_id(GAME.reset(EXPLORATION, 7)) == GAME.instance_id(GAME.reset(EVALUATION, 7))


def test_impossible_mine_counts_are_refused_with_the_values() -> None:
    with pytest.raises(ValueError, match="mines_min=20, mines_max=10"):
        MinesweeperConfig(mines_min=20, mines_max=10)
    with pytest.raises(ValueError, match="extra_lives=-1: expected 0 or more"):
        MinesweeperConfig(extra_lives=-1)


# --- uncovering ---------------------------------------------------------------------------------------------


def test_the_first_uncovered_mine_moves_to_the_first_spare_cell_without_a_flag() -> None:
    state, rewards, end_reason = played(position(), "flag (0,0)", "uncover (4,4)")
    # (0,0) carries the flag, so the mine goes to (0,1). Around (4,4) are the mines (3,4) and (5,4).
    assert state.mines == position().mines ^ (1 << 40 | 1 << 1)
    assert state.board[40] == "2"
    assert (rewards, end_reason) == ([0.0, 0.0], None)


def test_only_the_first_uncovered_cell_is_protected() -> None:
    _, _, end_reason = played(position(), "uncover (4,3)", "uncover (4,4)")
    assert end_reason == "mine"


def test_without_protection_the_first_click_dies_as_often_as_mines_are_dense() -> None:
    unprotected = replace(EVALUATION, is_first_safe=False)
    deaths = [
        float(GAME.step(GAME.reset(unprotected, seed), "uncover (4,4)").end_reason == "mine") for seed in range(4000)
    ]
    assert_mean(deaths, 15 / 81)  # mines average 15 on 81 cells: 18.5 %
    assert GAME.step(GAME.reset(EVALUATION, deaths.index(1.0)), "uncover (4,4)").end_reason is None


def test_a_number_opens_alone_even_beside_a_zero() -> None:
    state, _, _ = played(position(), "uncover (3,3)")
    assert state.board == UNKNOWN * 30 + "3" + UNKNOWN * 50  # (3,2) is a 0 and stays closed


def test_a_zero_opens_its_region_and_flags_stop_it() -> None:
    state, _, _ = played(position(), "flag (4,0)", "flag (4,1)", "flag (4,2)", "flag (4,3)", "uncover (0,0)")
    assert [row(state, index) for index in (0, 1, 3, 4, 5)] == [
        "0002?????",
        "0003?????",
        "0003?????",
        "FFFF?????",
        "?????????",
    ]


def test_a_death_keeps_flags_and_shows_the_other_mines() -> None:
    state, rewards, end_reason = played(position(), "uncover (0,3)", "flag (0,4)", "flag (8,0)", "uncover (3,4)")
    assert end_reason == "mine"
    assert rewards == [0.0, 0.1, 0.0, 0.0]
    assert [row(state, index) for index in (0, 3, 8)] == ["???2F????", "????X????", "F???X???X"]


def test_extra_lives_are_spent_first_and_an_exploded_mine_is_out_of_play() -> None:
    state, rewards, end_reason = played(position(config=EXPLORATION), "uncover (0,0)", "uncover (0,4)", "uncover (1,4)")
    assert (rewards, end_reason, state.lives) == ([0.0, 0.0, 0.0], None, 0)
    assert "Extra lives left: 0." in GAME.render(GAME.view(state))
    assert GAME.take(state, "flag (0,4)").status == "illegal"
    assert GAME.take(state, "uncover (0,4)").status == "illegal"
    assert played(state, "uncover (2,4)")[2] == "mine"


# --- flags, rewards, ends -----------------------------------------------------------------------------------


def test_right_flags_pay_their_share_and_removing_one_takes_it_back() -> None:
    _, rewards, _ = played(position(), "flag (0,4)", "flag (0,0)", "unflag (0,0)", "unflag (0,4)", "flag (8,8)")
    assert rewards == [0.1, 0.0, 0.0, -0.1, 0.1]


def test_right_and_wrong_flags_look_the_same() -> None:
    for verb in ("flag", "unflag"):
        start = position() if verb == "flag" else played(position(), "flag (0,4)", "flag (0,0)")[0]
        right, wrong = GAME.step(start, f"{verb} (0,4)"), GAME.step(start, f"{verb} (0,0)")
        assert right.feedback == wrong.feedback
        assert right.reward != wrong.reward


def test_there_are_as_many_flags_as_mines() -> None:
    state, _, end_reason = played(position(), *(f"flag ({index},0)" for index in range(9)), "flag (0,1)")
    assert end_reason is None
    assert GAME.take(state, "flag (0,2)").status == "illegal"


def test_all_mines_flagged_ends_with_the_full_score() -> None:
    _, rewards, end_reason = played(position(), *flags_on_column_4(), "flag (8,8)")
    assert end_reason == "all_mines_flagged"
    assert GAME.final_score(rewards) == 1.0


def test_exploded_mines_need_no_flag_but_are_lost_for_the_score() -> None:
    _, rewards, end_reason = played(
        position(config=EXPLORATION), "uncover (0,0)", "uncover (8,8)", *flags_on_column_4()
    )
    assert end_reason == "all_mines_flagged"
    assert GAME.final_score(rewards) == 9 / 10


def test_a_wrong_flag_keeps_the_episode_open_until_it_is_removed() -> None:
    state, _, end_reason = played(
        position(config=EXPLORATION), "uncover (0,0)", "uncover (8,8)", "flag (8,7)", *flags_on_column_4()
    )
    assert end_reason is None
    assert played(state, "unflag (8,7)")[1:] == ([0.0], "all_mines_flagged")


def test_the_last_safe_cell_credits_the_mines_left() -> None:
    # Both sides of the wall open by their zeros; beside the mine in the corner all cells are numbers.
    state, rewards, end_reason = played(
        position(config=EXPLORATION), "flag (0,4)", "uncover (0,0)", "uncover (1,4)", "uncover (0,8)"
    )
    assert end_reason == "all_safe_open"
    # 10 mines, one flagged, one exploded: 8 are credited with the last cell.
    assert rewards[:3] == [0.1, 0.0, 0.0]
    assert GAME.final_score(rewards) == 9 / 10
    assert state.right == 9


@pytest.mark.parametrize("count", range(10, 21))
def test_rewards_add_up_to_the_exact_share(count: int) -> None:
    drawing = "*" * count + "." * (CELLS - count)
    total = 0.0
    state = position(drawing)
    for index in range(count):
        outcome = GAME.step(state, f"flag ({index // SIZE},{index % SIZE})")
        state, total = outcome.state, total + outcome.reward
        assert total == (index + 1) / count


# --- answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "status", "action"),
    [
        ("uncover (3,4)", "ok", "uncover (3,4)"),
        ("UNCOVER(3, 4)", "repaired", "uncover (3,4)"),
        ("flag [3 4].", "repaired", "flag (3,4)"),
        ("Flag 3,4", "repaired", "flag (3,4)"),
        ("flag { 3.0 , 4.00 }!", "repaired", "flag (3,4)"),
        ("`uncover <0 8>`", "repaired", "uncover (0,8)"),
        ("uncover\n(3,\t4)", "repaired", "uncover (3,4)"),
        ("uncover (9,0)", "invalid", None),
        ("flag (0,-1)", "invalid", None),
        ("unflag (0,0)", "illegal", None),
        ("uncover (1,3)", "illegal", None),
        ("flag (1,3)", "illegal", None),
        ("uncover (8,8)", "illegal", None),
        ("unflag (8,8)", "ok", "unflag (8,8)"),
        ("uncover (3.5,4)", "unparsable", None),
        ("[uncover (3,4)]", "repaired", "uncover (3,4)"),
        ("uncover (3,4)) (", "unparsable", None),
        ("uncover 34", "unparsable", None),
        ("open (3,4)", "unparsable", None),
        ("I uncover (3,4)", "unparsable", None),
        ("uncover (3,4) because it is safe", "unparsable", None),
        ("uncover (3,4), flag (1,1)", "unparsable", None),
        ("uncover (٣,4)", "unparsable", None),
        ("", "unparsable", None),
    ],
)
def test_the_grammar(text: str, status: str, action: str | None) -> None:
    state, _, _ = played(position(), "flag (8,8)", "uncover (1,3)")
    parsed = GAME.parse(text, GAME.view(state))
    assert parsed[:2] == (status, action)
    assert bool(parsed.feedback) == (action is None)


@pytest.mark.parametrize("text", [None, "hello", "uncover (9,9)", "unflag (0,0)", "END"])
def test_an_unusable_answer_costs_the_step_and_nothing_else(text: str | None) -> None:
    state = position()
    outcome = GAME.take(state, text).outcome
    assert outcome.state == replace(state, step_index=1)
    assert (outcome.reward, outcome.end_reason) == (0.0, None)
    strict = position(config=replace(EVALUATION, unusable_ends=True))
    assert GAME.take(strict, text).outcome.end_reason == "unusable_answer"


def test_the_observation_reads_like_a_board() -> None:
    state, _, _ = played(position(), "flag (0,4)", "uncover (0,0)")
    assert GAME.render(GAME.view(state)).splitlines()[:4] == [
        "Step 3 of 64. Mines: 10. Flags used: 1. Extra lives left: 0.",
        "col   0 1 2 3 4 5 6 7 8",
        "row 0 0 0 0 2 F ? ? ? ?",
        "row 1 0 0 0 3 ? ? ? ? ?",
    ]


# --- players ------------------------------------------------------------------------------------------------


def enumerated_chances(board: str, mine_count: int) -> Mapping[int, float]:
    """Mine chances by trying every placement."""
    unknown = showing(board, UNKNOWN)
    exploded = set(showing(board, EXPLODED))
    numbers = [cell for cell, glyph in enumerate(board) if glyph.isdigit()]
    fitting = [
        set(placed)
        for placed in combinations(unknown, mine_count - len(exploded))
        if all(len((exploded | set(placed)).intersection(NEAR[cell])) == int(board[cell]) for cell in numbers)
    ]
    return {cell: sum(cell in placed for placed in fitting) / len(fitting) for cell in unknown}


def test_chances_are_those_of_trying_every_placement() -> None:
    compared = uncertain = 0
    for seed in range(80):
        for view, _, _ in episode(EXPLORATION, "expert", seed)[1]:
            board = view.board.replace(FLAG, UNKNOWN)
            left = view.mine_count - board.count(EXPLODED)
            if view.board.count(FLAG) % 3 == 0 and comb(board.count(UNKNOWN), left) <= 5000:
                expected = enumerated_chances(board, view.mine_count)
                chances = mine_chances(board, view.mine_count)
                assert chances == pytest.approx(expected, abs=1e-12)
                assert certain(board).items() <= expected.items()
                compared += 1
                uncertain += any(0 < chance < 1 for chance in chances.values())
    assert compared >= 40
    assert uncertain >= 15


def test_chances_away_from_numbers_follow_from_the_total() -> None:
    # One open 1 in a corner: 3 neighbours share one mine, the other 77 cells share the other nine.
    board = "1" + UNKNOWN * 80
    chances = mine_chances(board, 10)
    assert chances[1] == chances[9] == chances[10] == pytest.approx(1 / 3)
    assert chances[80] == pytest.approx(9 / 77)


@pytest.mark.parametrize("config", [EXPLORATION, EVALUATION], ids=["exploration", "evaluation"])
def test_the_expert_knows_what_a_step_pays_or_says_that_it_cannot(config: MinesweeperConfig) -> None:
    step_count = unknown = paid = 0
    for seed in range(120):
        for _, move, reward in episode(config, "expert", seed)[1]:
            step_count += 1
            paid += reward > 0
            if move.self_score is None:
                unknown += 1
            else:
                assert move.self_score == pytest.approx(reward, abs=1e-12)
    assert paid > 1000
    assert 0 < unknown < step_count / 10


@pytest.mark.parametrize(
    ("config", "player", "episodes", "expected"),
    [
        (EVALUATION, "expert", 400, 0.77),
        (EXPLORATION, "expert", 200, 0.96),
        (EVALUATION, "random", 2000, 0.03),
        (EVALUATION, "flagger", 400, 15 / 81),
    ],
)
def test_the_anchors_are_reproduced(config: MinesweeperConfig, player: str, episodes: int, expected: float) -> None:
    assert_mean([episode(config, player, seed)[0] for seed in range(episodes)], expected)


def test_players_answer_usably_from_any_position() -> None:
    for seed in range(30):
        state, rng = GAME.reset(EXPLORATION, seed), random.Random(seed)
        for _ in range(40):
            view = GAME.view(state)
            move = GAME.players["expert"](view, rng)
            assert GAME.parse(move.action, view).status == "ok"
            outcome = GAME.step(state, GAME.players["random"](view, rng).action)
            state = outcome.state
            if outcome.end_reason:
                break


# --- the learner --------------------------------------------------------------------------------------------

Counts = dict[tuple[str, str], dict[str, int]]


def learn(config: MinesweeperConfig, seed: int, facts: Counts, is_recorded: bool) -> float:
    """One episode of the learner; its facts are added to ``facts`` when recorded."""
    state, rng, total = GAME.reset(config, seed), random.Random(seed), 0.0
    for _ in range(config.horizon):
        before = GAME.render(GAME.view(state))
        move = GAME.reader.choose(before, facts, rng)
        taken = GAME.take(state, move.action)
        assert taken.status == "ok", (before, move)
        state, total = taken.outcome.state, total + taken.outcome.reward
        after = f"{taken.outcome.feedback}\n{GAME.render(GAME.view(state))}"
        if is_recorded:
            for situation, action, result in GAME.reader.facts(before, move.action, after):
                results = facts.setdefault((situation, action), {})
                results[result] = results.get(result, 0) + 1
        if taken.outcome.end_reason:
            break
    return total


def test_the_learner_plays_far_better_with_the_facts_of_six_episodes() -> None:
    facts: Counts = {}
    for seed in range(10_000, 10_006):
        learn(EXPLORATION, seed, facts, is_recorded=True)
    informed = mean(learn(EVALUATION, seed, facts, is_recorded=False) for seed in range(60))
    ignorant = mean(learn(EVALUATION, seed, {}, is_recorded=False) for seed in range(60))
    assert ignorant < 0.05
    assert informed > ignorant + 0.2


def shown(state: MinesweeperState) -> str:
    return GAME.render(GAME.view(state))


def test_a_fact_is_what_an_uncovered_cell_was_where_its_numbers_stood() -> None:
    before, _, _ = played(position(config=EXPLORATION), "uncover (0,3)")  # a 2 with 5 unknown cells
    safe, mine = GAME.step(before, "uncover (0,2)").state, GAME.step(before, "uncover (0,4)").state
    facts = GAME.reader.facts
    situation = "a number needs under 2/3"
    assert list(facts(shown(before), "uncover (0,2)", shown(safe))) == [(situation, "uncover", "safe")]
    assert list(facts(shown(before), "uncover (0,4)", shown(mine))) == [(situation, "uncover", "mine")]
    assert list(facts(shown(before), "flag (0,4)", shown(GAME.step(before, "flag (0,4)").state))) == []


def test_states_that_do_not_follow_from_each_other_give_no_fact() -> None:
    before, _, _ = played(position(), "uncover (0,3)")
    other, _, _ = played(replace(position(), mines=position().mines >> 1), "uncover (0,2)", "uncover (0,3)")
    assert other.board[3] == EXPLODED  # where ``before`` shows a 2
    facts = GAME.reader.facts
    assert list(facts(shown(before), "uncover (0,2)", shown(other))) == []
    assert list(facts(shown(before), "uncover (0,2)", shown(before))) == []
    assert list(facts("nothing", "uncover (0,2)", shown(before))) == []


def test_a_death_shows_what_every_unknown_cell_was() -> None:
    before, _, _ = played(position(), "flag (0,0)", "uncover (0,3)")
    after = GAME.step(before, "uncover (3,4)").state
    results = [result for _, _, result in GAME.reader.facts(shown(before), "uncover (3,4)", shown(after))]
    assert (results.count("mine"), results.count("safe")) == (10, 69)  # 81 cells, one flag, one number


def test_the_reader_names_what_the_rules_allow() -> None:
    state, _, _ = played(position(), "flag (0,4)", "uncover (0,0)")
    actions = GAME.reader.actions(shown(state))
    assert len(actions) == 2 * state.board.count(UNKNOWN)
    assert all(GAME.parse(action, GAME.view(state)).status == "ok" for action in actions)
    # 9 unflagged mines of 10 on 44 cells: columns 4 to 8 are closed, less the flag.
    assert GAME.reader.glance(shown(state), "flag (4,4)") == pytest.approx(9 / 44 / 10)
    assert GAME.reader.glance(shown(state), "uncover (4,4)") == 0.0
