from typing import Any

from tests.sql.lab import Lab, row

# one episode a checkpoint; y_0 = 1, one segment of 3: NABA = 3 * rise / 2


def curve(rise: float) -> dict[int, list[Any]]:
    return {0: [1.0], 3: [1.0 + rise]}


def test_difference_is_memory_minus_history(lab: Lab) -> None:
    lab.add("h", curve(1.0), pathway="history")
    lab.add("m", curve(2.0), pathway="memory")
    lab.add("n", curve(5.0), pathway="none")
    match = row(lab.open(), "memory_vs_history")
    assert (match["naba_memory"], match["naba_history"], match["naba_difference"]) == (3.0, 1.5, 1.5)
    assert (match["winner"], match["memory_cell_id"], match["history_cell_id"]) == ("memory", "m", "h")


def test_equal_areas_are_a_tie(lab: Lab) -> None:
    lab.add("h", curve(0.1 + 0.2), pathway="history")
    lab.add("m", curve(0.3), pathway="memory")
    assert row(lab.open(), "memory_vs_history")["winner"] == "tie"


def test_nobody_wins_against_a_missing_or_undefined_side(lab: Lab) -> None:
    lab.add("h", curve(1.0), pathway="history")
    lab.add("h1", curve(1.0), pathway="history", replicate=1)
    lab.add("m1", {0: [-1.0], 3: [2.0]}, pathway="memory", replicate=1)
    rows = lab.open().sql("from memory_vs_history order by replicate").to_dicts()
    assert [(r["naba_memory"], r["naba_history"], r["winner"]) for r in rows] == [(None, 1.5, None)] * 2
    assert [r["memory_cell_id"] for r in rows] == [None, "m1"]


def test_cells_of_other_settings_are_other_matches(lab: Lab) -> None:
    for limit in (10, 20):
        lab.add(f"h{limit}", curve(1.0), pathway="history", history_token_limit=limit)
        lab.add(f"m{limit}", curve(2.0), pathway="memory", history_token_limit=limit)
    rows = lab.open().sql("select memory_cell_id, history_cell_id from memory_vs_history order by 1").rows()
    assert rows == [("m10", "h10"), ("m20", "h20")]
