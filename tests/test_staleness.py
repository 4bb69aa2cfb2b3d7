"""Why stages would be made again: inputs, budgets, failures and files that are gone."""

import json
from pathlib import Path
from typing import Any

import pytest

from s3gym import plan as planning
from s3gym import storage
from s3gym.config import load_config
from s3gym.games.trust import GAME as TRUST
from s3gym.plan import RunPlan, make_plan
from s3gym.protocol.prompts import PROMPT_VERSION
from s3gym.staleness import FAILED, LOST, NEW, UNRECORDED, counted, explain
from tests.direct import measure_directly

REQUEST: dict[str, Any] = {
    "scale": "smoke",
    "games": ["trust", "snake"],
    "models": ["player:learner"],
    "pathways": ["none", "history"],
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of ``REQUEST``; read only."""
    data = tmp_path_factory.mktemp("staleness") / "data"
    measure_directly(data, **REQUEST)
    return data


def asked(*assignments: str, **changes: Any) -> RunPlan:
    return make_plan(load_config(None, REQUEST | changes, assignments))


def test_what_is_complete_has_no_reason(measured: Path) -> None:
    assert explain(measured, asked()) == []


def test_a_game_version_is_the_reason_of_exactly_that_games_stages(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(TRUST), "VERSION", TRUST.VERSION + 1)

    reasons = explain(measured, asked())

    # evaluations at 0 (one for both pathways) and 3 (each), explore, self_judge, build_experience
    assert [reason.stage.subject.game.id for reason in reasons] == ["trust"] * 6
    assert counted(reasons) == {f"game VERSION {TRUST.VERSION - 1} -> {TRUST.VERSION}": 6}


def test_a_prompt_version_is_the_reason_of_all(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "PROMPT_VERSION", PROMPT_VERSION + 1)

    told = counted(explain(measured, asked()))

    assert told == {f"prompt version {PROMPT_VERSION} -> {PROMPT_VERSION + 1}": 12}


def test_a_field_of_an_exploration_reaches_the_evaluation_that_rests_on_it(measured: Path) -> None:
    reasons = explain(measured, asked("game.snake.exploration.apple_count=2"))

    assert {reason.stage.subject.game.id for reason in reasons} == {"snake"}
    # the evaluation reads the history: its own configuration is what it was
    assert [reason.stage.kind for reason in reasons] == ["explore", "self_judge", "build_experience", "evaluate"]
    assert counted(reasons) == {"exploration configuration: apple_count 3 -> 2": 4}


def test_budgets_say_how_far_it_has_come(measured: Path) -> None:
    reasons = explain(measured, asked("exploration_episodes=6", "evaluation_episodes=3", games=["snake"]))

    # evaluations at 0 and 3 (two pathways) lack an episode; those at 6 (two) and three new links of the chain are new
    assert counted(reasons) == {"exploration_episodes 3 -> 6": 5, "evaluation_episodes 2 -> 3": 3}


def test_a_new_model_was_never_measured(measured: Path) -> None:
    reasons = explain(measured, asked(models=["player:learner", "player:random"], games=["snake"]))

    assert {reason.stage.model.model_id for reason in reasons} == {"player:random"}
    assert counted(reasons) == {NEW: 6}


def test_of_several_that_stood_there_the_nearest_and_then_the_latest_counts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    request = REQUEST | {"games": ["snake"], "pathways": ["none"]}
    for apples in (2, 3):
        measure_directly(data, f"game.snake.evaluation.apple_count={apples}", **request)
    measure_directly(data, "game.snake.evaluation.apple_count=4", "seed=7", **request)  # further away, and later

    reasons = explain(data, asked("game.snake.evaluation.apple_count=5", games=["snake"], pathways=["none"]))

    assert counted(reasons) == {"evaluation configuration: apple_count 3 -> 5": 2}


def test_a_failure_lost_files_and_old_manifests_say_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    request = REQUEST | {"games": ["snake"], "pathways": ["none"]}
    plan = measure_directly(data, **request)
    first, second = plan.stages()
    change_manifest(data, first.part(0, 2), status="invalid", first_error="timeout: no answer in 1 s")
    next((data / "tables" / "steps" / "snake").glob(f"{second.stem}*")).unlink()

    told = [str(change) for reason in explain(data, plan) for change in reason.changes]

    assert told == [f"{FAILED} (timeout: no answer in 1 s)", LOST]
    for stage in (first, second):
        change_manifest(data, stage.part(0, 2), facts=None)
    assert counted(explain(data, asked("temperature=0.5", games=["snake"], pathways=["none"]))) == {UNRECORDED: 2}


def change_manifest(data: Path, part: str, **changes: Any) -> None:
    path = storage.manifest_path(data, part)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
