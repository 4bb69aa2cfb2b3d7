"""The sections on training and transfer: the numbers of their marts, and plain words where there is none."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from s3gym.report.sections import cost, data_quality, training, transfer
from s3gym.warehouse import Warehouse
from tests.sql.lab import SFT_ROW, TRAINING_STEP, Lab

TRAINED: dict[str, Any] = {"pathway": "training", "training": "{}"}


def words(text: str) -> str:
    shown = re.sub(r"<script.*?</script>", " ", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub("<.*?>", " ", shown))).replace("−", "-")


def datasets(text: str) -> list[dict[str, Any]]:
    """The rows of every chart."""
    return [json.loads(found)["datasets"] for found in re.findall(r'json">(.*?)</script>', text, re.DOTALL)]


def tiles(text: str) -> list[dict[str, Any]]:
    """The rows of the maps."""
    return [tile for chart in datasets(text) for tile in chart["tiles"]]


def test_without_training_it_says_how_to_train(warehouse: Warehouse) -> None:
    assert "s3gym run --model local:tiny --pathway training" in words(training.build(warehouse))
    assert "s3gym run --model local:tiny --pathway training" in words(transfer.build(warehouse))


def test_trained_cells_are_shown_with_their_controls_and_no_other(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add("trained", {0: [1.0], 3: [2.0]}, **TRAINED)
    lab.add("control", {0: [1.0], 3: [1.0]}, pathway="none")
    lab.add("of another pathway", {0: [1.0], 3: [1.0]}, pathway="history")
    lab.add("of another model", {0: [1.0], 3: [1.0]}, pathway="none", model_id="other")
    lab.add("of another game", {0: [1.0], 3: [1.0]}, pathway="none", game="trust")

    curves = [chart["scored"] for chart in datasets(training.build(lab.open())) if "scored" in chart]

    assert [{point["cell_id"] for point in curve} for curve in curves] == [{"trained", "control"}]


def test_an_update_is_told_with_its_reasons(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(curve={0: [2.0], 3: [4.0], 6: [1.0]}, game="trust", explorer_id="player:expert", **TRAINED)
    rows = [replace(SFT_ROW, step_index=0), replace(SFT_ROW, step_index=1, decision="filtered", reason="malformed")]
    lab.train(3, rows, [replace(TRAINING_STEP, loss=loss, peak_memory_bytes=2**29) for loss in (2.5, 1.25)])
    lab.train(6, rows[1:])

    told = words(training.build(lab.open()))

    assert "3 changed 2 1 0 1 kept: top 1; filtered: malformed 1" in told.replace("▲ ", "")
    assert "2.500 1.250" in told and "0.50" in told  # nats; half of a GiB
    assert "6 unchanged 1 0 0 1 filtered: malformed 1" in told.replace("● ", "")
    # 4 and 1 after the update, from 2: one of two is above
    assert "player:expert 2.00 2.50 4.00 1.00 -1.00" in told
    assert "1/2 50 %" in told.replace("\xa0", " ")


def test_the_published_row_stands_beside_with_what_differs(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(curve={0: [0.0], 3: [4.0]}, game="trust", model_id="local:tiny", **TRAINED)
    lab.train(3, [SFT_ROW], [TRAINING_STEP])

    told = words(training.build(lab.open()))

    assert "4.00 (published: 8.68)" in told
    assert "4.00 (published: – (not published) )" in told
    assert "1/1 (published: 18/19)" in told
    assert "local:tiny, not Qwen3-8B; 2 checkpoints, not 20" in told
    assert "arXiv 2608.31100, CC BY 4.0" in told


def test_a_cell_that_was_asked_for_and_not_begun_is_told(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(game="chess", **TRAINED)

    told = words(training.build(lab.open()))

    assert "No held-out episode has been played yet" in told
    assert "No update has been made yet" in told
    assert "published study" not in told


def test_differences_are_those_of_the_mart_with_their_verdicts(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(curve={0: [1.0, 1.0], 3: [1.0, 1.0]}, **TRAINED)
    for checkpoint, plays in ((0, [4.0, 5.0, 6.0]), (3, [1.0, 1.0, 1.0])):
        lab.transfer(checkpoint, "tetris", plays)
    lab.transfer(3, "pvz", [None, 1.0])

    built = transfer.build(lab.open())

    # -4 -+ 2.48434, as in tests/sql/test_transfer.py
    assert "-4.00 [-6.48, -1.52]" in words(built)
    assert "loses" in words(built) and "(its own)" in words(built)
    found = {tile["target_game"]: tile for tile in tiles(built)}
    assert {game: tile["verdict"] for game, tile in found.items()} == {
        "pvz": "no comparison",
        "snake": "no difference",
        "tetris": "loses",
    }
    assert (found["pvz"]["mean_difference"], found["snake"]["mean_difference"]) == (None, 0.0)
    assert "0.00 (no spread in 2 pairs)" in words(built)


def test_a_target_that_was_not_played_is_a_tile_without_a_number(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    for game, target in (("snake", "tetris"), ("trust", "pvz")):
        lab.add(game, {0: [1.0], 3: [2.0]}, game=game, **TRAINED)
        for checkpoint in (0, 3):
            lab.transfer(checkpoint, target, [1.0], game)
    lab.link("transfer", "not there", 3, "snake")  # asks for 3 episodes

    built = transfer.build(lab.open())

    # two sources, and four targets with their own: each source was tried in two of them
    assert len(tiles(built)) == 8
    assert [tile["mean_difference"] for tile in tiles(built) if tile["verdict"] == "not played"] == [None] * 4
    assert "3 held-out episodes in other games have not been played" in words(built)


def test_cells_that_differ_in_settings_alone_have_rows_of_their_own(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    for cell in ("a", "b"):
        lab.add(cell, {0: [1.0], 3: [2.0]}, **TRAINED)
        for checkpoint in (0, 3):
            lab.transfer(checkpoint, "tetris", [1.0], cell)

    assert {tile["source"] for tile in tiles(transfer.build(lab.open()))} == {"snake", "snake · settings 2"}


def test_transfer_has_columns_of_its_own_where_it_was_asked_for(trained: Warehouse, warehouse: Warehouse) -> None:
    assert "Transfer asked for" in data_quality.build(trained)
    assert "Transfer asked for" not in data_quality.build(warehouse)
    assert "transfer" in words(cost.build(trained))
