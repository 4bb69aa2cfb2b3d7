"""Trust: hand-worked strategies, the exact table of scores, and what the learner can learn."""

import asyncio
import random
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from statistics import mean
from typing import Any

import pytest

from s3gym.games.base import Move
from s3gym.games.trust import EASY, GAME, OPPONENTS, STRATEGIES, C, D, Record, TrustConfig, TrustState
from s3gym.models.scripted import load
from s3gym.protocol.anchors import play_out
from s3gym.protocol.asking import Asker
from s3gym.protocol.rollout import past_episode, play
from s3gym.protocol.splits import Splits, hashed
from tests.programmed import part

WORDS = {"C": C, "D": D}
Seen = dict[tuple[str, str], Counter[str]]


def facing(opponent: str) -> TrustConfig:
    """Evaluation against one opponent alone."""
    return replace(GAME.evaluation, opponent_weights=tuple(float(name == opponent) for name in OPPONENTS))


def follow(opponent: str, line: str) -> tuple[str, float]:
    """The opponent's answers to a line of choices, as letters, and the player's points."""
    state, points = TrustState(config=GAME.evaluation, opponent=opponent), 0.0
    for letter in line:
        state, reward, _ = GAME.step(state, WORDS[letter])
        points += reward
    return "".join("C" if answer == C else "D" for _, answer in state.record), points


@cache
def points_of_all_lines(opponent: str) -> list[float]:
    return [follow(opponent, "".join(line))[1] for line in product("CD", repeat=10)]


# --- strategies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opponent", "line", "answers"),
    [
        ("copycat", "CDDCCCDC", "CCDDCCCD"),
        ("pink", "CDDCCCDC", "CCCCCCCC"),
        ("cheater", "CDDCCCDC", "DDDDDDDD"),
        ("grudger", "CDDCCCDC", "CCDDDDDD"),
        ("detective", "CDDCCCDC", "CDCCCCCD"),  # tested it was cheated: a copycat from the fifth round on
        ("detective", "CCCCCCCC", "CDCCDDDD"),  # never cheated: cheats from the fifth round on
        ("detective", "CCCCDCDD", "CDCCDDCD"),  # cheated late: a copycat after that
        ("copykitten", "CDDCCCDC", "CCCDCCCC"),  # only two in a row count
        ("stubborn", "CDDCCCDC", "CCDCCCCD"),  # switches after a cheat, here C to D to C
        ("stubborn", "DCCDC", "CDDDC"),  # and keeps to cheating while the player collaborates
    ],
)
def test_strategies_answer_as_worked_by_hand(opponent: str, line: str, answers: str) -> None:
    assert follow(opponent, line)[0] == answers


def test_copycat_copykitten_and_stubborn_are_three_strategies() -> None:
    assert len({follow(name, "CDDCC")[0] for name in ("copycat", "copykitten", "stubborn")}) == 3


@pytest.mark.parametrize(("line", "points"), [("C", 2.0), ("D", 3.0)])
def test_points_of_a_round_against_one_who_collaborates(line: str, points: float) -> None:
    assert follow("pink", line)[1] == points


@pytest.mark.parametrize(("line", "points"), [("C", -1.0), ("D", 0.0)])
def test_points_of_a_round_against_one_who_cheats(line: str, points: float) -> None:
    assert follow("cheater", line)[1] == points


# --- the table of scores ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opponent", "at_random", "best", "expert"),
    [
        ("copycat", 11.50, 21, 21),
        ("pink", 25, 30, 21),
        ("cheater", -5, 0, -1),
        ("grudger", 0.99, 21, 21),
        ("detective", 12.63, 21, 19),
        ("copykitten", 19, 26, 21),
        ("stubborn", 11.50, 21, 21),
    ],
)
def test_scores_against_each_opponent(opponent: str, at_random: float, best: float, expert: float) -> None:
    points = points_of_all_lines(opponent)

    assert mean(points) == pytest.approx(at_random, abs=0.005)
    assert max(points) == best
    assert GAME.exact_anchor(facing(opponent), "expert") == (expert, 0.0)


