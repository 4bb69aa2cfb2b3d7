from collections.abc import Sequence
from typing import Any

import pytest

from tests.sql.lab import Lab, Turn, row

RIGHT, WRONG = Turn(1.0, 1.0), Turn(1.0, 0.0)
BLOCK = "unit = 'block' and game = 'snake' and quality = 'agreement'"


def explore(agreements: Sequence[float]) -> dict[int, list[list[Turn]]]:
    """Blocks of two steps of which none, one or both agree."""
    turns = {0.0: [WRONG, WRONG], 0.5: [RIGHT, WRONG], 1.0: [RIGHT, RIGHT]}
    return {3 * block: [turns[agreement]] for block, agreement in enumerate(agreements)}


def climb(scores: Sequence[float]) -> dict[int, list[float]]:
    return {3 * checkpoint: [score] for checkpoint, score in enumerate(scores)}


def test_a_block_lies_between_two_checkpoints(lab: Lab) -> None:
    turns = {0: [[Turn(1.0, 1.0), Turn(1.0, 0.0)], [Turn(None, 1.0)]], 3: [[Turn(0.0, 1.0)]], 6: [[RIGHT]]}
    lab.add(curve=climb([0.0, 2.0, 1.0]), explored=turns)
    columns = "from_checkpoint, to_checkpoint, scored_count, agreement, error, score_gain, gain"
    rows = (
        lab.open(materialize=True).sql(f"select {columns} from judge_coupling_blocks order by from_checkpoint").rows()
    )
    # scores from 0 to 2; rewards from -1 to 3, so errors are by 4: (0 + 1) / 2 / 4 and 1 / 4. What was explored at 6
    # has no score after it
    assert rows == [(0, 3, 2, 0.5, 0.125, 2.0, 1.0), (3, 6, 1, 0.0, 0.25, -1.0, -0.5)]


def test_neighbours_of_a_lost_checkpoint_are_joined(lab: Lab) -> None:
    lab.add(curve={0: [-1.0], 3: [None], 6: [3.0]}, explored={0: [[RIGHT]], 3: [[WRONG]]})
    block = row(lab.open(materialize=True), "judge_coupling_blocks")
    assert (block["from_checkpoint"], block["to_checkpoint"], block["scored_count"]) == (0, 6, 2)
    assert (block["agreement"], block["score_gain"], block["gain"]) == (0.5, 4.0, 1.0)


def test_gains_are_by_the_range_of_all_cells_of_the_game(lab: Lab) -> None:
    lab.add("a", climb([0.0, 1.0]), explore([1.0]))
    lab.add("b", climb([4.0, 4.0]), explore([1.0]), pathway="memory")
    lab.add("other", climb([5.0, 5.0]), explore([1.0]), game="tetris")
    rows = lab.open(materialize=True).sql("select cell_id, gain from judge_coupling_blocks order by cell_id").rows()
    assert rows == [("a", 0.25), ("b", 0.0), ("other", None)]


def test_blocks_without_self_scores_have_no_quality(lab: Lab) -> None:
    lab.add(curve=climb([0.0, 1.0, 2.0]), explored={0: [[Turn(None, 1.0)], None]})
    rows = (
        lab.open(materialize=True).sql("select scored_count, agreement, error, gain from judge_coupling_blocks").rows()
    )
    assert rows == [(0, None, None, 0.5)] * 2


@pytest.mark.parametrize("curve", [{}, {0: [1.0]}, {0: [None], 3: [1.0]}, {0: [None], 3: [None]}])
def test_there_is_no_block_below_two_valid_checkpoints(lab: Lab, curve: dict[int, Any]) -> None:
    lab.add(curve=curve, explored=explore([1.0]))
    opened = lab.open(materialize=True)
    assert opened.sql("from judge_coupling_blocks").height == 0
    assert opened.sql("from judge_coupling where unit = 'block'").height == 0


def test_four_blocks_two_of_them_alike(lab: Lab) -> None:
    lab.add(curve=climb([0.0, 1.0, 4.0, 6.0, 12.0]), explored=explore([0.0, 0.5, 0.5, 1.0]))
    found = row(lab.open(materialize=True), "judge_coupling", BLOCK)
    assert (found["status"], found["unit_count"], found["cell_count"]) == ("ok", 4, 1)
    # gains 1, 3, 2, 6 of 12, ranks 1, 3, 2, 4; ranks of agreement 1, 2.5, 2.5, 4. From 2.5:
    # (1.5 * 1.5 + 1.5 * 1.5) / sqrt(4.5 * 5)
    assert found["spearman"] == pytest.approx(4.5 / 22.5**0.5)
    # from the means 0.5 and 3: (0.5 * 2 + 0.5 * 3) / sqrt(0.5 * 14)
    assert found["pearson"] == pytest.approx(2.5 / 7**0.5)
    # thirds by 3 * (rank - 1/2) / 4: 0.4, 1.5, 1.5, 2.6
    assert (found["lowest_gain"], found["highest_gain"]) == (pytest.approx(1 / 12), pytest.approx(6 / 12))
    assert found["tertile_gap"] == pytest.approx(5 / 12)


