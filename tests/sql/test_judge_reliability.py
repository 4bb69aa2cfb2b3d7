import pytest

from tests.sql.lab import Lab, Turn, row

T_2 = 4.303
"""Student's t with two degrees of freedom."""


def wilson(events: float, trials: float, z: float = 1.96) -> tuple[float, float]:
    """The bounds as the roots of (p - q)^2 = z^2 q (1 - q) / n, which is how Wilson defines them."""
    p, k = events / trials, z**2 / trials
    a, b, c = 1 + k, -(2 * p + k), p * p
    root = (b * b - 4 * a * c) ** 0.5
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_rates_of_eight_steps(lab: Lab) -> None:
    turns = [
        Turn(1.0, 1.0),  # agree
        Turn(0.5, 1.0),  # agree
        Turn(0.0, 0.0),  # agree: neither is above 0
        Turn(-1.0, 0.0),  # agree
        Turn(2.0, 0.0),  # over
        Turn(1.0, -1.0),  # over
        Turn(0.0, 3.0),  # under
        Turn(None, 1.0),  # counted, in no rate
    ]
    lab.add(explored={0: [turns]})
    judge = row(lab.open(), "judge_reliability")
    assert (judge["phase"], judge["step_count"], judge["scored_count"], judge["unscored_count"]) == (
        "exploration",
        8,
        7,
        1,
    )
    for name, events in (("agreement", 4), ("over_confidence", 2), ("under_confidence", 1)):
        assert judge[name] == pytest.approx(events / 7)
        # one episode does not say how much episodes differ
        assert (judge[f"{name}_low"], judge[f"{name}_high"]) == (None, None)
    assert judge["agreement"] + judge["over_confidence"] + judge["under_confidence"] == pytest.approx(1)
    # errors 0, 0.5, 0, 1, 2, 2, 3 = 8.5; range 3 - (-1) = 4
    assert judge["nmae"] == pytest.approx(8.5 / 7 / 4)
    # over the seven scored steps: self-scores sum to 3.5, rewards to 4
    assert judge["mean_self_score"] == pytest.approx(0.5)
    assert judge["mean_reward"] == pytest.approx(4 / 7)


def test_intervals_are_as_wide_as_episodes_differ(lab: Lab) -> None:
    right, mixed = [Turn(1.0, 1.0)] * 2, [Turn(1.0, 1.0), Turn(1.0, 0.0)]
    lab.add(explored={0: [right, mixed, right, [Turn(None, 0.0)]]})
    judge = row(lab.open(), "judge_reliability")
    # agreement 5/6; without each of the three episodes with a scored step 3/4, 1, 3/4: from their mean, 5/6, they are
    # 1/12, 1/6, 1/12 away: error^2 = 2/3 * (1 + 4 + 1)/144 = 1/36. Independent steps would need to be 5/36 / (1/36) = 5
    assert (judge["agreement"], judge["instance_count"]) == (pytest.approx(5 / 6), 3)
    low, high = wilson(5 * 5 / 6, 5, T_2)
    assert (judge["agreement_low"], judge["agreement_high"]) == (pytest.approx(low), pytest.approx(high))
    # over-confidence is the rest
    assert (judge["over_confidence_low"], judge["over_confidence_high"]) == (
        pytest.approx(1 - high),
        pytest.approx(1 - low),
    )
    # no step is under-confident: as many trials as episodes, so that 0 reaches up to t^2 / (3 + t^2)
    assert (judge["under_confidence"], judge["under_confidence_low"]) == (0.0, 0.0)
    assert judge["under_confidence_high"] == pytest.approx(T_2**2 / (3 + T_2**2))
    # errors 1/6, and without each 1/4, 0, 1/4: again 1/6; range 4
    assert (judge["nmae"], judge["nmae_low"]) == (pytest.approx(1 / 24), 0.0)
    assert judge["nmae_high"] == pytest.approx((1 + T_2) / 24)


def test_an_instance_played_at_every_checkpoint_counts_once(lab: Lab) -> None:
    lab.add(curve={at: [[Turn(1.0, 1.0)], [Turn(1.0, 0.0)]] for at in (0, 3, 6)})
    judge = row(lab.open(), "judge_reliability")
    assert (judge["scored_count"], judge["instance_count"]) == (6, 2)
    # without either 0 and 1: error^2 = 1/2 * (1/4 + 1/4) = 1/4, one trial, t(1) = 12.706
    low, high = wilson(0.5, 1, 12.706)
    assert (judge["agreement_low"], judge["agreement_high"]) == (pytest.approx(low), pytest.approx(high))


