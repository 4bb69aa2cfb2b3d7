from dataclasses import replace
from typing import Any

from tests.sql.lab import SFT_ROW, TRAINING_STEP, Lab, row

TRAINED: dict[str, Any] = {"pathway": "training", "training": "{}"}


def test_rows_are_counted_by_decision_and_reason(lab: Lab) -> None:
    lab.add(**TRAINED, explorer_id="player:expert")
    filtered: dict[str, Any] = {"decision": "filtered", "weight": None, "trained_reply_tokens": None}
    considered = [
        replace(SFT_ROW, reason="top", trained_reply_tokens=5),
        replace(SFT_ROW, reason="top", trained_reply_tokens=7, self_score=-2.0),
        replace(SFT_ROW, decision="corrected", reason="better", reply="b", trained_reply_tokens=4),
        replace(SFT_ROW, reason="rank", **filtered),
        replace(SFT_ROW, reason="rank", **filtered),
        replace(SFT_ROW, reason="long", **filtered),
    ]
    steps = [
        replace(TRAINING_STEP, loss=2.0, gradient_norm=1.0, token_count=30, seconds=0.5, peak_memory_bytes=100),
        replace(TRAINING_STEP, loss=3.0, gradient_norm=4.0, token_count=20, seconds=0.25, peak_memory_bytes=400),
        replace(TRAINING_STEP, loss=1.0, gradient_norm=2.0, token_count=10, seconds=0.25, peak_memory_bytes=300),
    ]
    lab.train(3, [replace(one, step_index=index) for index, one in enumerate(considered)], steps)

    update = row(lab.open(), "training_updates")

    counts = [update[f"{name}_count"] for name in ("considered", "kept", "corrected", "filtered", "step")]
    assert counts == [6, 2, 1, 3, 3]
    assert update["reasons"] == "kept: top 2; corrected: better 1; filtered: rank 2, long 1"
    assert update["trained_reply_tokens"] == 16  # 5 + 7 + 4
    assert update["token_count"] == 60  # 30 + 20 + 10
    assert (update["first_loss"], update["last_loss"], update["gradient_norm_max"]) == (2.0, 1.0, 4.0)
    assert (update["seconds"], update["peak_memory_bytes"]) == (1.0, 400)
    assert (update["is_updated"], update["explorer_id"]) == (True, "player:expert")


def test_an_update_that_changed_nothing_has_counts_and_no_loss(lab: Lab) -> None:
    lab.add(**TRAINED)
    lab.train(3, [SFT_ROW])

    update = row(lab.open(), "training_updates")

    assert (update["is_updated"], update["kept_count"], update["step_count"], update["token_count"]) == (False, 1, 0, 0)
    unknown = ("first_loss", "last_loss", "gradient_norm_max", "seconds", "peak_memory_bytes")
    assert {update[name] for name in unknown} == {None}


def test_an_update_that_failed_leaves_what_it_considered_and_changed_nothing(lab: Lab) -> None:
    lab.add(**TRAINED)
    rows = [replace(SFT_ROW, stage_key="failed"), replace(SFT_ROW, stage_key="failed", step_index=1)]
    lab.part("failed", {"sft_rows": rows, "training_steps": [replace(TRAINING_STEP, stage_key="failed", loss=9.0)]})
    lab.link("build_experience", "failed", 3)

    warehouse = lab.open()

    update, study = row(warehouse, "training_updates"), row(warehouse, "training_study")
    assert (update["is_updated"], update["kept_count"], update["last_loss"]) == (None, 2, 9.0)
    assert (study["update_count"], study["unchanged_count"]) == (0, 1)


def test_an_update_without_any_step_to_consider_is_told_too(lab: Lab) -> None:
    lab.add(**TRAINED)
    lab.train(3)

    update = row(lab.open(), "training_updates")

    assert (update["considered_count"], update["reasons"], update["trained_reply_tokens"]) == (0, None, None)


def test_an_update_to_be_made_has_no_row_and_texts_are_none(lab: Lab) -> None:
    lab.add("trained", **TRAINED)
    lab.link("build_experience", "not there", 3, "trained")
    lab.add("read", pathway="history")
    lab.train(3, [SFT_ROW], [TRAINING_STEP], "read")

    warehouse = lab.open()

    assert warehouse.sql("from training_updates").rows() == warehouse.sql("from training_loss").rows() == []


def test_steps_of_the_optimizer_are_numbered_through_all_updates(lab: Lab) -> None:
    lab.add(**TRAINED)
    lab.train(6, [SFT_ROW], [replace(TRAINING_STEP, loss=loss) for loss in (0.5, 0.25)])
    lab.train(3, [SFT_ROW], [replace(TRAINING_STEP, loss=loss) for loss in (2.0, 1.0)])
    lab.train(9)

    found = lab.open().sql("select step_number, checkpoint, update_step, loss from training_loss order by 1").rows()

    assert found == [(1, 3, 0, 2.0), (2, 3, 1, 1.0), (3, 6, 0, 0.5), (4, 6, 1, 0.25)]
