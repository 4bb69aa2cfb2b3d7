"""What an intervention changes and what it shares, all before anything runs."""

from dataclasses import replace
from typing import Any

import pytest

from s3gym import guides, registry, subjects
from s3gym.config import ConfigError, load_config
from s3gym.games.base import EVALUATION
from s3gym.interventions import oracle_judge
from s3gym.interventions.base import kind_of
from s3gym.plan import CellPlan, RunPlan, Stage, make_plan
from s3gym.protocol.splits import phase_of
from s3gym.registry import GAMES, INTERVENTIONS, PATHWAYS, UnknownName

BASE: dict[str, Any] = {"scale": "smoke", "games": ["snake"], "models": ["player:learner"]}
SIX = [name for name in registry.names(INTERVENTIONS) if name != "main"]
TRAINED: dict[str, Any] = {
    "models": ["local:tiny"],
    "pathways": ["none", "training"],
    "games": ["trust"],
    "transfer": "off",
}


def planned(*interventions: str, **values: Any) -> RunPlan:
    return make_plan(load_config(None, {**BASE, "interventions": list(interventions), **values}))


def cells(run: RunPlan) -> dict[tuple[str, str], CellPlan]:
    return {(cell.record.pathway, cell.record.intervention): cell for cell in run.cells}


def keys(cell: CellPlan) -> dict[tuple[str, int], str]:
    return {(stage.kind, stage.checkpoint): stage.key for stage in cell.stages}


def only(cell: CellPlan, kind: str, checkpoint: int = 3) -> Stage:
    (found,) = [stage for stage in cell.stages if (stage.kind, stage.checkpoint) == (kind, checkpoint)]
    return found


def test_there_are_six_and_the_one_that_changes_nothing() -> None:
    assert SIX == [
        "expert_exploration",
        "oracle_judge",
        "placebo_memory",
        "reference_memory",
        "relaxed_evaluation",
        "shuffled_scores",
    ]


def test_cells_without_an_intervention_are_what_they_are_alone_and_come_first() -> None:
    alone, beside = planned(), planned("all")

    assert [cell.record.intervention for cell in alone.cells] == ["main"] * 3
    first = beside.cells[:3]
    assert [cell.record.cell_id for cell in first] == [cell.record.cell_id for cell in alone.cells]
    assert [keys(cell) for cell in first] == [keys(cell) for cell in alone.cells]
    assert all(cell.record.intervention != "main" for cell in beside.cells[3:])


@pytest.mark.parametrize("pathway", ["history", "memory"])
@pytest.mark.parametrize(
    ("intervention", "changed"),
    [
        ("oracle_judge", {("build_experience", 3), ("evaluate", 3)}),
        ("shuffled_scores", {("build_experience", 3), ("evaluate", 3)}),
        ("expert_exploration", {("explore", 0), ("self_judge", 0), ("build_experience", 3), ("evaluate", 3)}),
        ("reference_memory", {("build_experience", 3), ("evaluate", 3)}),
        ("placebo_memory", {("build_experience", 3), ("evaluate", 3)}),
        ("relaxed_evaluation", {("evaluate", 0), ("evaluate", 3)}),
    ],
)
def test_only_the_link_and_what_follows_from_it_is_done_anew(
    pathway: str, intervention: str, changed: set[tuple[str, int]]
) -> None:
    found = cells(planned(intervention))
    main, replaced = keys(found[pathway, "main"]), keys(found[pathway, intervention])

    assert main.keys() == replaced.keys()
    assert {link for link in main if main[link] != replaced[link]} == changed


def test_training_has_the_links_that_it_has() -> None:
    found = cells(planned("all", **TRAINED))

    assert {name for pathway, name in found if pathway == "training"} == {
        "main",
        "expert_exploration",
        "oracle_judge",
        "relaxed_evaluation",
        "shuffled_scores",
    }
    assert {name for pathway, name in found if pathway == "none"} == {"main", "relaxed_evaluation"}
    settings = {name: cell.subject.training.shuffle_scores for (_, name), cell in found.items()}
    assert [name for name, is_shuffled in settings.items() if is_shuffled] == ["shuffled_scores"]
    main = keys(found["training", "main"])
    for name in ("oracle_judge", "shuffled_scores"):
        replaced = keys(found["training", name])
        assert {link for link in main if main[link] != replaced.get(link, main[link])} == {
            ("build_experience", 3),
            ("evaluate", 3),
        }


def test_an_intervention_is_asked_of_the_game_itself() -> None:
    found = cells(planned("oracle_judge", **{**TRAINED, "transfer": "every"}))

    transfers = {name: [s for s in cell.stages if s.is_transfer] for (_, name), cell in found.items()}
    assert transfers["main"] and not transfers["oracle_judge"]


def test_relaxed_evaluation_plays_held_out_seeds_under_the_rules_of_exploration() -> None:
    found = cells(planned("relaxed_evaluation", pathways=["none", "history", "memory"]))
    subject = found["history", "relaxed_evaluation"].subject

    assert subject.evaluation == subject.exploration != found["history", "main"].subject.evaluation
    starts = {keys(found[pathway, "relaxed_evaluation"])["evaluate", 0] for pathway in ("none", "history", "memory")}
    assert len(starts) == 1 and starts != {keys(found["history", "main"])["evaluate", 0]}
    assert found["history", "relaxed_evaluation"].record.evaluation_config_id == subject.game.config_id(
        subject.exploration
    )