@pytest.mark.parametrize(
    ("config", "at_random", "best", "expert"),
    [(GAME.evaluation, 10.80, 20.0, 17.57), (GAME.exploration, 15.23, 23.65, 19.80)],
)
def test_mean_scores_of_a_phase(config: TrustConfig, at_random: float, best: float, expert: float) -> None:
    weights = config.opponent_weights or (1 / 7,) * 7

    assert anchor(config, "random") == pytest.approx(at_random, abs=0.005)
    assert anchor(config, "expert") == pytest.approx(expert, abs=0.005)
    most = [max(points_of_all_lines(name)) for name in OPPONENTS]
    assert sum(weight * points for weight, points in zip(weights, most, strict=True)) == pytest.approx(best, abs=0.005)


@pytest.mark.parametrize(
    ("player", "total"),
    [
        # in the order of OPPONENTS; the detective cheats in round 2 and from round 5 on: 2 - 1 + 2 + 2 - 6 = -1
        ("collaborator", 20 + 20 - 10 + 20 - 1 + 20 + 20),
        # the detective is a copycat after 3 + 0 + 3 + 3; copykitten pays twice, stubborn every other round
        ("cheater", 3 + 30 + 0 + 3 + 9 + 6 + 15),
        # one point lost to the cheater; the detective is won over by 2 - 1 + 3 + 2, then six times 2
        ("tit_for_tat", 20 + 20 - 1 + 20 + 18 + 20 + 20),
    ],
)
def test_mean_scores_of_other_lines(player: str, total: int) -> None:
    assert anchor(GAME.evaluation, player) == pytest.approx(total / 7)


def anchor(config: TrustConfig, player: str) -> float:
    found = GAME.exact_anchor(config, player)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("player", ["expert", "collaborator", "cheater", "tit_for_tat"])
def test_the_anchor_of_a_fixed_line_is_the_mean_of_seven_matches(player: str) -> None:
    assert anchor(GAME.evaluation, player) == pytest.approx(
        mean(play_out(GAME, GAME.evaluation, player, seed) for seed in range(7))
    )


@pytest.mark.parametrize("phase", ["exploration", "evaluation"])
def test_the_anchor_of_random_play_is_what_many_matches_come_to(phase: str) -> None:
    config = getattr(GAME, phase)
    found = GAME.exact_anchor(config, "random")
    assert found is not None
    exact, deviation = found

    sampled = [play_out(GAME, config, "random", seed) for seed in range(1_400)]

    assert mean(sampled) == pytest.approx(exact, abs=2 * deviation / 1_400**0.5)


def test_anchors_depend_on_the_ratio_of_weights_alone() -> None:
    doubled = replace(GAME.exploration, opponent_weights=tuple(2 * weight for weight in EASY))

    assert GAME.exact_anchor(doubled, "expert") == pytest.approx(GAME.exact_anchor(GAME.exploration, "expert"))


# --- instances and configurations ---------------------------------------------------------------------------


def test_each_opponent_is_met_once_in_seven_seeds_in_a_row() -> None:
    assert tuple(GAME.reset(GAME.evaluation, seed).opponent for seed in range(70, 77)) == OPPONENTS
    assert GAME.strata(GAME.evaluation) == 7


def test_exploration_meets_the_easy_ones_more_often() -> None:
    met = Counter(GAME.reset(GAME.exploration, seed).opponent for seed in range(2_000))

    for name, weight in zip(OPPONENTS, EASY, strict=True):
        # three standard errors of a share: at most 3 * sqrt(0.3 * 0.7 / 2000) = 0.031
        assert met[name] / 2_000 == pytest.approx(weight, abs=3 * (weight * (1 - weight) / 2_000) ** 0.5)
    assert GAME.strata(GAME.exploration) == 1


