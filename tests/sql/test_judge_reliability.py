import pytest

from tests.sql.lab import Lab, Turn, row


def wilson(events: int, trials: int) -> tuple[float, float]:
    """The bounds as the roots of (p - q)^2 = z^2 q (1 - q) / n, which is how Wilson defines them."""
    p, k = events / trials, 1.96**2 / trials
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
        low, high = wilson(events, 7)
        assert judge[name] == pytest.approx(events / 7)
        assert judge[f"{name}_low"] == pytest.approx(low)
        assert judge[f"{name}_high"] == pytest.approx(high)
    assert judge["agreement"] + judge["over_confidence"] + judge["under_confidence"] == pytest.approx(1)
    # errors 0, 0.5, 0, 1, 2, 2, 3 = 8.5; range 3 - (-1) = 4
    assert judge["nmae"] == pytest.approx(8.5 / 7 / 4)
    # over the seven scored steps: self-scores sum to 3.5, rewards to 4
    assert judge["mean_self_score"] == pytest.approx(0.5)
    assert judge["mean_reward"] == pytest.approx(4 / 7)


def test_observed_scale_is_pooled_over_the_cells_of_a_game_and_phase(lab: Lab) -> None:
    lab.add("a", explored={0: [[Turn(0.0, 0.0), Turn(1.0, 1.0)]]})
    lab.add("b", explored={0: [[Turn(4.0, 2.0)]]}, pathway="memory")
    lab.add("other", explored={0: [[Turn(100.0, 3.0), Turn(0.0, -1.0)]]}, game="tetris")
    rows = lab.open().sql("select cell_id, nmae_observed from judge_reliability order by cell_id").rows()
    # snake: self-scores 0 to 4, rewards 0 to 2. a: |0 - 0| and |1/4 - 1/2|, mean 0.125; b: |1 - 1|
    # tetris: both steps at the ends of both scales
    assert rows == [("a", 0.125), ("b", 0.0), ("other", 0.0)]


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
    lab.add(explored={0: [[Turn(1.0, 1.0)] * 4]})
    judge = row(lab.open(), "judge_reliability")
    # Wilson at p = 1: n / (n + z^2) to 1
    assert (judge["agreement"], judge["agreement_high"]) == (1.0, 1.0)
    assert judge["agreement_low"] == pytest.approx(4 / (4 + 1.96**2))
    assert (judge["over_confidence"], judge["over_confidence_low"]) == (0.0, 0.0)


def test_phases_are_rows_and_failed_calls_are_no_steps(lab: Lab) -> None:
    lab.add(curve={0: [[Turn(1.0, 1.0)], None]}, explored={0: [[Turn(1.0, 0.0)] * 2]})
    rows = lab.open().sql("select phase, step_count, agreement from judge_reliability order by phase").rows()
    assert rows == [("evaluation", 1, 1.0), ("exploration", 2, 0.0)]
