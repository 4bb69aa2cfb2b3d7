"""Nullify: hand-worked joins, boards and their certificates, reference players, and what the learner can learn."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import sqrt
from statistics import mean

import pytest

from s3gym.games._nullify import CEIL, FLOOR, FUNCTIONS, LIMIT, NUMBER, OVER, SCALE, TIMES, find_chain, result, sources
from s3gym.games.base import USABLE, Move
from s3gym.games.nullify import (
    GAME,
    NullifyConfig,
    NullifyState,
    NullifyView,
    Unit,
    actions_along,
    number,
    operator,
)

EXPLORATION, EVALUATION = GAME.exploration, GAME.evaluation
PHASES = pytest.mark.parametrize("config", [EXPLORATION, EVALUATION], ids=["exploration", "evaluation"])
Seen = dict[tuple[str, str], Counter[str]]


def unit(text: str) -> Unit:
    """A unit from its text; ``+1/3`` is a number too."""
    if text in FUNCTIONS:
        return operator(text)
    return operator(text[0], int(text[1:])) if text[0] in (TIMES, OVER) else number(Fraction(text))


def board(text: str, config: NullifyConfig = EVALUATION) -> NullifyState:
    return NullifyState(config=config, units=tuple(map(unit, text.split())), certificate=())


def shown(state: NullifyState) -> str:
    return " ".join(unit.text for unit in state.units)


def joined(text: str, *actions: str) -> tuple[str, float, str | None]:
    """(units, reward, end) after ``actions`` on a board."""
    state, reward = board(text), 0.0
    for action in actions:
        taken = GAME.take(state, action)
        assert taken.status == "ok", taken
        state, reward = taken.outcome.state, taken.outcome.reward
    return shown(state), reward, state.end_reason


# --- joins --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("units", "action", "after"),
    [
        ("+2 *3 -5", "0 2", "*3 -3"),  # 2 - 5
        ("+2 *3 -5", "2 0", "*3 -3"),  # order makes no difference
        ("+2 *3 -5", "0 1", "-5 +6"),  # 2 x 3, put at the end
        ("+2 *3 -5", "1 0", "-5 +6"),
        ("+1 +2 /-4", "1 2", "+1 -0.5"),
        ("+1 /3 +1", "0 1", "+1 +0.333333"),
        ("+2/3 +1 +1", "1 2", "+0.666667 +2"),
        ("+1 -2.37 floor", "1 2", "+1 -3"),
        ("+1 -2.37 ceil", "1 2", "+1 -2"),
        ("+1 +0.37 floor", "1 2", "+1 0"),  # only a sum of 0 vanishes
        ("+1 -0.37 ceil", "1 2", "+1 0"),
        ("+1 +2.25 sqrt", "1 2", "+1 +1.5"),
        ("+1 +2 sqrt", "1 2", "+1 +1.414214"),  # 1.41421356...
        ("+1 -1.5 square", "1 2", "+1 +2.25"),
        ("+1 -8 reciprocal", "1 2", "+1 -0.125"),
        ("+1 +10000 square", "1 2", "+1 +100000000"),
        ("+3 -3 +1 sqrt", "0 1", "+1 sqrt"),  # a sum of 0 leaves nothing
        ("+1 +0.000005 /10", "1 2", "+1 0"),  # 0.0000005 is nearer to 0 than 0.000001
        ("+1 +0.00001 /10", "1 2", "+1 +0.000001"),
    ],
)
def test_a_join_takes_two_units_away_and_puts_their_result_at_the_end(units: str, action: str, after: str) -> None:
    assert joined(units, action) == (after, 0.0, None)


def test_numbers_stay_exact_whatever_is_shown() -> None:
    # 1 / 3 x 3 = 1 exactly, which 0.333333 x 3 is not: floor shows it
    assert joined("+1 /3 *3 floor +5", "0 1", "3 0", "2 0") == ("+5 +1", 0.0, None)


def test_a_root_that_is_no_fraction_is_cut_and_its_square_is_near_enough_to_cancel() -> None:
    # 1.414213562373 squared is 1.99999999999973: shown as rounded, and 0 once 2 is taken away
    assert joined("+2 sqrt square -2", "0 1", "2 0") == ("-2 +2.000000", 0.0, None)
    assert joined("+2 sqrt square -2", "0 1", "2 0", "0 1") == ("", 1.0, "nullified")


# --- ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("units", "action"),
    [
        ("+5 -5", "0 1"),  # an empty list
        ("+0.37 floor", "0 1"),  # a lone 0
        ("0 *7", "1 0"),
        ("0 +5 -5", "1 2"),  # the sum vanishes and a 0 is left over
        ("+1/3 -1/3", "0 1"),
    ],
)
def test_nothing_but_0_is_solved_and_pays_1(units: str, action: str) -> None:
    outcome = GAME.take(board(units), action).outcome
    assert outcome[1:] == (1.0, "Nothing is left but 0.")
    assert outcome.end_reason == "nullified"


@pytest.mark.parametrize(
    ("units", "action", "left"),
    [
        ("+5 -4", "0 1", "+1"),  # a lone number that is not 0
        ("+5 -5 floor *2", "0 1", "floor *2"),  # operators alone
        ("+5 -5 sqrt", "0 1", "sqrt"),
        ("+5 -6 sqrt", "0 1", "sqrt -1"),  # a negative number with roots alone
        ("+5 *-1 sqrt sqrt", "0 1", "sqrt sqrt -5"),
        ("+0.5 floor reciprocal", "0 1", "reciprocal 0"),  # 0 with a reciprocal alone
        ("+9999 +2 square", "0 1", "square +10001"),  # too large to be squared
    ],
)
def test_a_board_without_a_legal_move_ends_at_once_with_0(units: str, action: str, left: str) -> None:
    outcome = GAME.take(board(units), action).outcome
    assert shown(outcome.state) == left
    assert outcome[1:] == (0.0, "No legal move is left.")
    assert outcome.end_reason == "no_legal_move"


def legal_actions(state: NullifyState) -> list[str]:
    """Found by trying all pairs."""
    view = GAME.view(state)
    pairs = [f"{first} {second}" for first, second in combinations(range(len(state.units)), 2)]
    return [pair for pair in pairs if GAME.parse(pair, view).status in USABLE]


@PHASES
def test_an_episode_goes_on_exactly_while_there_is_a_legal_move_and_more_than_0_is_left(config: NullifyConfig) -> None:
    ends: Counter[str | None] = Counter()
    for seed in range(300):
        state, rng = GAME.reset(config, seed), random.Random(seed)
        while state.end_reason is None:
            assert legal_actions(state)
            state = GAME.take(state, GAME.players["random"](GAME.view(state), rng).action).outcome.state
        ends[state.end_reason] += 1
        assert (shown(state) in ("", "0")) == (state.end_reason == "nullified")
        assert not legal_actions(state)
    assert ends["nullified"] and ends["no_legal_move"] and len(ends) == 2


def walks(state: NullifyState) -> Iterator[tuple[int, str | None]]:
    """(joins so far, end) of every state that can be reached, once for each way to it."""
    for action in legal_actions(state):
        after = GAME.take(state, action).outcome.state
        yield after.step_index, after.end_reason
        if after.end_reason is None:
            yield from walks(after)


@pytest.mark.parametrize(
    ("units", "counts", "solved_count"),
    [
        # First 2-8, 2*2, 2 squared, -8*2, -8 squared. Then three boards of three units have 3 joins where both of
        # their numbers take the operator: 2 + 3 + 3 + 3 + 3, 2 where one number has two operators. All two units that
        # are left can be joined, and only 2 squared, doubled, less 8 is 0.
        ("+2 -8 *2 square", [5, 14, 14], 1),
        # First 2-2 (dead), 2*3, root of 2, -2*3; there is no root of -2. Then -2 root +6: 2 joins. -2 *3 +1.41: 3.
        # +2 root -6: 2, of which 2-6 leaves root -4 (dead). Of the other 6 boards each has one join, none to 0.
        ("+2 -2 *3 sqrt", [4, 7, 6], 0),
    ],
)
def test_all_ways_to_play_a_small_board(units: str, counts: list[int], solved_count: int) -> None:
    found = list(walks(board(units)))
    depths = Counter(depth for depth, _ in found)
    assert [depths[depth] for depth in sorted(depths)] == counts
    assert sum(end == "nullified" for _, end in found) == solved_count


# --- answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "status", "action"),
    [
        ("0 3", "ok", "0 3"),
        ("3 0", "ok", "3 0"),
        ("0,3", "repaired", "0 3"),
        ("(0, 3)", "repaired", "0 3"),
        ("[3 0].", "repaired", "3 0"),
        ("0.0 3.", "repaired", "0 3"),
        ("-0 3", "repaired", "0 3"),
        ("0", "unparsable", None),
        ("0 1 3", "unparsable", None),
        ("0.5 3", "unparsable", None),
        ("0+3", "unparsable", None),
        ("join 0 3", "unparsable", None),
        ("1e0 3", "unparsable", None),
        ("０ 3", "unparsable", None),
        ("IMPOSSIBLE", "unparsable", None),
        ("-1 3", "invalid", None),
        ("0 6", "invalid", None),
        ("1,000 3", "unparsable", None),
        ("999999999 0", "invalid", None),
        ("2 2", "illegal", None),
        ("2 3", "illegal", None),  # two operators
        ("0 2", "illegal", None),  # root of -4
        ("1 3", "illegal", None),  # reciprocal of 0
        ("4 5", "illegal", None),  # square of 10001
        ("4 2", "ok", "4 2"),
    ],
)
def test_the_grammar_takes_two_indices(text: str, status: str, action: str | None) -> None:
    parsed = GAME.parse(text, GAME.view(board("-4 0 sqrt reciprocal +10001 square")))
    assert (parsed.status, parsed.action) == (status, action)
    assert bool(parsed.feedback) == (action is None)


def test_an_unusable_answer_changes_nothing_costs_the_step_and_says_why() -> None:
    for config in (EXPLORATION, EVALUATION):
        before = board("-4 0 sqrt reciprocal", config)
        feedbacks = set()
        for text in ("none", "0 9", "1 1", "2 3", "0 2", "1 3"):
            outcome = GAME.take(before, text).outcome
            assert (outcome.state, outcome.reward) == (replace(before, step_index=1), 0.0)
            feedbacks.add(outcome.feedback)
        assert len(feedbacks) == 6


# --- what is shown ------------------------------------------------------------------------------------------


def test_the_observation_numbers_the_units() -> None:
    state = replace(board("+5 -0.25 *-7 /3 sqrt 0"), step_index=6)
    assert GAME.render(GAME.view(state)) == "Step 7 of 50.\n0: +5\n1: -0.25\n2: *-7\n3: /3\n4: sqrt\n5: 0"
    assert GAME.render(NullifyView(50, 50, ())) == "Step 50 of 50.\nNo unit is left."


def test_rules_are_true_for_the_configuration() -> None:
    assert "at most 50 steps" in GAME.rules(EVALUATION)
    assert "at most 9 steps" in GAME.rules(replace(EVALUATION, horizon=9))
    assert "changes nothing and uses the step up" in GAME.rules(EVALUATION)
    assert "not possible ends the episode" in GAME.rules(replace(EVALUATION, unusable_ends=True))


# --- boards -------------------------------------------------------------------------------------------------


@PHASES
def test_every_boards_certificate_ends_at_exact_0_by_values_within_its_bounds(config: NullifyConfig) -> None:
    counts: Counter[int] = Counter()
    for seed in range(2_000):
        state = GAME.reset(config, seed)
        assert sorted(state.certificate) == list(range(len(state.units)))
        units = [state.units[index] for index in state.certificate]
        value, count = units[0].amount, 0
        for action, operand in zip(actions_along(state.certificate), units[1:], strict=True):
            is_cut_off = operand.kind == NUMBER and operand.amount.denominator > 1  # the rest of floor or ceil
            assert value or is_cut_off
            assert abs(value) <= 10_000 and (value * 10_000).denominator == 1
            assert operand.kind not in (FLOOR, CEIL) or value.denominator > 1
            count += not is_cut_off
            taken = GAME.take(state, action)
            assert taken.status == "ok"
            state = taken.outcome.state
            value = state.units[-1].amount if state.units else Fraction(0)
        assert (value, state.end_reason, taken.outcome.reward) == (0, "nullified", 1.0)
        counts[count] += 1
    assert set(counts) == set(range(config.steps_min, config.steps_max + 1))


def test_the_same_units_in_another_order_are_the_same_instance() -> None:
    state = GAME.reset(EVALUATION, 1)
    assert GAME.instance_id(state) == GAME.instance_id(replace(state, units=state.units[::-1]))
    assert GAME.instance_id(state) != GAME.instance_id(replace(state, units=state.units[1:]))


@pytest.mark.parametrize(("least", "most"), [(0, 5), (6, 5), (5, 11)])
def test_impossible_configurations_say_what_to_change(least: int, most: int) -> None:
    with pytest.raises(ValueError, match=f"steps_min={least}, steps_max={most}: expected .* change one of them"):
        NullifyConfig(steps_min=least, steps_max=most)


# --- the search ---------------------------------------------------------------------------------------------


def pieces(text: str) -> tuple[tuple[str, int], ...]:
    units = map(unit, text.split())
    return tuple((kind, int(amount * (SCALE if kind == NUMBER else 1))) for kind, amount, _ in units)


@pytest.mark.parametrize(
    ("units", "chain"),
    [
        ("floor +0.37", (1, 0)),
        ("-8 square +2 *2", (2, 1, 3, 0)),  # 2 squared, doubled, less 8
    ],
)
def test_the_search_finds_the_only_chain_there_is(units: str, chain: tuple[int, ...]) -> None:
    assert find_chain(pieces(units)) == chain


def test_the_search_finds_none_where_there_is_none() -> None:
    assert find_chain(pieces("+1 +1")) is None
    assert find_chain(pieces("+0.37 floor +2.5")) is None  # 2 + 0.37
    assert find_chain(pieces("+37 +41 -78")) is None  # solvable, but never made: two numbers that only start a chain


def test_the_search_uses_equal_units_in_order_and_both_of_them() -> None:
    # 48 / 2 / 2 = 12, less 6, less 6
    assert find_chain(pieces("/2 -6 +48 /2 -6")) == (2, 0, 3, 1, 4)


def test_sources_hold_every_value_that_is_joined_to_a_result() -> None:
    rng = random.Random(1)
    tried: Counter[str] = Counter()
    while min(tried[kind] for kind in (NUMBER, TIMES, OVER, *FUNCTIONS)) < 50:
        kind = rng.choice((NUMBER, TIMES, OVER, *FUNCTIONS))
        amount = {NUMBER: rng.randrange(-9, 9) * SCALE, TIMES: rng.choice((-7, 2)), OVER: rng.choice((-4, 5))}
        piece = kind, amount.get(kind, 0)
        value = rng.choice((1, 2, 25, 100, 2_500, SCALE)) * rng.randrange(-99, 100)
        value -= value % 100 if kind in (FLOOR, CEIL) else 0
        after = result(piece, value)
        if after is not None:
            tried[kind] += 1
            assert any(low <= value <= high for low, high in sources(piece, after, after)), (piece, value, after)
            assert any(low <= value <= high for low, high in sources(piece, after - 70_000, after + 500))


def test_sources_hold_nothing_else() -> None:
    rng = random.Random(2)
    for kind, amount in [(TIMES, -7), (OVER, 5), (FLOOR, 0), (CEIL, 0), ("sqrt", 0), ("square", 0), ("reciprocal", 0)]:
        for after in [rng.randrange(-200, 200) * SCALE // 100 for _ in range(300)]:
            for low, high in sources((kind, amount), after, after):
                assert -LIMIT <= low <= high <= LIMIT
                assert result((kind, amount), low) == result((kind, amount), high) == after


# --- players ------------------------------------------------------------------------------------------------


def play(player: str, config: NullifyConfig, seed: int) -> tuple[float, bool]:
    """(final score, whether every self-score was the verifier's reward)."""
    state, rng, rewards, is_exact = GAME.reset(config, seed), random.Random(seed), [], True
    while state.end_reason is None:
        move = GAME.players[player](GAME.view(state), rng)
        outcome = GAME.take(state, move.action).outcome
        state = outcome.state
        rewards.append(outcome.reward)
        is_exact = is_exact and move.self_score == outcome.reward
    return GAME.final_score(rewards), is_exact


@PHASES
def test_the_expert_solves_every_board_and_judges_itself_exactly(config: NullifyConfig) -> None:
    # 1,000 of 1,000 measured in both phases
    assert [play("expert", config, seed) for seed in range(80)] == [(1.0, True)] * 80


def test_the_expert_goes_on_where_there_is_no_way() -> None:
    # the last join is judged as it is: 1 + 1 is not 0
    for units, score in (("+1 +1", 0.0), ("+1 +1 sqrt", 0.0), ("+37 +41 -78", 0.0), ("+1/3 -1/3", 1.0)):
        state = board(units)
        move = GAME.players["expert"](GAME.view(state), random.Random(0))
        assert GAME.take(state, move.action).status == "ok"
        assert move.self_score == score


@pytest.mark.parametrize(("config", "chance"), [(EXPLORATION, 0.16), (EVALUATION, 0.045)])
def test_a_random_player_solves_few_boards(config: NullifyConfig, chance: float) -> None:
    count = 2_000
    standard_error = sqrt(chance * (1 - chance) / count)
    assert abs(mean(play("random", config, seed)[0] for seed in range(count)) - chance) <= 2 * standard_error


# --- the learner's eyes -------------------------------------------------------------------------------------


def text_of(state: NullifyState) -> str:
    return GAME.render(GAME.view(state))


def shown_by(units: str, action: str) -> list[tuple[str, str, str]]:
    before = board(units)
    outcome = GAME.take(before, action).outcome
    return list(GAME.reader.facts(text_of(before), action, f"{outcome.feedback}\n{text_of(outcome.state)}"))


ONE_FEWER = ("any join", "*", "1 fewer")


@pytest.mark.parametrize(
    ("units", "action", "facts"),
    [
        ("+5 +6 sqrt", "0 1", [ONE_FEWER, ("number with number", "*", "sum")]),
        ("+5 *3 sqrt", "1 0", [ONE_FEWER, ("number with *", "*", "product")]),  # 15; 5 + 3 = 8
        ("+5 /3 sqrt", "0 1", [ONE_FEWER, ("number with /", "*", "quotient")]),  # 1.666667
        ("+2.37 floor sqrt", "0 1", [ONE_FEWER, ("number with floor", "*", "rounded down")]),
        ("+2.37 ceil sqrt", "0 1", [ONE_FEWER, ("number with ceil", "*", "rounded up")]),
        ("+0.5 sqrt +1", "0 1", [ONE_FEWER, ("number with sqrt", "*", "square root")]),  # 0.707107
        ("-3 square +1", "0 1", [ONE_FEWER, ("number with square", "*", "square")]),
        ("-4 reciprocal +1", "0 1", [ONE_FEWER, ("number with reciprocal", "*", "reciprocal")]),
        ("+2 *2 sqrt", "0 1", [ONE_FEWER]),  # 4 is 2 + 2 and 2 x 2
        ("+1 sqrt +1", "0 1", [ONE_FEWER]),  # any function makes 1 of 1
        ("+5 -5 +1", "0 1", [("any join", "*", "2 fewer")]),
        ("+5 -4", "0 1", [ONE_FEWER, ("number with number", "*", "sum")]),  # the end shows as much
        ("+5 sqrt *2", "1 2", []),  # nothing happened
    ],
)
def test_a_join_shows_what_its_result_can_only_be(units: str, action: str, facts: list[tuple[str, str, str]]) -> None:
    assert shown_by(units, action) == facts


@pytest.mark.parametrize("after", ["+5 sqrt +9", "+1 +11 sqrt", "sqrt +11 +11", ""])
def test_boards_that_do_not_follow_from_each_other_show_nothing(after: str) -> None:
    before = board("+5 +6 sqrt")
    following = replace(board(after), step_index=1)
    assert list(GAME.reader.facts(text_of(before), "0 1", text_of(following))) == []
    right = replace(board("sqrt +11"), step_index=1)
    assert list(GAME.reader.facts(text_of(before), "0 1", text_of(right)))
    assert list(GAME.reader.facts(text_of(before), "0 1", text_of(replace(right, step_index=2)))) == []


def test_without_facts_every_pair_is_tried_and_nothing_is_claimed() -> None:
    observation = text_of(board("+5 -6 *3 sqrt"))
    moves = {GAME.reader.choose(observation, {}, random.Random(seed)) for seed in range(60)}
    # no root of -6, and two operators do not join
    assert moves == {Move(action, None) for action in ("0 1", "0 2", "0 3", "1 2")}
    assert {move.action for move in moves} == set(GAME.reader.actions(observation))


JOINS = {("any join", "*"): {"1 fewer": 3}}
SUMS = {**JOINS, ("number with number", "*"): {"sum": 2}}


def test_units_do_what_they_were_seen_to_do_not_what_they_are_called() -> None:
    turned = {**SUMS, ("number with floor", "*"): {"rounded up": 2}}
    # rounded up, 2.5 and -3 are 0 in the end; rounded down, they are not
    observation = text_of(board("+2.5 -3 floor"))
    moves = {GAME.reader.choose(observation, turned, random.Random(seed)) for seed in range(20)}
    assert moves == {Move("0 2", 0.0)}
    assert GAME.reader.choose(text_of(board("-0.5 floor")), turned, random.Random(0)) == Move("0 1", 1.0)


def test_what_is_not_known_yet_is_tried_and_scored_only_where_no_reward_can_be() -> None:
    many, few = text_of(board("+2.5 -3 floor *2")), text_of(board("+2.5 -3 floor"))
    facts = {**SUMS, ("number with *", "*"): {"product": 1}}
    assert {GAME.reader.choose(many, facts, random.Random(seed)) for seed in range(20)} == {
        Move("0 2", 0.0),
        Move("1 2", 0.0),
    }
    assert GAME.reader.choose(few, facts, random.Random(0)).self_score is None


def test_a_glance_is_a_reward_by_the_stated_rules() -> None:
    observation = text_of(board("0 +5 -5"))
    assert [GAME.reader.glance(observation, action) for action in ("1 2", "0 1", "7 8", "END")] == [1.0, 0.0, 0.0, 0.0]


def test_facts_from_nine_exploration_episodes_make_a_learner_that_solves_far_more_boards() -> None:
    def episode(config: NullifyConfig, seed: int, facts: Seen) -> float:
        state, rng, reward = GAME.reset(config, seed), random.Random(seed), 0.0
        while state.end_reason is None:
            before = text_of(state)
            action = GAME.reader.choose(before, facts, rng).action
            outcome = GAME.take(state, action).outcome
            state, reward = outcome.state, outcome.reward
            for situation, name, seen in GAME.reader.facts(before, action, text_of(state)):
                facts.setdefault((situation, name), Counter())[seen] += 1
        return reward

    def evaluate(facts: Seen) -> float:
        copies = ({key: Counter(seen) for key, seen in facts.items()} for _ in range(60))
        return mean(episode(EVALUATION, seed, copy) for seed, copy in enumerate(copies, start=1_000))

    without, gained = evaluate({}), []
    for base in range(3):
        experience: Seen = {}
        for seed in range(9):
            episode(EXPLORATION, 100 * base + seed, experience)
        gained.append(evaluate(experience))
    assert without < 0.15
    assert min(gained) > 0.4