def test_accuracy_is_the_error_turned_round(lab: Lab) -> None:
    lab.add(
        curve=climb([0.0, 1.0, 3.0, 6.0]),
        explored={0: [[Turn(3.0, 0.0)]], 3: [[Turn(2.0, 0.0)]], 6: [[Turn(1.0, 0.0)]]},
    )
    found = {
        r["quality"]: r for r in lab.open(materialize=True).sql("from judge_coupling where unit = 'block'").to_dicts()
    }
    # all three disagree; their errors fall while their gains rise
    assert (found["agreement"]["status"], found["agreement"]["spearman"]) == ("undefined", None)
    assert found["accuracy"]["spearman"] == pytest.approx(1)


@pytest.mark.parametrize("agreements", [[1.0, 1.0, 1.0], [0.0, 0.5, 1.0]])
def test_a_constant_series_is_undefined(lab: Lab, agreements: list[float]) -> None:
    rises = [0.0, 1.0, 3.0, 4.0] if len(set(agreements)) == 1 else [0.0, 1.0, 2.0, 3.0]
    lab.add(curve=climb(rises), explored=explore(agreements))
    found = row(lab.open(materialize=True), "judge_coupling", BLOCK)
    assert (found["status"], found["spearman"], found["pearson"]) == ("undefined", None, None)
    assert found["unit_count"] == 3


def test_equal_gains_are_equal_in_spite_of_rounding(lab: Lab) -> None:
    # 0.2 - 0.1 and 0.3 - 0.2 differ in their last digit
    lab.add(curve=climb([0.1, 0.2, 0.3, 0.4]), explored=explore([0.0, 0.5, 1.0]))
    assert row(lab.open(materialize=True), "judge_coupling", BLOCK)["status"] == "undefined"


def test_two_blocks_are_too_few_and_alike_ones_have_no_thirds(lab: Lab) -> None:
    lab.add(curve=climb([0.0, 1.0, 3.0]), explored=explore([1.0, 1.0]))
    found = row(lab.open(materialize=True), "judge_coupling", BLOCK)
    assert (found["status"], found["unit_count"], found["spearman"]) == ("too_few", 2, None)
    # both in the middle: 3 * (1.5 - 1/2) / 2 = 1.5
    assert (found["lowest_gain"], found["highest_gain"], found["tertile_gap"]) == (None, None, None)


def test_blocks_of_which_nothing_is_known_are_zero_of_them(lab: Lab) -> None:
    lab.add(curve=climb([0.0, 1.0]), explored={0: [[Turn(None, 1.0)]]})
    found = row(lab.open(materialize=True), "judge_coupling", BLOCK)
    assert (found["status"], found["unit_count"], found["cell_count"]) == ("too_few", 0, 0)


def test_all_games_are_one_more_row_and_interventions_none(lab: Lab) -> None:
    lab.add("a", climb([0.0, 1.0, 3.0]), explore([0.0, 1.0]))
    lab.add("b", climb([0.0, 2.0]), explore([1.0]), game="tetris")
    lab.add("changed", climb([0.0, 1.0]), explore([1.0]), intervention="random_self_scores")
    lab.add("control", climb([0.0, 1.0]), pathway="none")
    counts = "select game, unit_count, cell_count from judge_coupling where unit = 'block' and quality = 'agreement'"
    assert lab.open(materialize=True).sql(f"{counts} order by game").rows() == [
        ("*", 3, 2),
        ("snake", 2, 1),
        ("tetris", 1, 1),
    ]


def test_cells_are_compared_by_agreement_and_naba(lab: Lab) -> None:
    for pathway, gain, agreement in (("history", 4.0, 0.0), ("memory", 2.0, 0.5), ("training", 1.0, 1.0)):
        lab.add(pathway, climb([1.0, 1.0 + gain]), explore([agreement]), pathway=pathway)
    lab.add("negative start", climb([-1.0, 2.0]), explore([0.5]), model_id="other")
    found = row(lab.open(materialize=True), "judge_coupling", "unit = 'cell' and game = '*' and quality = 'agreement'")
    # naba 3 * gain / 2 / 1: 6, 3 and 1.5; from a negative start there is none
    assert (found["unit_count"], found["status"]) == (3, "ok")
    assert found["spearman"] == pytest.approx(-1)
    # agreement from its mean -0.5, 0, 0.5; gains from theirs 5/3, -1/3, -4/3: -1.5 / sqrt(0.5 * 42/9)
    assert found["pearson"] == pytest.approx(-1.5 / (0.5 * 42 / 9) ** 0.5)
    # thirds of one cell each
    assert found["tertile_gap"] == pytest.approx(1.5 - 6)