def test_episodes_that_do_not_differ_count_as_their_steps(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 1.0), Turn(1.0, 0.0)]] * 3})
    judge = row(lab.open(), "judge_reliability")
    low, high = wilson(3, 6, T_2)
    assert (judge["agreement_low"], judge["agreement_high"]) == (pytest.approx(low), pytest.approx(high))


def test_observed_scale_is_pooled_over_the_cells_of_a_game_and_phase(lab: Lab) -> None:
    lab.add("a", explored={0: [[Turn(0.0, 0.0), Turn(1.0, 1.0)]]})
    lab.add("b", explored={0: [[Turn(4.0, 2.0)]]}, pathway="memory")
    lab.add("other", explored={0: [[Turn(100.0, 3.0), Turn(0.0, -1.0)]]}, game="tetris")
    rows = lab.open().sql("select cell_id, nmae_observed from judge_reliability order by cell_id").rows()
    # snake: self-scores 0 to 4, rewards 0 to 2. a: |0 - 0| and |1/4 - 1/2|, mean 0.125; b: |1 - 1|
    # tetris: both steps at the ends of both scales
    assert rows == [("a", 0.125), ("b", 0.0), ("other", 0.0)]


def test_cells_with_an_intervention_have_an_observed_scale_of_their_own(lab: Lab) -> None:
    lab.add("a", explored={0: [[Turn(0.0, 0.0), Turn(1.0, 1.0), Turn(4.0, 2.0)]]})
    lab.add("b", explored={0: [[Turn(0.0, 0.0), Turn(100.0, 2.0)]]}, intervention="expert_exploration")
    rows = lab.open().sql("select cell_id, nmae_observed from judge_reliability order by cell_id").rows()
    # a: 0 to 4 and 0 to 2 as alone, (0 + |1/4 - 1/2| + 0) / 3; b: both steps at the ends of both scales
    assert rows == [("a", pytest.approx(1 / 12)), ("b", 0.0)]


def test_constant_self_scores_have_no_observed_scale(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 0.0), Turn(1.0, 1.0)]]})
    judge = row(lab.open(), "judge_reliability")
    assert (judge["nmae_observed"], judge["agreement"]) == (None, 0.5)


def test_game_without_a_reward_range_has_no_nmae(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 0.0)]]}, reward_min=0.0, reward_max=0.0)
    assert row(lab.open(), "judge_reliability")["nmae"] is None


def test_agent_that_never_scores_itself_has_counts_and_null_rates(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(None, 1.0), Turn(None, 0.0)]]})
    judge = row(lab.open(), "judge_reliability")
    assert (judge["step_count"], judge["scored_count"], judge["unscored_count"]) == (2, 0, 2)
    names = ("agreement", "agreement_low", "over_confidence_high", "under_confidence", "nmae", "mean_reward")
    assert [judge[name] for name in names] == [None] * 6


def test_judge_that_is_always_right_keeps_an_interval_within_one(lab: Lab) -> None:
    lab.add(explored={0: [[Turn(1.0, 1.0)] * 4] * 3})
    judge = row(lab.open(), "judge_reliability")
    # Wilson at p = 1, of three episodes: n / (n + t^2) to 1
    assert (judge["agreement"], judge["agreement_high"]) == (1.0, 1.0)
    assert judge["agreement_low"] == pytest.approx(3 / (3 + T_2**2))
    assert (judge["nmae"], judge["nmae_low"], judge["nmae_high"]) == (0.0, None, None)
    assert (judge["over_confidence"], judge["over_confidence_low"]) == (0.0, 0.0)


def test_phases_are_rows_and_failed_calls_are_no_steps(lab: Lab) -> None:
    lab.add(curve={0: [[Turn(1.0, 1.0)], None]}, explored={0: [[Turn(1.0, 0.0)] * 2]})
    rows = lab.open().sql("select phase, step_count, agreement from judge_reliability order by phase").rows()
    assert rows == [("evaluation", 1, 1.0), ("exploration", 2, 0.0)]