@pytest.mark.parametrize("name", registry.names(GAMES))
def test_relaxed_instances_are_held_out_wherever_the_game_has_enough(name: str) -> None:
    subject = cells(planned("relaxed_evaluation", games=[name]))["history", "relaxed_evaluation"].subject
    game = subject.game

    assert subject.held_out_count == cells(planned(games=[name]))["history", "main"].subject.held_out_count
    seeds = subject.splits.evaluation(game, subject.evaluation, 0, 3)
    assert all(seed >= 2**31 for seed in seeds)
    phases = {phase_of(game.instance_id(game.reset(subject.evaluation, seed))) for seed in seeds}
    assert game.is_instances_shared or phases == {EVALUATION}


def test_pathways_share_the_evaluations_with_the_reference_guide_and_models_do_not() -> None:
    run = planned("reference_memory", models=["player:learner", "player:myopic"])
    read = {
        (cell.record.model_id, cell.record.pathway): only(cell, "evaluate")
        for cell in run.cells
        if cell.record.intervention == "reference_memory"
    }

    assert {len({stage.key for stage in read.values()}), len(read)} == {2, 4}
    for model in ("player:learner", "player:myopic"):
        assert read[model, "history"].key == read[model, "memory"].key
    waits_for = only(cells(run)["history", "reference_memory"], "build_experience")
    assert (waits_for.explored, waits_for.experience) == ((), None)


def test_a_placebo_waits_for_the_experience_whose_length_it_takes() -> None:
    found = cells(planned("placebo_memory"))

    placebo = only(found["history", "placebo_memory"], "build_experience")
    assert placebo.experience is not None
    assert placebo.experience.key == keys(found["history", "main"])["build_experience", 3]


def test_one_exploration_of_the_expert_serves_all_models_and_pathways() -> None:
    run = planned("expert_exploration", models=["player:learner", {"id": "player:myopic", "explorer": "player:random"}])

    replaced = [cell for cell in run.cells if cell.record.intervention == "expert_exploration"]
    assert len(replaced) == 4 and len({keys(cell)["explore", 0] for cell in replaced}) == 1
    assert {cell.record.explorer_id for cell in replaced} == {"player:expert"}


def test_a_raised_version_and_a_changed_guide_do_their_own_stages_anew_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = cells(planned("all"))

    raised = replace(oracle_judge.INTERVENTION, version=2)
    monkeypatch.setattr(oracle_judge, "INTERVENTION", raised)
    monkeypatch.setattr(guides, "VERSION", 2)
    after = cells(planned("all"))

    changed = {name for name in before if keys(before[name]) != keys(after[name])}
    assert changed == {
        (pathway, name)
        for pathway in ("history", "memory")
        for name in ("oracle_judge", "reference_memory", "placebo_memory")
    }


def test_a_link_that_no_cell_has_is_refused_with_what_fits() -> None:
    with pytest.raises(
        ConfigError, match="'oracle_judge' fits none of the pathways none; valid: .*oracle_judge with his"
    ):
        planned("oracle_judge", pathways=["none"])
    with pytest.raises(ConfigError, match="'reference_memory' fits none of the pathways none, training"):
        planned("reference_memory", **TRAINED)
    with pytest.raises(UnknownName, match="Did you mean oracle_judge"):
        planned("oracle_judg")


def test_all_are_those_that_fit() -> None:
    assert set(cells(planned("all", pathways=["none"]))) == {("none", "main"), ("none", "relaxed_evaluation")}


@pytest.mark.parametrize("name", ["oracle_judge", "shuffled_scores", "expert_exploration"])
def test_a_memory_made_of_the_last_one_cannot_be_made_of_other_scores(name: str) -> None:
    with pytest.raises(ConfigError, match='use memory_source = "history"'):
        planned(name, memory_source="recursive")
    assert len(planned(name, memory_source="recursive", pathways=["history"]).cells) == 2  # history is made whole


def test_a_game_without_a_guide_says_which_file_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "guided_games", lambda: ("trust",))

    with pytest.raises(ConfigError, match=r"no guide for 'snake'; write s3gym/guides/snake.md, or .* --game trust"):
        planned("reference_memory")


def test_main_is_always_among_them_and_named_once() -> None:
    assert load_config(None, {"interventions": ["oracle_judge", "main"]}).interventions == ("main", "oracle_judge")
    assert load_config(None, {}).interventions == ("main",)


def test_labels_and_ids_say_which_link_is_replaced() -> None:
    cell = cells(planned("oracle_judge"))["memory", "oracle_judge"]

    assert "/memory/oracle_judge/" in cell.record.cell_id
    assert only(cell, "evaluate").label == "evaluate snake player:learner memory/oracle_judge r0 @3"
    assert only(cell, "explore", 0).label == "explore snake player:learner memory r0 @0"


def test_each_pathway_carries_one_kind() -> None:
    found = {name: kind_of(registry.load(PATHWAYS, name, "pathway")) for name in registry.names(PATHWAYS)}

    assert found == {"none": "control", "history": "text", "memory": "text", "training": "weights"}