@pytest.mark.parametrize(
    "weights",
    [
        (1.0,) * 6,
        (1.0,) * 8,
        (0.0,) * 7,
        (1.0,) * 6 + (-0.1,),
        (1.0,) * 6 + (float("nan"),),
        (1.0,) * 6 + (float("inf"),),
        (1.0,) * 6 + ("1",),
        (1.0,) * 6 + (True,),
        "uniform",
        1.0,
    ],
    ids=str,
)
def test_impossible_weights_are_refused(weights: Any) -> None:
    with pytest.raises(ValueError, match="opponent_weights is .*, expected 7 non-negative numbers .*, or leave"):
        TrustConfig(opponent_weights=weights)


def test_a_single_opponent_may_be_asked_for() -> None:
    config = TrustConfig(opponent_weights=(0, 0, 1, 0, 0, 0, 0))

    assert {GAME.reset(config, seed).opponent for seed in range(20)} == {"cheater"}


# --- rounds -------------------------------------------------------------------------------------------------


def test_an_unusable_answer_uses_the_round_up_for_nothing_and_nobody_remembers_it() -> None:
    state = TrustState(config=GAME.evaluation, opponent="copykitten")
    for answer, reward in (("cheat", 3.0), ("steal", 0.0), ("cheat", 3.0), (None, 0.0), ("cheat", 0.0)):
        # the second and the fourth round never happened, so the last meets two cheats in a row
        outcome = GAME.take(state, answer).outcome
        state = outcome.state
        assert (outcome.reward, outcome.end_reason) == (reward, None)

    assert state.step_index == 5
    assert state.record == ((D, C), (D, C), (D, D))


def test_ten_unusable_answers_are_a_match_of_no_points() -> None:
    state, ends = GAME.reset(GAME.evaluation, 1), []
    for _ in range(10):
        outcome = GAME.take(state, "collaborate, please").outcome
        state = outcome.state
        assert outcome.reward == 0.0
        ends.append(outcome.end_reason)

    assert ends == [None] * 9 + ["last_round"]


def test_the_observation_is_the_round_and_the_record() -> None:
    state = TrustState(config=GAME.evaluation, opponent="stubborn", step_index=3, record=((C, C), (D, C)))

    assert GAME.render(GAME.view(state)) == (
        "Round 4 of 10.\nRecord (you/opponent): collaborate/collaborate cheat/collaborate"
    )
    assert observation(()) == "Round 1 of 10.\nRecord (you/opponent): none"
    assert observation(((C, C),) * 10).startswith("Round 10 of 10.\n")


# --- the learner's eyes -------------------------------------------------------------------------------------


def observation(record: Record) -> str:
    return GAME.render(
        GAME.view(TrustState(config=GAME.evaluation, opponent="pink", step_index=len(record), record=record))
    )


def learn(*matches: tuple[str, str]) -> Seen:
    """Facts of matches given as (opponent, the player's line)."""
    facts: Seen = {}
    for opponent, line in matches:
        record: Record = ()
        for letter in line:
            after = (*record, (WORDS[letter], STRATEGIES[opponent](record)))
            for situation, action, answer in GAME.reader.facts(observation(record), WORDS[letter], observation(after)):
                facts.setdefault((situation, action), Counter())[answer] += 1
            record = after
    return facts


def choices(record: Record, facts: Seen) -> set[Move]:
    return {GAME.reader.choose(observation(record), facts, random.Random(seed)) for seed in range(20)}


def test_a_round_shows_the_answer_and_the_whole_record_before_it() -> None:
    assert learn(("copycat", "DC")) == {
        ("first round", D): Counter({C: 1}),
        ("after cheat/collaborate", C): Counter({D: 1}),
    }


@pytest.mark.parametrize(
    ("before", "action", "after"),
    [
        (((C, C),), C, ((C, C), (D, C))),  # another action
        (((C, C),), C, ((C, C), (C, C), (C, C))),  # a round left out
        (((C, C), (C, C)), C, ((C, C),)),  # backwards
        (((D, C),), C, ((C, C), (C, C))),  # another match
        (((C, C),), C, ((C, C),)),  # a round that did not count
    ],
)
def test_rounds_that_do_not_follow_from_each_other_show_nothing(before: Record, action: str, after: Record) -> None:
    assert list(GAME.reader.facts(observation(before), action, observation(after))) == []


