"""Which steps are trained on: hand-worked blocks, and what holds for every block."""

import random
from dataclasses import fields
from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3gym.config import TrainingSettings
from s3gym.pathways.training import (
    CORRECTABLE,
    Choice,
    Considered,
    Reason,
    corrected,
    correction_messages,
    select,
)
from s3gym.records import Step

Signal = Literal["score", "return"]


def step(score: float | None, index: int = 0, episode: str = "e", **changes: Any) -> Considered:
    usual: dict[str, Any] = {"action_status": "ok", "finish_reason": "stop", "feedback": ""}
    return Considered(episode_id=episode, step_index=index, self_score=score, **(usual | changes))


def block(*episodes: list[float | None]) -> list[Considered]:
    """Episodes of usable steps by their self-scores."""
    return [
        step(score, index, f"e{number}") for number, scores in enumerate(episodes) for index, score in enumerate(scores)
    ]


def chosen(steps: list[Considered], game_signal: Signal = "score", seed: int = 0, **settings: Any) -> list[Choice]:
    return select(steps, TrainingSettings(**settings), game_signal, seed)


def kept(choices: list[Choice]) -> list[int]:
    return [index for index, choice in enumerate(choices) if choice.decision == "kept"]


# --- the three rules ----------------------------------------------------------------------------------------


def test_the_share_that_ranks_highest_is_kept() -> None:
    choices = chosen(block([3, 1, 4], [1.5, 5, 9]), share=0.5)

    # half of six, and 9, 5, 4 are the highest
    assert kept(choices) == [2, 4, 5]
    assert [(c.reason, c.signal, c.weight) for c in choices] == [
        ("ranked_low", 3, None),
        ("ranked_low", 1, None),
        ("ranked_high", 4, 1.0),
        ("ranked_low", 1.5, None),
        ("ranked_high", 5, 1.0),
        ("ranked_high", 9, 1.0),
    ]


@pytest.mark.parametrize(
    ("share", "steps", "count"),
    [
        (0.5, 1, 0),  # the only one is the lowest
        (0.5, 5, 3),
        (1.0, 5, 5),
        (0.07, 100, 7),  # 0.07 * 100 is 7.000000000000001
        (0.1, 9, 1),
    ],
)
def test_the_share_is_rounded_up(share: float, steps: int, count: int) -> None:
    assert len(kept(chosen(block([float(index) for index in range(steps)]), share=share))) == count


def test_the_share_is_of_the_steps_that_have_a_rank() -> None:
    # two of the four could be kept at all, and half of two is one
    assert kept(chosen([*block([1, 2]), step(9, 2, action_status="illegal"), step(None, 3)], share=0.5)) == [1]


@pytest.mark.parametrize(
    ("scores", "places"),
    [
        # half of six are three: 7 and 2s, of which there are four; 0 is the lowest
        ([2, 7, 2, 2, 0, 2], [0, 1, 2, 3, 5]),
        # half of six are three, and the third is as low as the lowest
        ([1, 0, 0, 1, 0, 0], [0, 3]),
        ([3, 1, 3, 1, 3, 1], [0, 2, 4]),
        ([1, 1, 1, 1], []),
        ([1], []),
    ],
)
def test_equals_are_kept_together_and_the_lowest_never(scores: list[float | None], places: list[int]) -> None:
    assert kept(chosen(block(scores), share=0.5)) == places


def test_a_share_of_all_keeps_all() -> None:
    assert len(kept(chosen(block([1, 1, 0]), share=1.0))) == 3


def test_above_keeps_what_is_more_than_the_threshold() -> None:
    choices = chosen(block([1, 2, 3]), rule="above", threshold=2.0)

    assert choices == [
        Choice("filtered", "below_threshold", 1),
        Choice("filtered", "below_threshold", 2),
        Choice("kept", "above_threshold", 3, 1.0),
    ]


