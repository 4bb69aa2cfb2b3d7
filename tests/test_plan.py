"""Keys, cells and what is missing, all before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from s3gym import storage, subjects
from s3gym.config import ConfigError, load_config
from s3gym.games.trust import GAME as TRUST
from s3gym.models.base import ModelError
from s3gym.pathways import history
from s3gym.plan import COMPLETE, INVALID, RunPlan, Stage, make_plan, missing
from s3gym.registry import UnknownName
from tests.direct import measure_directly
from tests.programmed import Programmed

BASE: dict[str, Any] = {"scale": "smoke", "games": ["snake"], "models": ["player:learner"]}


def planned(*assignments: str, **values: Any) -> RunPlan:
    return make_plan(load_config(None, {**BASE, **values}, assignments))


def keys(run: RunPlan) -> set[str]:
    return {stage.key for stage in run.stages()}


def only(run: RunPlan, kind: str, checkpoint: int, pathway: str = "history") -> Stage:
    (found,) = {
        stage.key: stage
        for cell in run.cells
        for stage in cell.stages
        if (stage.kind, stage.checkpoint, cell.record.pathway) == (kind, checkpoint, pathway)
    }.values()
    return found


# --- the chain ----------------------------------------------------------------------------------------------


def test_a_cell_is_the_chain_of_its_stages_in_the_order_they_can_run() -> None:
    (cell,) = planned("exploration_episodes=6", pathways=["memory"]).cells

    assert [(stage.kind, stage.checkpoint, stage.first, stage.last) for stage in cell.stages] == [
        ("evaluate", 0, 0, 2),
        ("explore", 0, 0, 3),
        ("self_judge", 0, 0, 3),
        ("build_experience", 3, 0, 3),
        ("evaluate", 3, 0, 2),
        ("explore", 3, 3, 6),
        ("self_judge", 3, 3, 6),
        ("build_experience", 6, 0, 6),
        ("evaluate", 6, 0, 2),
    ]
    _, first, judged, built, measured, second, _, built_again, _ = cell.stages
    assert judged.explored == (first,)
    assert (built.explored, built.experience) == ((first,), None)
    assert (measured.experience, second.experience) == (built, built)
    assert built_again.explored == (first, second)


def test_the_control_evaluates_at_every_checkpoint_and_explores_nothing() -> None:
    (cell,) = planned("exploration_episodes=6", pathways=["none"]).cells

    assert [(stage.kind, stage.checkpoint) for stage in cell.stages] == [("evaluate", x) for x in (0, 3, 6)]
    assert cell.record.exploration_episode_count == 0


def test_no_judgment_is_asked_for_where_none_is_wanted() -> None:
    kinds = {stage.kind for stage in planned("retrospective=false").stages()}

    assert kinds == {"explore", "build_experience", "evaluate"}


def test_evaluation_before_any_experience_is_one_stage_of_all_pathways() -> None:
    run = planned(pathways=["none", "history", "memory"])

    starts = {cell.record.pathway: cell.stages[0] for cell in run.cells}
    assert {stage.kind for stage in starts.values()} == {"evaluate"}
    assert len({stage.key for stage in starts.values()}) == 1
    # three cells of 1 + 4 stages, the control of 2; evaluate(0) counts once: 1 + 4 + 4 + 1
    assert len(list(run.stages())) == 10
    assert len(run.links()) == 12


def test_the_same_request_is_the_same_run_with_the_same_keys() -> None:
    assert planned().run.run_id == planned().run.run_id
    assert keys(planned()) == keys(planned())


def test_what_is_asked_for_twice_is_one_cell() -> None:
    doubled = planned(models=["player:learner"] * 2, pathways=["none", "none"], games=["snake", "snake"])

    assert len(doubled.cells) == 1


def test_the_default_suite_is_every_game() -> None:
    assert {cell.record.game for cell in make_plan(load_config(None, {})).cells} >= {
        "minesweeper",
        "snake",
        "trust",
    }


# --- what a key covers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "assignments",
    [
        ['models=["player:learner?confidence=over"]'],
        ['models=["player:myopic"]'],
        ["temperature=0.5"],
        ["max_output_tokens=100"],
        ["seed=1"],
        ["game.snake.exploration.size=7", "game.snake.evaluation.size=7"],
        ["exploration_seeds=[0, 1000]", "evaluation_seeds=[1000, 2000]"],
    ],
    ids=str,
)
def test_a_setting_that_can_change_every_result_changes_every_key(assignments: list[str]) -> None:
    assert keys(planned(*assignments)).isdisjoint(keys(planned()))


@pytest.mark.parametrize("assignment", ["parallel=1", "timeout_seconds=1", "suite=paper", "scale=paper"])
def test_a_setting_that_changes_no_result_changes_no_key(assignment: str) -> None:
    budgets = ("exploration_episodes=3", "evaluation_interval=3", "evaluation_episodes=2")

    assert keys(planned(assignment, *budgets)) == keys(planned())


def test_the_evaluation_configuration_and_seeds_leave_exploration_alone() -> None:
    before = planned()
    for assignment in (
        "game.snake.evaluation.size=7",
        "evaluation_seeds=[3000000000, 4000000000]",
        "evaluation_set=fresh",
    ):
        after = planned(assignment)
        assert only(after, "explore", 0).key == only(before, "explore", 0).key
        assert only(after, "build_experience", 3).key == only(before, "build_experience", 3).key
        assert only(after, "evaluate", 0).key != only(before, "evaluate", 0).key
        assert only(after, "evaluate", 3).key != only(before, "evaluate", 3).key


def test_the_exploration_configuration_reaches_evaluation_through_the_experience() -> None:
    before, after = planned(), planned("game.snake.exploration.size=7")

    assert only(after, "evaluate", 0).key == only(before, "evaluate", 0).key
    assert only(after, "evaluate", 3).key != only(before, "evaluate", 3).key
    assert only(after, "evaluate", 3, "none").key == only(before, "evaluate", 3, "none").key


def test_a_new_version_of_a_game_changes_the_keys_of_that_game_only(monkeypatch: pytest.MonkeyPatch) -> None:
    games = ["snake", "trust"]
    before = {(s.subject.game.id, s.key) for s in planned(games=games).stages()}
    monkeypatch.setattr(type(TRUST), "VERSION", TRUST.VERSION + 1)

    changed = before ^ {(s.subject.game.id, s.key) for s in planned(games=games).stages()}

    assert {game for game, _ in changed} == {"trust"}
    assert len(changed) == 2 * sum(game == "trust" for game, _ in before)


@pytest.mark.parametrize("name", ["plan.PROMPT_VERSION", "storage.KEY_VERSION"])
def test_a_new_version_of_prompts_or_keys_changes_every_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(planned())
    monkeypatch.setattr(f"s3gym.{name}", 99)

    assert keys(planned()).isdisjoint(before)


def test_a_new_version_of_a_pathway_changes_what_rests_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = planned()
    monkeypatch.setattr(history, "VERSION", 99)

    after = planned()

    assert {stage.label for stage in after.stages() if stage.key not in keys(before)} == {
        stage.label
        for stage in before.stages()
        if stage.subject.pathway_id == "history" and (stage.kind, stage.checkpoint) != ("evaluate", 0)
    }


@pytest.mark.parametrize("assignment", ["history_token_limit=500", "history_cut=oldest"])
def test_history_settings_change_both_pathways_that_read_history_but_not_the_control(assignment: str) -> None:
    before, after = planned(), planned(assignment)

    for pathway in ("history", "memory"):
        assert only(after, "evaluate", 3, pathway).key != only(before, "evaluate", 3, pathway).key
    assert only(after, "evaluate", 3, "none").key == only(before, "evaluate", 3, "none").key
    assert only(after, "evaluate", 0).key == only(before, "evaluate", 0).key


def test_the_source_of_memory_changes_memory_alone() -> None:
    before, after = planned(), planned("memory_source=recursive")

    assert only(after, "evaluate", 3, "memory").key != only(before, "evaluate", 3, "memory").key
    assert only(after, "evaluate", 3, "history").key == only(before, "evaluate", 3, "history").key


def test_replicates_differ_in_every_key() -> None:
    run = planned(replicates=2)
    by_replicate = [
        {stage.key for cell in run.cells if cell.record.replicate == number for stage in cell.stages}
        for number in (0, 1)
    ]

    assert len(by_replicate[0]) == len(by_replicate[1])
    assert by_replicate[0].isdisjoint(by_replicate[1])


# --- raising a budget ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignments", "values"),
    [
        (["exploration_episodes=9"], {}),
        (["evaluation_episodes=20"], {}),
        ([], {"replicates": 3}),
        ([], {"games": ["snake", "trust"]}),
        ([], {"models": ["player:learner", "player:expert"]}),
        ([], {"pathways": ["none", "history", "memory"]}),
    ],
    ids=str,
)
def test_asking_for_more_keeps_every_key_there_was(assignments: list[str], values: dict[str, Any]) -> None:
    before = planned(pathways=["none", "history"])
    after = planned(*assignments, **{"pathways": ["none", "history"], **values})

    assert keys(before) <= keys(after)
    assert before.run.run_id != after.run.run_id


def test_a_shuffled_order_explores_anew_for_each_budget_but_not_for_more_replicates() -> None:
    shuffled = "exploration_order=shuffled"
    before, more, longer = (
        planned(shuffled, *more, pathways=["history"]) for more in ((), ("replicates=3",), ("exploration_episodes=6",))
    )

    assert keys(before) < keys(more)
    assert keys(planned(pathways=["history"])) & keys(before) == {only(before, "evaluate", 0).key}
    assert only(before, "explore", 0).key != only(longer, "explore", 0).key
    assert only(before, "evaluate", 0).key == only(longer, "evaluate", 0).key


def test_a_cell_of_another_budget_is_another_cell() -> None:
    few, many = planned(pathways=["none"]), planned("evaluation_episodes=3", pathways=["none"])

    assert few.cells[0].record.cell_id != many.cells[0].record.cell_id
    assert few.cells[0].record.cell_id.startswith("snake/player:learner/none/r0/s0#")
    assert [link.episode_count for link in few.links()] == [2, 2]
    assert [link.episode_count for link in many.links()] == [3, 3]


@pytest.mark.parametrize(("asked", "played"), [(1, 7), (2, 7), (7, 7), (8, 14)])
def test_trust_evaluates_in_multiples_of_seven(asked: int, played: int) -> None:
    run = planned(f"evaluation_episodes={asked}", games=["trust", "snake"], pathways=["none"])

    counts = {cell.record.game: cell.record.evaluation_episode_count for cell in run.cells}
    assert counts == {"trust": played, "snake": asked}


# --- what is missing ----------------------------------------------------------------------------------------


def write(data: Path, stage: Stage, first: int, last: int, status: str = COMPLETE) -> None:
    """A part of no rows; the manifest and the files are what counts."""
    storage.write_part(data, stage.part(first, last), "snake", {"episodes": [], "steps": []}, {"status": status})


@pytest.fixture
def evaluation() -> Stage:
    return only(planned("evaluation_episodes=5"), "evaluate", 3)


def test_nothing_done_is_one_gap(tmp_path: Path, evaluation: Stage) -> None:
    assert missing(tmp_path, evaluation) == [(0, 5)]


def test_a_larger_budget_lacks_only_the_rest(tmp_path: Path, evaluation: Stage) -> None:
    write(tmp_path, evaluation, 0, 3)
    assert missing(tmp_path, evaluation) == [(3, 5)]

    write(tmp_path, evaluation, 3, 5)
    assert missing(tmp_path, evaluation) == []


def test_a_smaller_budget_lacks_nothing(tmp_path: Path, evaluation: Stage) -> None:
    write(tmp_path, evaluation, 0, 9)

    assert missing(tmp_path, evaluation) == []


def test_a_file_that_is_no_part_of_ours_is_passed_over(tmp_path: Path, evaluation: Stage) -> None:
    write(tmp_path, evaluation, 0, 5)
    manifest = storage.manifest_path(tmp_path, evaluation.part(0, 5))
    manifest.with_name(f"{manifest.stem} (1).json").write_text(manifest.read_text())

    assert missing(tmp_path, evaluation) == []


def test_an_invalid_part_is_made_again_whole_and_no_other(tmp_path: Path, evaluation: Stage) -> None:
    write(tmp_path, evaluation, 0, 3, INVALID)
    write(tmp_path, evaluation, 3, 4)

    assert missing(tmp_path, evaluation) == [(0, 3), (4, 5)]


def test_an_invalid_part_of_a_larger_budget_is_made_again_whole(tmp_path: Path, evaluation: Stage) -> None:
    write(tmp_path, evaluation, 0, 9, INVALID)

    assert missing(tmp_path, evaluation) == [(0, 9)]


def test_an_invalid_part_is_played_again_whole_by_a_smaller_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Programmed(ModelError("server", "out of order"), "Answer: UP, Score: 0")
    monkeypatch.setattr(subjects, "load_model", lambda *entry: model)
    request = {**BASE, "models": ["programmed"], "pathways": ["none"]}
    many = measure_directly(tmp_path, "evaluation_episodes=3", **request)
    assert missing(tmp_path, many.cells[0].stages[0]) == [(0, 3)]

    measure_directly(tmp_path, "evaluation_episodes=1", **request)

    assert missing(tmp_path, many.cells[0].stages[0]) == []


def test_a_manifest_without_its_files_is_missing(tmp_path: Path, evaluation: Stage) -> None:
    write(tmp_path, evaluation, 0, 5)
    next((tmp_path / "tables" / "steps").rglob("*.parquet")).unlink()

    assert missing(tmp_path, evaluation) == [(0, 5)]


def test_rows_without_a_manifest_are_missing(tmp_path: Path, evaluation: Stage) -> None:
    write(tmp_path, evaluation, 0, 5)
    storage.manifest_path(tmp_path, evaluation.part(0, 5)).unlink()

    assert missing(tmp_path, evaluation) == [(0, 5)]


def test_a_gap_in_the_middle_is_found(tmp_path: Path, evaluation: Stage) -> None:
    write(tmp_path, evaluation, 0, 1)
    write(tmp_path, evaluation, 3, 4)

    assert missing(tmp_path, evaluation) == [(1, 3), (4, 5)]


def test_other_stages_are_all_or_nothing(tmp_path: Path) -> None:
    stage = only(planned(), "explore", 0)
    assert missing(tmp_path, stage) == [(0, 3)]

    write(tmp_path, stage, 0, 3, INVALID)
    assert missing(tmp_path, stage) == [(0, 3)]

    write(tmp_path, stage, 0, 3)
    assert missing(tmp_path, stage) == []


# --- wrong requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "assignments", "told"),
    [
        ({"games": ["sanke"]}, [], r"unknown game 'sanke'\. Did you mean snake"),
        ({"pathways": ["memry"]}, [], r"unknown pathway 'memry'\. Did you mean memory"),
        ({"models": [{"id": "player:learner", "pathways": ["histry"]}]}, [], "Did you mean history"),
        ({"models": ["player:expret"]}, [], "unknown player of snake 'expret'. Did you mean expert"),
        (
            {"models": ["player:careful"], "games": ["snake", "trust"]},
            [],
            "unknown player of trust 'careful'",
        ),
        (
            {"models": ["player:expert?confidense=over"]},
            [],
            "unknown player option 'confidense'. Did you mean confidence",
        ),
        (
            {"models": ["player:expert?confidence=0ver"]},
            [],
            "unknown value of player option 'confidence' '0ver'",
        ),
        ({}, ["game.sanke.evaluation.size=7"], "unknown game in the settings 'sanke'. Did you mean snake"),
        (
            {},
            ["game.snake.evaluation.sise=7"],
            r"unknown setting of game\.snake\.evaluation 'sise'. Did you mean size",
        ),
    ],
)
def test_an_unknown_name_is_told_with_its_nearest(values: dict[str, Any], assignments: list[str], told: str) -> None:
    with pytest.raises(UnknownName, match=told):
        planned(*assignments, **values)


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        (
            'game.snake.evaluation.size="big"',
            r"game\.snake\.evaluation: size = 'big': expected int, such as 8",
        ),
        ("game.snake.evaluation.size=[7]", r"size = \[7\]: expected int"),
        ("game.snake.evaluation.collision_ends=1", "collision_ends = 1: expected bool"),
        ("game.snake.evaluation.size=50", r"game\.snake\.evaluation: size is 50, expected 6 to 10"),
        (
            "game.snake.evaluation.horizon=0",
            r"game\.snake\.evaluation: horizon = 0: expected 1 to 1000 steps",
        ),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(assignment: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        planned(assignment)


def test_options_of_a_player_are_part_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    run = planned(models=["player:expert?confidence=over", "player:expert"], pathways=["none"])

    assert [cell.record.model_id for cell in run.cells] == ["player:expert?confidence=over", "player:expert"]
    assert [cell.stages[0].subject.model.identity()["options"] for cell in run.cells] == [
        {"confidence": "over"},
        {},
    ]


def test_a_models_own_pathways_replace_those_of_the_run() -> None:
    run = planned(models=[{"id": "player:random", "pathways": ["none"]}, "player:learner"], pathways=["history"])

    assert [(cell.record.model_id, cell.record.pathway) for cell in run.cells] == [
        ("player:random", "none"),
        ("player:learner", "history"),
    ]


def test_the_cell_tells_the_configuration_played() -> None:
    (cell,) = planned("game.snake.evaluation.size=7", pathways=["none"]).cells

    assert cell.record.evaluation_config == cell.stages[0].subject.evaluation.to_json()
    assert '"size": 7' in cell.record.evaluation_config and '"size": 8' in cell.record.exploration_config
    assert cell.record.evaluation_config_id != cell.record.exploration_config_id
    assert cell.record.temperature is None
    assert cell.record.intervention == subjects.MAIN
