"""Plants-vs-Zombies: hand-worked turns, the schedule of zombies, reference players, and what the learner can learn."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from statistics import mean

import pytest

from s3gym.games._lawn import PLANTS, ZOMBIES, Lawn, Plant, Zombie
from s3gym.games.base import Move, Outcome
from s3gym.games.pvz import GAME, PvzConfig, PvzState
from s3gym.protocol.anchors import play_out

EXPLORATION, EVALUATION = GAME.exploration, GAME.evaluation
QUIET = 1
"""A turn at whose end no zombie comes in."""
Seen = dict[tuple[str, str], Counter[str]]


def field(
    plants: str = "", zombies: str = "", sun: int = 0, turn: int = QUIET, config: PvzConfig = EVALUATION
) -> PvzState:
    """A state of plants such as ``W00`` or ``J12=3`` (row, column, hit points) and zombies alike, in their order."""

    def read(name: str) -> tuple[int, str, int]:
        (letter, row, column), _, hp = name.partition("=")
        return int(row) * config.columns + int(column), letter, int(hp or {**PLANTS, **ZOMBIES}[letter].hp)

    grown = tuple(Plant(*read(name)) for name in plants.split())
    come = tuple(Zombie(*read(name)) for name in zombies.split())
    lawn = Lawn(config.rows, config.columns, sun, grown, come)
    return replace(GAME.reset(config, 1), lawn=lawn, step_index=turn)


def shown(state: PvzState) -> str:
    """Plants, then zombies, as ``field`` writes them, with all hit points."""
    columns = state.config.columns
    return " ".join(
        f"{each.letter}{each.cell // columns}{each.cell % columns}={each.hp}"
        for each in (*state.lawn.plants, *state.lawn.zombies)
    )


def played(state: PvzState, text: str = "none") -> Outcome:
    return GAME.take(state, text).outcome


def text_of(state: PvzState) -> str:
    return GAME.render(GAME.view(state))


# --- zombies to come ----------------------------------------------------------------------------------------


def test_an_episode_starts_with_50_sun_and_an_empty_field() -> None:
    state = GAME.reset(EVALUATION, 3)
    assert state.lawn == Lawn(5, 6, 50, (), ())


def test_zombies_at_turns_0_5_and_10_number_1_1_and_2() -> None:
    for seed in range(20):
        for turn, count in ((0, 1), (5, 1), (10, 2), (60, 7)):
            state = replace(field(turn=turn), coming=GAME.reset(EVALUATION, seed).coming)
            zombies = played(state).state.lawn.zombies
            assert len(zombies) == count
            assert {zombie.cell % 6 for zombie in zombies} == {5}
        assert played(field(turn=1)).state.lawn.zombies == ()


def test_49_zombies_come_in_64_turns_each_once_and_in_their_order() -> None:
    # Turns 0, 5, ..., 60 bring 1 1 2 2 3 3 4 4 5 5 6 6 7 zombies: 2 * (1 + ... + 6) + 7 = 49.
    start = GAME.reset(EVALUATION, 4)
    met = []
    for turn in range(64):
        zombies = played(replace(start, step_index=turn)).state.lawn.zombies
        met += [(zombie.cell // 6, zombie.letter) for zombie in zombies]
    assert tuple(met) == start.coming
    assert len(met) == 49


def test_kinds_and_hit_points_grow_with_the_turns() -> None:
    seen: dict[int, set[tuple[str, int]]] = {turn: set() for turn in (5, 10, 15, 20, 60)}
    for seed in range(60):
        for turn in seen:
            state = replace(GAME.reset(EVALUATION, seed), step_index=turn)
            seen[turn] |= {(zombie.letter, zombie.hp) for zombie in played(state).state.lawn.zombies}
    assert seen[5] == {("N", 4)}
    assert seen[10] == seen[15] == {("N", 8), ("R", 12)}  # 4 more each
    assert seen[20] == {("N", 12), ("R", 16), ("B", 20), ("I", 14)}  # 8 more
    assert seen[60] == {("N", 28), ("R", 32), ("B", 36), ("I", 30)}  # 24 more


def test_a_shorter_episode_has_the_same_zombies_and_a_longer_one_has_more() -> None:
    start = GAME.reset(EVALUATION, 5)
    assert GAME.reset(replace(EVALUATION, horizon=3), 5).coming == start.coming
    # Turns 65 to 80 bring 7 8 8 9: those 49 and 32 more.
    assert len(GAME.reset(replace(EVALUATION, horizon=81), 5).coming) == 81


# --- doing nothing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("config", "score"), [(EVALUATION, 6), (EXPLORATION, 7)])
def test_doing_nothing_survives_as_many_turns_as_there_are_columns_for_every_seed(
    config: PvzConfig, score: int
) -> None:
    assert {play_out(GAME, config, "nothing", seed) for seed in range(300)} == {score}
    assert GAME.exact_anchor(config, "nothing") == (score, 0.0)
    assert GAME.exact_anchor(replace(config, horizon=3), "nothing") == (3.0, 0.0)
    assert play_out(GAME, replace(config, horizon=3), "nothing", 1) == 3


def test_the_losing_turn_pays_nothing_and_the_other_zombies_still_move() -> None:
    outcome = played(field(zombies="N00 R25"))
    assert (outcome.reward, outcome.end_reason, outcome.feedback) == (0.0, "breach", "A zombie reached the house.")
    assert shown(outcome.state) == "R24=8"


def test_a_lost_turn_brings_neither_sun_nor_zombies() -> None:
    outcome = played(field(zombies="N00", sun=10, turn=5))
    assert (outcome.state.lawn.sun, outcome.state.lawn.zombies) == (10, ())


# --- the order of a turn ------------------------------------------------------------------------------------


def test_a_sunflower_brings_10_sun_in_the_turn_it_is_planted() -> None:
    outcome = played(field("X00", sun=60), "X 1 0")
    assert outcome.state.lawn.sun == 60 - 50 + 2 * 10 + 25


def test_a_chili_planted_this_turn_clears_its_row_before_zombies_move() -> None:
    assert played(field("X01", "N00 I05 N11=40", sun=299), "F 0 3").end_reason == "breach"  # one sun too little
    outcome = played(field("X01", "N00 I05 N11=40", sun=300), "F 0 3")
    assert (outcome.reward, outcome.state.lawn.sun) == (1.0, 300 - 300 + 10 + 25)
    assert shown(outcome.state) == "X01=2 N10=40"  # the chili is gone as well, the sunflower is not


def test_a_chili_takes_its_cell_until_all_is_planted() -> None:
    taken = GAME.take(field(sun=400), "F 0 0; X 0 0; X 0 1")
    assert taken.outcome.feedback == "Skipped: cell taken."
    assert shown(taken.outcome.state) == "X01=2"


def test_a_three_line_shooter_in_row_0_hits_rows_0_and_1_once_each() -> None:
    outcome = played(field("S00", "N05 N15 N25"))
    assert shown(outcome.state) == "S00=2 N04=3 N14=3 N24=4"


def test_a_three_line_shooter_in_the_middle_hits_three_rows() -> None:
    outcome = played(field("S10", "N05 N15 N25 N35"))
    assert shown(outcome.state) == "S10=2 N04=3 N14=3 N24=3 N34=4"


def test_a_shooter_hits_the_nearest_zombie_at_or_right_of_its_column() -> None:
    assert shown(played(field("W02", "N05 N04 N01")).state) == "W02=2 N04=4 N03=3 N00=4"
    assert shown(played(field("W02", "N02")).state) == "W02=1 N02=3"  # on its own cell: hit, and bites
    assert shown(played(field("W02", "N01")).state) == "W02=2 N00=4"  # behind it


def test_of_zombies_in_one_cell_the_first_to_come_is_hit() -> None:
    assert shown(played(field("W00", "R05 N05")).state) == "W00=2 R04=7 N04=4"


def test_a_dead_zombie_leaves_at_once_so_the_next_shooter_hits_the_next() -> None:
    assert shown(played(field("W00 W01", "N04=1 N05")).state) == "W00=2 W01=2 N04=3"


def test_shooters_act_in_the_order_of_planting() -> None:
    # With the torch at (0,2), (0,1) hits for 2 and (0,3) for 1; the zombies have 2 and 4 hit points.
    # 2 first: the first zombie dies and the second goes to 4 - 1. 1 first: the first goes to 1 and dies of the 2.
    assert shown(played(field("W01 W03 H02", "N04=2 N05")).state) == "W01=2 W03=2 H02=2 N04=3"
    assert shown(played(field("W03 W01 H02", "N04=2 N05")).state) == "W03=2 W01=2 H02=2 N04=4"


@pytest.mark.parametrize(
    ("plants", "left"),
    [
        ("W00 H01", 2),  # 4 - 2
        ("W00 H01 H02", 2),  # a second torch adds nothing
        ("W00 H03", 2),  # anywhere right of the shooter
        ("W01 H00", 3),  # not left of it
        ("W00 H11", 3),  # not in another row
    ],
)
def test_a_torch_right_of_a_shooter_in_its_row_makes_it_hit_for_2(plants: str, left: int) -> None:
    assert shown(played(field(plants, "N05")).state).endswith(f"N04={left}")


def test_the_torch_of_a_three_line_shooters_own_row_counts_for_all_its_rows() -> None:
    assert shown(played(field("S10 H11", "N05 N15 N25")).state) == "S10=2 H11=2 N04=2 N14=2 N24=2"
    assert shown(played(field("S10 H01", "N05 N15 N25")).state) == "S10=2 H01=2 N04=3 N14=3 N24=3"


def test_entering_a_plants_cell_takes_the_move_and_the_first_bite_comes_a_turn_later() -> None:
    outcome = played(field("J03", "N04"))
    assert shown(outcome.state) == "J03=10 N03=4"
    assert shown(played(outcome.state).state) == "J03=9 N03=4"


def test_a_high_attack_zombie_bites_for_3() -> None:
    assert shown(played(field("J03", "I03")).state) == "J03=7 I03=6"


def test_when_the_first_kills_the_plant_the_next_walks_on_in_the_same_turn() -> None:
    assert shown(played(field("X03=1", "N03 R03")).state) == "N03=4 R02=8"
    assert played(field("X00=1", "N00 R00")).end_reason == "breach"


def test_plants_may_be_planted_under_a_zombie_and_in_the_last_column() -> None:
    outcome = played(field(zombies="N00", sun=100), "J 0 0; J 1 5")
    assert (outcome.reward, shown(outcome.state)) == (1.0, "J00=9 J15=10 N00=4")


# --- answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "status", "action"),
    [
        ("X 2 0", "ok", "X 2 0"),
        ("X 2 0; W 1 3", "ok", "X 2 0; W 1 3"),
        ("x 2 0;w 1,3;", "repaired", "X 2 0; W 1 3"),
        ("X(2,0); [W, 1, 3]", "repaired", "X 2 0; W 1 3"),
        ("X: 2.0 0", "repaired", "X 2 0"),
        ("X -0 0", "repaired", "X 0 0"),
        ("none", "ok", "none"),
        ("(No action)", "repaired", "none"),
        ("pass.", "repaired", "none"),
        ("", "unparsable", None),
        ("X 2", "unparsable", None),
        ("Q 2 0", "unparsable", None),
        ("X 2 0; and a shooter", "unparsable", None),
        ("X 2 0, W 1 3", "unparsable", None),
        ("X 5 0", "invalid", None),
        ("X 0 6", "invalid", None),
        ("X 0 -1", "invalid", None),
        ("X 1 1", "illegal", None),  # there is one
        ("S 0 0", "illegal", None),  # 325 sun
        ("X 5 0; X 2 0", "ok", "X 5 0; X 2 0"),  # one of them can be carried out
        ("X 5 0; X 1 1", "invalid", None),  # none can: the first says why
        ("; ".join(["X 0 0"] * 31), "invalid", None),
    ],
)
def test_the_grammar_reads_whole_answers(text: str, status: str, action: str | None) -> None:
    parsed = GAME.parse(text, GAME.view(field("X11", sun=200)))
    assert (parsed.status, parsed.action) == (status, action)


def test_each_command_that_cannot_be_carried_out_is_skipped_and_the_reasons_are_told_once() -> None:
    # 170 sun: X leaves 120, W leaves 20, then nothing can be paid for.
    taken = GAME.take(field("X11", sun=170), "X 0 0; X 9 9; X 1 1; X 1 -1; W 2 0; J 3 0; J 4 0")
    assert taken.status == "ok"
    assert taken.outcome.feedback == "Skipped: off the field, cell taken, too little sun."
    assert shown(taken.outcome.state) == "X11=2 X00=2 W20=2"


@pytest.mark.parametrize("text", [None, "plant something", "X 9 9", "END"])
def test_an_unusable_answer_plays_the_turn_with_nothing_planted(text: str | None) -> None:
    taken = GAME.take(field(zombies="N05", sun=60), text)
    assert (taken.action, taken.outcome.reward) == (None, 1.0)
    assert taken.outcome.state == played(field(zombies="N05", sun=60)).state
    assert taken.outcome.feedback


def test_an_unusable_answer_can_lose_the_episode_or_end_it_by_setting() -> None:
    assert GAME.take(field(zombies="N00"), None).outcome.end_reason == "breach"
    strict = field(config=replace(EVALUATION, unusable_ends=True))
    outcome = GAME.take(strict, None).outcome
    assert (outcome.reward, outcome.end_reason) == (0.0, "unusable_answer")


def test_impossible_configurations_say_what_to_change() -> None:
    with pytest.raises(ValueError, match="rows = 0: expected 1 to 10"):
        PvzConfig(rows=0, columns=6)
    with pytest.raises(ValueError, match="columns = 11: expected 1 to 10"):
        PvzConfig(rows=3, columns=11)


# --- observation --------------------------------------------------------------------------------------------


def test_the_observation_shows_step_sun_and_the_field_with_hit_points() -> None:
    state = field("X00=1 J12", "N12 R12=11 I25", sun=75, turn=6, config=EXPLORATION)
    assert text_of(state) == (
        "Step 7 of 64. Sun: 75.\n"
        "column 0          1          2          3          4          5          6\n"
        "row 0  X1         .          .          .          .          .          .\n"
        "row 1  .          .          J10+N4+R11 .          .          .          .\n"
        "row 2  .          .          .          .          .          I6         ."
    )


def test_hidden_hit_points_are_neither_shown_nor_in_the_view() -> None:
    hidden = replace(EXPLORATION, is_hp_shown=False)
    hurt, sound = (field(f"J11={hp}", f"N11={hp}", config=hidden) for hp in (2, 3))
    assert GAME.view(hurt) == GAME.view(sound)
    assert "J+N" in text_of(hurt) and "without their hit points" in GAME.rules(hidden)


def test_rules_are_true_for_the_configuration() -> None:
    for config in (EXPLORATION, EVALUATION, PvzConfig(rows=2, columns=9, horizon=30)):
        rules = GAME.rules(config)
        assert f"{config.rows} rows and {config.columns} columns for at most {config.horizon} steps" in rules
        assert all(f", {kind.cost} sun, {kind.hp} hp" in rules for kind in PLANTS.values())
    assert "is played as none" in GAME.rules(EVALUATION)
    assert "ends the episode" in GAME.rules(replace(EVALUATION, unusable_ends=True))


# --- players ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("player", "config", "low", "high", "count"),
    [
        ("random", EVALUATION, 7.6, 8.0, 1_000),  # 7.8, standard error 0.10
        ("random", EXPLORATION, 10.4, 11.1, 600),  # 10.77, standard error 0.19
        ("shooter", EVALUATION, 37.6, 39.6, 200),  # 38.6, standard error 0.5
        ("wish_list", EVALUATION, 57.0, 64.0, 60),
        ("expert", EVALUATION, 62.0, 64.0, 60),
        ("expert", EXPLORATION, 62.0, 64.0, 60),
    ],
)
def test_players_are_where_the_scale_expects_them(
    player: str, config: PvzConfig, low: float, high: float, count: int
) -> None:
    assert low <= mean(play_out(GAME, config, player, seed) for seed in range(count)) <= high


def test_the_expert_clears_a_row_at_the_last_moment_and_knows_when_it_is_lost() -> None:
    expert = GAME.players["expert"]
    rich, poor = (GAME.view(field(zombies="N00", sun=sun)) for sun in (300, 0))
    assert expert(rich, random.Random(0)) == Move("F 0 0", 1.0)
    assert expert(poor, random.Random(0)) == Move("none", 0.0)


def test_the_expert_judges_every_turn_exactly() -> None:
    # A nut of 1 hit point under two zombies: the first eats it, the second gets through.
    for zombies, expected in (("N00 N00", 0.0), ("N00", 1.0)):
        state = field("J00=1", zombies)
        move = GAME.players["expert"](GAME.view(state), random.Random(0))
        assert (move.self_score, played(state, move.action).reward) == (expected, expected)


# --- the learner's eyes -------------------------------------------------------------------------------------


def learn(facts: Seen, before: PvzState, action: str) -> PvzState:
    outcome = GAME.take(before, action).outcome
    after: PvzState = outcome.state
    for situation, name, result in GAME.reader.facts(text_of(before), action, f"{outcome.feedback}\n{text_of(after)}"):
        facts.setdefault((situation, name), Counter())[result] += 1
    return after


def learnt(before: PvzState, action: str) -> set[tuple[str, str, str]]:
    facts: Seen = {}
    learn(facts, before, action)
    return {(situation, name, result) for (situation, name), results in facts.items() for result in results}


def test_a_turn_shows_what_a_plant_does() -> None:
    survived = ("no zombie free to enter", "*", "survived")
    assert learnt(field(sun=50), "X 0 0") == {survived, ("on the field", "X", "more sun")}
    hit = {("on the field", "W", "no more sun"), ("zombies in its row", "W", "hit")}
    assert learnt(field(zombies="N03", sun=100), "W 0 0") == {survived, *hit}
    cleared = ("zombies in its row", "FX", "cleared")
    assert learnt(field("X00", "N03 R04", sun=300), "F 0 1") == {survived, ("on the field", "FX", "more sun"), cleared}
    held = {("zombies in its row", "J", "unhurt"), ("a zombie on it", "J", "held")}
    assert learnt(field("J03", "N03"), "none") >= held


def test_a_zombie_that_comes_in_is_not_taken_for_one_that_was_there() -> None:
    state = field(zombies="N03", sun=300, turn=0)
    state = replace(state, coming=((0, "N"), *state.coming[1:]))  # into the row that the chili clears
    assert ("zombies in its row", "F", "cleared") in learnt(state, "F 0 0")


def test_a_lost_turn_shows_that_it_was_lost_and_no_more() -> None:
    assert learnt(field("X22", "N00"), "none") == {("a zombie free to enter", "*", "lost")}


@pytest.mark.parametrize(
    "after",
    [
        field("X00", turn=3),  # not the next step
        field("X00", turn=1),  # the same step
        field("X01", turn=2),  # another plant
        field("X00", turn=2, config=EXPLORATION),  # another field
    ],
)
def test_fields_that_do_not_follow_from_each_other_show_nothing(after: PvzState) -> None:
    assert list(GAME.reader.facts(text_of(field("X00", turn=1)), "none", text_of(after))) == []


def test_the_reader_uses_plants_by_their_seen_effect_not_by_their_name() -> None:
    facts: Mapping[tuple[str, str], Mapping[str, int]] = {
        ("on the field", "H"): {"more sun": 5},  # as if the torch earned
        ("zombies in its row", "W"): {"cleared": 3},  # and the peashooter cleared its row
        ("zombies in its row", "FHJSX"): {"unhurt": 3},
        ("no zombie free to enter", "*"): {"survived": 9, "lost": 1},
    }
    move = GAME.reader.choose(text_of(field(zombies="N00", sun=225)), facts, random.Random(0))
    assert move == Move("W 0 0; H 4 0", 0.9)


def test_without_facts_any_plant_is_tried_and_nothing_is_claimed() -> None:
    observation = text_of(field(sun=1_000))
    moves = [GAME.reader.choose(observation, {}, random.Random(seed)) for seed in range(60)]
    assert {move.action[0] for move in moves} == {*PLANTS}
    assert {move.self_score for move in moves} == {None}


def test_a_glance_fears_a_zombie_that_can_walk_in() -> None:
    assert GAME.reader.glance(text_of(field(zombies="N00")), "none") == 0.0
    assert GAME.reader.glance(text_of(field(zombies="N00", sun=50)), "J 0 0") == 1.0
    assert GAME.reader.glance(text_of(field(zombies="N01")), "none") == 1.0


def test_facts_from_six_exploration_episodes_make_a_learner_that_evaluates_far_better() -> None:
    def episode(config: PvzConfig, seed: int, facts: Seen) -> float:
        state, rng, rewards = GAME.reset(config, seed), random.Random(seed), []
        for _ in range(config.horizon):
            action = GAME.reader.choose(text_of(state), facts, rng).action
            outcome = GAME.take(state, action).outcome
            rewards.append(outcome.reward)
            state = learn(facts, state, action)
            if outcome.end_reason:
                break
        return GAME.final_score(rewards)

    def evaluate(facts: Seen) -> float:
        copies = ({key: Counter(seen) for key, seen in facts.items()} for _ in range(25))
        return mean(episode(EVALUATION, seed, copy) for seed, copy in enumerate(copies, start=1_000))

    experience: Seen = {}
    for seed in range(6):
        episode(EXPLORATION, seed, experience)
    assert evaluate({}) < 25.0
    assert evaluate(experience) > 50.0