def test_weights_are_heights_above_the_lowest_with_mean_one() -> None:
    choices = chosen(block([1, 2, 3, 5]), rule="weighted", share=0.75)

    # 5, 3, 2 stand 4, 2, 1 above 1; their mean is 7/3
    assert [choice.weight for choice in choices] == [None, *map(pytest.approx, (3 / 7, 6 / 7, 12 / 7))]


def test_who_does_not_stand_above_the_lowest_has_no_weight_and_is_filtered() -> None:
    choices = chosen(block([1, 1, 1, 4]), rule="weighted", share=1.0)

    assert choices == [Choice("filtered", "ranked_low", 1)] * 3 + [Choice("kept", "ranked_high", 4, 1.0)]


def test_where_all_are_equal_all_weigh_the_same() -> None:
    assert [choice.weight for choice in chosen(block([2, 2, 2]), rule="weighted", share=1.0)] == [1.0] * 3


# --- returns ------------------------------------------------------------------------------------------------


def told(*episodes: list[tuple[float | None, str]]) -> list[Considered]:
    """Episodes by their self-scores and the feedback after each."""
    return [
        step(score, index, f"e{number}", feedback=feedback)
        for number, own in enumerate(episodes)
        for index, (score, feedback) in enumerate(own)
    ]


def test_returns_are_ranked_among_steps_decided_on_with_the_same_feedback() -> None:
    steps = told([(0, "a"), (5, "b"), (1, "a")], [(2, "b"), (1, "a"), (0, "b")], [(1, "a"), (0, "b"), (4, "b")])

    choices = chosen(steps, "return", share=0.5)

    # returns to come: 6 6 1 | 3 1 0 | 5 4 4
    assert [choice.signal for choice in choices] == [6, 6, 1, 3, 1, 0, 5, 4, 4]
    # at first 6, 3, 5: two of three. after a: 6, 0, 4: two. after b: 1, 1, 4: 4, the others are the lowest
    assert kept(choices) == [0, 1, 6, 7, 8]
    # all together, four of nine would be 6, 6, 5 and one of the 4s, most of them early
    assert {choice.reason for choice in choices} == {"ranked_high", "ranked_low"}


def test_a_return_is_above_the_threshold_by_itself() -> None:
    choices = chosen(told([(1, "a"), (0, "a"), (0, "a")], [(-1, "a"), (2, "a")]), "return", rule="above")

    # returns 1 0 0 | 1 2
    assert kept(choices) == [0, 3, 4]


def test_equal_returns_are_equal_whatever_the_rounding() -> None:
    # 0.1 + 0.2 + 0.3 is 0.6000000000000001 from the front and 0.6 from the back
    choices = chosen(told([(0.1, ""), (0.2, ""), (0.3, "")], [(0.3, ""), (0.2, ""), (0.1, "")]), "return")

    assert [choices[0].signal, choices[3].signal] == [0.6, 0.6]
    assert [choices[0].reason, choices[3].reason] == ["ranked_low", "ranked_low"]  # nothing tells them apart


def test_a_return_over_an_unknown_score_is_unknown() -> None:
    choices = chosen(block([1, 1, None, 1]), "return", share=1.0)

    assert [choice.reason for choice in choices] == ["unknown_return", "unknown_return", "no_self_score", "ranked_high"]
    assert [choice.signal for choice in choices] == [None, None, None, 1]


def test_an_unusable_step_counts_for_those_before_it_and_is_not_kept() -> None:
    steps = [step(1, 0), step(5, 1, action_status="illegal"), *block([], [3, 0])]

    choices = chosen(steps, "return", share=0.5)

    # returns 6 5 | 3 0; at first 6 beats 3, and the last has none beside it
    assert [choice.signal for choice in choices] == [6, 5, 3, 0]
    assert [choice.reason for choice in choices] == ["ranked_high", "unusable_action", "ranked_low", "ranked_low"]


