"""A folder with every intervention: what was read, what is shared, and that the numbers of other cells stay."""

import re
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from s3gym import resampling, storage, subjects
from s3gym.guides import read_guide
from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse, read_views
from tests.direct import measure_directly
from tests.programmed import Programmed

REQUEST: dict[str, Any] = {
    "scale": "smoke",
    "games": ["snake", "trust"],
    "models": ["player:learner"],
}
SHORT = ("game.snake.exploration.horizon=8", "game.snake.evaluation.horizon=8")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("alone") / "data"
    measure_directly(data, *SHORT, **REQUEST)
    return data


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("replaced") / "data"
    measure_directly(data, *SHORT, **REQUEST, interventions=["all"])
    return data


def opened(data: Path) -> Warehouse:
    warehouse = Warehouse(data, materialize=True)
    resampling.refresh(warehouse)
    return warehouse


def test_numbers_of_cells_without_an_intervention_do_not_know_of_those_with_one(
    alone: Path, replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resampling, "PERMUTATIONS", 500)  # so many are enough to see a stream that is shared
    one, all_ = opened(alone), opened(replaced)
    compared = []
    for view in read_views().values():
        columns = one.columns()[view.name]
        if view.layer != "marts" or "intervention" not in columns:
            continue
        rows = one.sql(f"from {view.name}")
        (key,) = re.findall(r"^key: (.+)$", view.header, re.M)
        same = all_.sql(f"from {view.name} where intervention = 'main'")
        dropped = {"run_id", "previous_at"} & set(columns)
        assert_frame_equal(rows.drop(dropped).sort(key.split(", ")), same.drop(dropped).sort(key.split(", ")))
        compared.append(view.name)
    assert {"improvement_verdict", "control_gain", "judge_calibration", "judge_reliability", "game_ranks"} <= {
        *compared
    }
    for unmarked in ("verdict", "pathway_verdict", "judge_coupling"):
        assert_frame_equal(one.sql(f"from {unmarked} order by all"), all_.sql(f"from {unmarked} order by all"))


def test_everything_stored_is_borne_out_and_no_check_finds_anything(replaced: Path) -> None:
    assert [verdict for verdict in verify_folder(replaced) if verdict.problems] == []
    assert set(Warehouse(replaced).checks().values()) == {0}


def test_what_was_measured_alone_is_part_of_what_is_measured_with_interventions(alone: Path, replaced: Path) -> None:
    assert {*storage.parts_of(alone, "")} < {*storage.parts_of(replaced, "")}


def test_each_experience_says_what_is_in_it(replaced: Path) -> None:
    found = Warehouse(replaced).sql(
        "select distinct intervention, pathway, kind from experience_size order by intervention, pathway"
    )

    assert found.rows() == [
        ("expert_exploration", "history", "history"),
        ("expert_exploration", "memory", "memory"),
        ("main", "history", "history"),
        ("main", "memory", "memory"),
        ("oracle_judge", "history", "history, oracle scores"),
        ("oracle_judge", "memory", "memory, oracle scores"),
        ("placebo_memory", "history", "placebo guide"),
        ("placebo_memory", "memory", "placebo guide"),
        ("reference_memory", "history", "reference guide"),
        ("reference_memory", "memory", "reference guide"),
        ("relaxed_evaluation", "history", "history"),
        ("relaxed_evaluation", "memory", "memory"),
        ("shuffled_scores", "history", "history, shuffled scores"),
        ("shuffled_scores", "memory", "memory, shuffled scores"),
    ]


def test_a_placebo_has_the_length_of_what_it_replaces_and_the_reference_its_own(replaced: Path) -> None:
    lengths = Warehouse(replaced).sql(
        """
        select placebo.token_count, main.token_count as replaced_count
        from experience_size as placebo
        inner join experience_size as main using (model_id, game, pathway, replicate, checkpoint)
        where placebo.intervention = 'placebo_memory' and main.intervention = 'main'
        """
    )
    assert len(lengths) == 2 * 2  # games, pathways
    assert all(count - 4 <= placebo <= count for placebo, count in lengths.rows())  # a word is up to 4 tokens
    texts = Warehouse(replaced).sql(
        "select distinct game, text from stg_experiences where kind = 'reference guide' order by game"
    )
    assert texts.rows() == [(game, read_guide(game).text) for game in ("snake", "trust")]


def test_relaxed_episodes_are_held_out_and_relaxed(replaced: Path) -> None:
    rows = Warehouse(replaced).sql(
        """
        select distinct episodes.game, episodes.config = cells.exploration_config as is_relaxed, cells.intervention
        from int_cell_episodes as used
        inner join stg_episodes as episodes using (stage_key, episode_id)
        inner join int_selected_cells as selected using (cell_id)
        inner join stg_cells as cells on selected.run_id = cells.run_id and selected.cell_id = cells.cell_id
        where used.phase = 'evaluation' and (cells.intervention = 'relaxed_evaluation' or cells.pathway = 'none')
        order by all
        """
    )
    assert rows.rows() == [
        ("snake", False, "main"),
        ("snake", True, "relaxed_evaluation"),
        ("trust", False, "main"),
        ("trust", True, "relaxed_evaluation"),
    ]


def test_what_the_expert_explored_is_there_once(replaced: Path) -> None:
    played = Warehouse(replaced).sql(
        """
        select cells.game, count(distinct episodes.stage_key) as blocks, count(distinct cells.cell_id) as cells
        from int_cell_episodes as episodes
        inner join int_selected_cells as cells using (cell_id)
        where cells.intervention = 'expert_exploration' and episodes.phase = 'exploration'
        group by cells.game order by cells.game
        """
    )
    assert played.rows() == [("snake", 1, 2), ("trust", 1, 2)]  # one block; two pathways


def test_calls_of_an_intervention_are_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"act": "Answer: collaborate, Score: 2", "judge": "Success: 1", "remember": "Collaborate."}
    model = Programmed(lambda request: said[request.purpose])
    monkeypatch.setattr(model, "is_free", False)
    monkeypatch.setattr(subjects, "load_model", lambda *entry: model)
    request = {**REQUEST, "games": ["trust"], "models": ["programmed"], "interventions": ["oracle_judge"]}
    plan = measure_directly(tmp_path, **request)
    asked = len(model.requests)
    own = [stage for stage in plan.stages() if stage.subject.intervention == "oracle_judge"]
    assert len(own) == 2 * 2  # pathways; a text and an evaluation

    for part in [part for stage in own for part in storage.parts_of(tmp_path, stage.stem)]:
        storage.manifest_path(tmp_path, part).unlink()
    measure_directly(tmp_path, **request)

    assert len(model.requests) == asked
