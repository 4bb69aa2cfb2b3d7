"""Interventions where experience becomes weights: what ranks the rows, and what leaves the folder."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from s3gym.export import sft
from s3gym.export.files import ExportError
from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "peft")), reason="needs the extra local"
)

BLIND: dict[str, Any] = {
    "id": "local:tiny",
    "explorer": "player:steady?confidence=under",  # gives every step the same self-score, so nothing is told apart
    "training": {"learning_rate": 0.005, "batch": 16, "epochs": 1, "signal": "score"},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("weights") / "data"
    measure_directly(
        data,
        scale="smoke",
        models=[BLIND],
        games=["trust"],
        pathways=["training"],
        retrospective=False,
        transfer="off",
        interventions=["oracle_judge"],
    )
    return data


def test_the_oracle_ranks_what_the_agents_own_scores_cannot(data: Path) -> None:
    found = Warehouse(data).sql("select intervention, is_updated, explorer_id from training_updates order by all")

    assert found.rows() == [
        ("main", False, BLIND["explorer"]),
        ("oracle_judge", True, BLIND["explorer"]),
    ]
    kinds = Warehouse(data).sql("select intervention, kind from experience_size order by all").rows()
    assert kinds == [
        ("main", "weights"),
        ("oracle_judge", "weights, oracle scores"),
    ]


def test_rows_keep_the_agents_own_score_beside_what_they_were_ranked_by(data: Path) -> None:
    rows = (
        Warehouse(data)
        .sql(
            """
        select cells.intervention, rows.self_score, rows.signal, steps.verifier_reward as reward
        from stg_sft_rows as rows
        inner join stg_cell_stages as links on rows.stage_key = links.stage_key
        inner join int_selected_cells as cells on links.cell_id = cells.cell_id
        inner join stg_steps as steps on rows.episode_id = steps.episode_id and rows.step_index = steps.step_index
        where cells.intervention in ('main', 'oracle_judge')
        """
        )
        .to_dicts()
    )
    assert {row["self_score"] for row in rows} == {-1.0}
    assert {row["signal"] for row in rows if row["intervention"] == "main"} == {-1.0}
    oracle = [row for row in rows if row["intervention"] == "oracle_judge"]
    assert len(oracle) == 3 * 10 and all(row["signal"] == row["reward"] for row in oracle)
    assert len({row["reward"] for row in oracle}) > 1


def test_rows_that_an_intervention_was_trained_on_are_not_exported(data: Path) -> None:
    with pytest.raises(ExportError, match="no row was trained on"):
        sft.rows(Warehouse(data), "messages")


def test_everything_stored_is_borne_out(data: Path) -> None:
    assert [verdict for verdict in verify_folder(data) if verdict.problems] == []
    assert set(Warehouse(data).checks().values()) == {0}