def test_weights_of_returns_are_heights_above_the_lowest_beside_them() -> None:
    # at first 9, 4, 1 with heights 8, 3, 0; after a 3, 2, 1 with heights 2, 1, 0
    steps = told([(6, "a"), (3, "")], [(2, "a"), (2, "")], [(0, "a"), (1, "")])

    choices = chosen(steps, "return", rule="weighted", share=0.7)

    # 0.7 of three are two in each; the mean of 8, 3, 2, 1 is 3.5
    weights = [choice.weight for choice in choices]
    assert weights == [*map(pytest.approx, (8 / 3.5, 2 / 3.5, 3 / 3.5, 1 / 3.5)), None, None]


@pytest.mark.parametrize(
    ("asked", "game", "used"),
    [("auto", "return", "return"), ("auto", "score", "score"), ("score", "return", "score")]
    + [("return", "score", "return")],
)
def test_the_game_says_what_counts_unless_the_settings_do(asked: str, game: Signal, used: Signal) -> None:
    assert chosen(block([0, 9]), game, signal=asked)[0].signal == (0 if used == "score" else 9)


# --- what is never kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"action_status": None, "self_score": None}, "failed_call"),
        ({"finish_reason": "length"}, "truncated_reply"),
        ({"action_status": "unparsable", "self_score": None}, "unusable_action"),
        ({"action_status": "invalid"}, "unusable_action"),
        ({"action_status": "illegal"}, "unusable_action"),
        ({"action_status": "ambiguous"}, "unusable_action"),
        ({"self_score": None}, "no_self_score"),
    ],
)
@pytest.mark.parametrize("rule", ["top", "above", "weighted"])
def test_what_cannot_be_trained_on_is_filtered_however_well_it_scores(
    changes: dict[str, Any], reason: str, rule: str
) -> None:
    bad = step(**({"score": changes.get("self_score", 99.0)} | {k: v for k, v in changes.items() if k != "self_score"}))

    choices = chosen([bad, *block([1, 2])], rule=rule, share=1.0)

    assert (choices[0].decision, choices[0].reason, choices[0].weight) == ("filtered", reason, None)
    assert choices[2].decision == "kept"


def test_a_repaired_answer_is_as_good_as_another() -> None:
    assert kept(chosen([step(1, action_status="repaired", finish_reason=None)], share=1.0)) == [0]


def test_no_steps_give_no_choices() -> None:
    for rule in ("top", "above", "weighted"):
        assert chosen([], rule=rule) == []
        assert chosen([step(None)], rule=rule)[0].reason == "no_self_score"


SCORES = st.none() | st.floats(-5, 5) | st.sampled_from([0.0, 1.0])
STATUSES = st.sampled_from(["ok", "repaired", "unparsable", "invalid", "illegal", "ambiguous", None])
EPISODES = st.lists(
    st.lists(st.tuples(SCORES, STATUSES, st.sampled_from(["stop", "length", None])), max_size=6), max_size=6
)
RULES = st.fixed_dictionaries(
    {
        "rule": st.sampled_from(["top", "above", "weighted"]),
        "share": st.floats(0.01, 1),
        "threshold": st.floats(-5, 5),
        "signal": st.sampled_from(["score", "return"]),
        "shuffle_scores": st.booleans(),
    }
)


def considered(episodes: list[list[tuple[float | None, str | None, str | None]]]) -> list[Considered]:
    return [
        step(score, index, f"e{number}", action_status=status, finish_reason=finish)
        for number, own in enumerate(episodes)
        for index, (score, status, finish) in enumerate(own)
    ]