def test_a_record_under_the_same_round_number_shows_nothing() -> None:
    later = observation(((C, C),)).replace("Round 2", "Round 1")

    assert list(GAME.reader.facts(observation(()), C, later)) == []


def test_without_facts_both_choices_are_drawn_and_nothing_is_claimed() -> None:
    assert choices((), {}) == {Move(C, None), Move(D, None)}


def test_a_choice_never_made_after_such_a_round_is_tried() -> None:
    met = learn(("copycat", "CCCC"))
    assert {move.action for move in choices(((C, C),), met)} == {C, D}

    met = learn(("copycat", "CCCDCC"))
    assert {move.action for move in choices(((C, C),), met)} == {C}


def test_the_last_round_is_cheated_whatever_is_known() -> None:
    for met in ({}, learn(("pink", "CCCC")), learn(("copycat", "CDCCDD"))):
        assert {move.action for move in choices(((C, C),) * 9, met)} == {D}


def test_the_answers_of_this_match_say_which_of_those_met_it_is() -> None:
    met = learn(("pink", "CCDCDDDC"), ("copycat", "DCCCDDDC"))

    # Nine rounds are left. One collaborates now: 2 + 8 * 3 = 26 for collaborating, 27 for cheating. The other cheats
    # now: -1 + 7 * 2 + 3 = 16, or after cheating once more 0 - 1 + 6 * 2 + 3 = 14. Together 42 against 41.
    assert choices(((D, C),), met) == {Move(C, 0.5)}
    # It collaborated after a cheat, so it is the first, who can be cheated for 3 points a round.
    assert choices(((D, C), (D, C)), met) == {Move(D, 3.0)}
    # It cheated after a cheat, so it is the second, who collaborates again for a price of one point.
    assert choices(((D, C), (D, D)), met) == {Move(C, -1.0)}


def test_one_who_answers_like_nobody_met_before_is_judged_by_this_match_alone() -> None:
    met = learn(("pink", "CCDCDDDC"), ("cheater", "CCDDC"))  # the second is the match being played
    record: Record = ((C, D), (C, D), (D, D), (D, D), (C, D))

    assert choices(record, met) == {Move(D, 0.0)}


def test_a_glance_is_the_pay_off_against_a_coin() -> None:
    # (2 - 1) / 2 and (3 + 0) / 2
    assert [GAME.reader.glance("", action) for action in (C, D, "END")] == [0.5, 1.5, 0.0]


def test_nine_explored_matches_make_a_learner_that_plays_far_better() -> None:
    # Over 100 base seeds, seven matches each: 11.9 without and 16.5 with experience, better in 97.
    controls, gains = [], []
    for base_seed in range(12):
        splits = Splits(base_seed=base_seed, exploration_range=(0, 10**6), evaluation_range=(10**6, 2 * 10**6))
        explored = splits.exploration(GAME, GAME.exploration, 0, 9)
        held_out = splits.evaluation(GAME, GAME.evaluation, 0, 7)
        experience = ""
        for start in range(0, 9, 3):
            played = [match(GAME.exploration, seed, experience) for seed in explored[start : start + 3]]
            experience += "".join(text for text, _ in played)
        scores = {text: mean(match(GAME.evaluation, seed, text)[1] for seed in held_out) for text in ("", experience)}
        controls.append(scores[""])
        gains.append(scores[experience] - scores[""])

    assert 11 <= mean(controls) <= 13
    assert mean(gains) >= 3.5  # 4.5 measured, standard error 0.4
    assert sum(gain > 0 for gain in gains) >= 11


def match(config: TrustConfig, seed: int, experience: str) -> tuple[str, float]:
    """The transcript and the score of a match of the learner."""
    frame = part(seed=seed, experience=experience or None, decoding_seed=lambda step: hashed(seed, step))
    episode, steps = asyncio.run(play(GAME, config, Asker(load("player:learner")), frame))
    assert episode.final_score is not None
    return "".join(past_episode(episode, steps).segments()), episode.final_score
