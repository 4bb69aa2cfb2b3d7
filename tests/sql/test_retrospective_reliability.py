from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.sql.lab import EPISODE, JUDGMENT, Lab, row
from tests.sql.test_judge_reliability import wilson


class Look(NamedTuple):
    """What an agent said of an episode, and what the verifier did; a final score of None is a failed episode."""

    belief: float | None
    expected: float | None
    final: float | None
    is_success: bool | None
    error: str | None = None


def judged(lab: Lab, *looks: Look, cell_id: str = "cell") -> dict[str, Any]:
    lab.add(cell_id)
    explored, key = f"{cell_id}-explore-0", f"{cell_id}-judge-0"
    lab.link("explore", explored, 0, cell_id)
    lab.link("self_judge", key, 0, cell_id)
    episodes = [
        replace(
            EPISODE,
            stage_key=explored,
            phase="exploration",
            episode_id=f"{explored}/{index}",
            episode_index=index,
            final_score=look.final,
            is_success=look.is_success,
            status="invalid" if look.final is None else "valid",
        )
        for index, look in enumerate(looks)
    ]
    judgments = [
        replace(
            JUDGMENT,
            stage_key=key,
            episode_id=f"{explored}/{index}",
            success_belief=look.belief,
            expected_final_score=look.expected,
            error_kind=look.error,
        )
        for index, look in enumerate(looks)
    ]
    lab.part(explored, {"episodes": episodes})
    lab.part(key, {"judgments": judgments})
    return row(lab.open(), "retrospective_reliability", f"cell_id = '{cell_id}'")


def test_seven_judgments(lab: Lab) -> None:
    found = judged(
        lab,
        Look(0.9, 5.0, 3.0, True),
        Look(0.9, 4.0, 1.0, False),  # over
        Look(0.2, 1.0, 3.0, True),  # under
        Look(0.5, 0.0, 0.0, False),  # 0.5 claims nothing
        Look(None, None, 2.0, True),  # unreadable
        Look(0.8, 9.0, None, None),  # no verdict to compare with
        Look(None, None, 2.0, True, "server"),  # unanswered
    )
    names = (
        "judgment_count",
        "answered_count",
        "unanswered_count",
        "unreadable_belief_count",
        "unreadable_score_count",
    )
    assert [found[name] for name in names] == [7, 6, 1, 1, 1]
    assert (found["belief_count"], found["success_count"], found["score_count"]) == (4, 2, 4)
    assert (found["mean_belief"], found["success_share"]) == (pytest.approx(2.5 / 4), 0.5)
    # 0.01 + 0.81 + 0.64 + 0.25
    assert found["brier"] == pytest.approx(1.71 / 4)
    # |0.9 + 0.9 - 1| + |0.2 - 1| + |0.5 - 0|
    assert found["ece"] == pytest.approx(2.1 / 4)
    for name in ("over_claiming", "under_claiming"):
        assert found[name] == 0.25
        assert (found[f"{name}_low"], found[f"{name}_high"]) == pytest.approx(wilson(1, 4))
    # 2, 3, -2, 0
    assert found["mean_score_error"] == pytest.approx(3 / 4)
    assert found["mean_absolute_score_error"] == pytest.approx(7 / 4)


def test_certainty_shares_the_last_bin(lab: Lab) -> None:
    # |1 + 0.95 - 1| / 2; in bins of their own it would be (1 + 0.05) / 2
    assert judged(lab, Look(1.0, 1.0, 1.0, False), Look(0.95, 1.0, 1.0, True))["ece"] == pytest.approx(0.475)


def test_success_only_leaves_no_over_claiming_to_find(lab: Lab) -> None:
    found = judged(lab, Look(1.0, 1.0, 1.0, True), Look(1.0, 2.0, 2.0, True))
    assert (found["over_claiming"], found["over_claiming_low"], found["under_claiming"]) == (0.0, 0.0, 0.0)
    # Wilson at p = 0: 0 to z^2 / (n + z^2)
    assert found["over_claiming_high"] == pytest.approx(1.96**2 / (2 + 1.96**2))
    assert (found["brier"], found["ece"], found["mean_score_error"]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("look", "unanswered", "unreadable"),
    [
        (Look(None, None, 1.0, True, "server"), 1, 0),
        (Look(None, None, 1.0, True), 0, 1),
        (Look(0.5, 1.0, None, None), 0, 0),
    ],
)
def test_nothing_to_compare_is_counted_and_null(lab: Lab, look: Look, unanswered: int, unreadable: int) -> None:
    found = judged(lab, look)
    assert (found["unanswered_count"], found["unreadable_belief_count"]) == (unanswered, unreadable)
    assert (found["belief_count"], found["score_count"]) == (0, 0)
    names = ("mean_belief", "over_claiming", "over_claiming_low", "under_claiming", "ece", "brier", "mean_score_error")
    assert [found[name] for name in names] == [None] * 7


def test_cells_without_judgments_have_no_row(lab: Lab) -> None:
    lab.add("silent", {0: [1.0]}, {0: [1.0]})
    judged(lab, Look(1.0, 1.0, 1.0, True))
    assert lab.open().sql("select cell_id from retrospective_reliability").rows() == [("cell",)]


def test_claims_are_no_rates_of_steps(lab: Lab) -> None:
    judged(lab, Look(1.0, 1.0, 1.0, True))
    assert lab.open().sql("from judge_reliability").height == 0