@given(EPISODES, RULES, st.integers(0, 2**31))
def test_in_every_block(
    episodes: list[list[tuple[float | None, str | None, str | None]]], rules: dict[str, Any], seed: int
) -> None:
    steps = considered(episodes)
    choices = select(steps, TrainingSettings(**rules), "score", seed)

    assert choices == select(steps, TrainingSettings(**rules), "score", seed)
    assert len(choices) == len(steps)
    for one, choice in zip(steps, choices, strict=True):
        assert choice.reason in get_args(Reason)
        if choice.decision == "kept":
            assert one.self_score is not None and choice.signal is not None
            assert one.action_status in ("ok", "repaired") and one.finish_reason != "length"
            assert choice.weight is not None and choice.weight > 0
        else:
            assert choice.decision == "filtered" and choice.weight is None
    weights = [choice.weight for choice in choices if choice.weight is not None]
    assert not weights or sum(weights) / len(weights) == pytest.approx(1)
    if rules["rule"] == "top" and rules["signal"] == "score":
        others = [choice.signal for choice in choices if choice.reason == "ranked_low"]
        high = [choice.signal for choice in choices if choice.decision == "kept"]
        assert all(a is not None and b is not None and a < b for a in others for b in high)


# --- controls and secrecy -----------------------------------------------------------------------------------


def test_shuffled_scores_are_the_same_scores_among_the_same_steps() -> None:
    steps = block([1, None, 2, 3], [4, 5, None, 6])

    dealt = [choice.signal for choice in chosen(steps, shuffle_scores=True, share=1.0)]

    assert sorted(s for s in dealt if s is not None) == [1, 2, 3, 4, 5, 6]
    assert [signal is None for signal in dealt] == [one.self_score is None for one in steps]
    assert dealt == [choice.signal for choice in chosen(steps, shuffle_scores=True, share=1.0)]
    assert len({tuple(c.signal for c in chosen(steps, seed=s, shuffle_scores=True)) for s in range(20)}) > 15


def test_shuffled_scores_say_nothing_of_the_steps() -> None:
    # ten of twenty are kept, of which by chance five are among the ten best
    steps = block([float(index) for index in range(20)])

    best = [sum(index >= 10 for index in kept(chosen(steps, shuffle_scores=True, seed=s))) for s in range(200)]

    # hypergeometric: mean 5, standard deviation sqrt(10 * 1/4 * 10/19) = 1.15, of the mean of 200 0.08
    assert sum(best) / 200 == pytest.approx(5, abs=5 * 0.08)


def test_there_is_no_field_for_what_only_the_verifier_knows() -> None:
    seen = {field.name for field in fields(Considered)}

    assert seen <= {field.name for field in fields(Step)}
    assert not {name for name in seen if "verifier" in name or "reward" in name or "final" in name}


# --- corrections --------------------------------------------------------------------------------------------

PROMPT = ({"role": "user", "content": "the rules and the state"},)


def test_a_better_action_is_asked_for_below_the_step_as_it_was() -> None:
    messages = correction_messages(PROMPT, "I go up.\nAnswer: UP, Score: 0.5", 0.5)

    assert messages[:1] == PROMPT
    assert messages[1] == {"role": "assistant", "content": "I go up.\nAnswer: UP, Score: 0.5"}
    assert messages[2]["role"] == "user"
    for said in ("was 0.5,", "in the form that was asked for"):
        assert said in messages[2]["content"]
    assert len(messages) == 3


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("LEFT", Choice("corrected", "corrected", 0.5, 1.0)),
        ("UP", Choice("filtered", "not_corrected", 0.5)),
        (None, Choice("filtered", "not_corrected", 0.5)),
    ],
)
def test_a_correction_is_another_action_that_can_be_used(after: str | None, expected: Choice) -> None:
    assert corrected(Choice("filtered", "ranked_low", 0.5), "UP", after) == expected


def test_only_what_the_agent_thinks_little_of_is_corrected() -> None:
    generator = random.Random(0)
    steps = block([float(generator.randrange(3)) for _ in range(30)], [None, 1.0])

    for rule in ("top", "above"):
        asked = [choice for choice in chosen(steps, rule=rule, threshold=1.0) if choice.reason in CORRECTABLE]
        assert asked and all(choice.decision == "filtered" and choice.signal is not None for choice in asked)
