"""The whole chain at smoke scale, in Prefect."""

import importlib.util
import json
from pathlib import Path

import pytest

from flows.benchmark import BODIES, Todo, measure, todo
from flows.caching import results_folder
from s3gym import storage
from s3gym.config import TRAINING_PACKAGES, load_config
from s3gym.games.trust import GAME as TRUST
from s3gym.models.base import ModelError
from s3gym.models.scripted import PlayerModel
from s3gym.plan import make_plan, missing
from s3gym.warehouse import Warehouse
from tests.flows.conftest import run
from tests.flows.tables import contents


def test_the_default_request_is_four_players_on_three_pathways_and_a_model_that_is_trained(smoke: Path) -> None:
    cells = Warehouse(smoke).sql("select distinct model_id, pathway from int_selected_cells order by all").rows()

    controls = [("player:expert", "none"), ("player:random", "none")]
    is_trained = all(importlib.util.find_spec(name) for name in TRAINING_PACKAGES)
    assert sorted(cells) == sorted(
        [
            *controls,
            *[("local:tiny", way) for way in ("none", "training") if is_trained],
            *[(f"player:{name}", way) for name in ("learner", "myopic") for way in ("history", "memory", "none")],
        ]
    )


def test_all_sql_checks_are_empty_on_a_real_run(smoke: Path) -> None:
    assert {name: rows for name, rows in Warehouse(smoke, "all").checks().items() if rows} == {}


def test_the_same_request_again_does_nothing_and_starts_no_server(smoke: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_call(*args: object) -> None:
        raise AssertionError("called")

    monkeypatch.setattr(PlayerModel, "complete", no_call)
    monkeypatch.setattr("flows.server.orchestration_server", no_call)

    outcome = run(smoke, scale="smoke")

    assert (outcome.task_count, outcome.failures) == (0, [])


def test_two_cold_runs_give_identical_tables(prefect_api: str, smoke: Path, tmp_path: Path) -> None:
    run(tmp_path / "data", scale="smoke")

    assert contents(tmp_path / "data") == contents(smoke)


def test_results_are_the_manifests_as_json_in_the_data_folder(smoke: Path) -> None:
    results = list(results_folder(smoke).iterdir())
    manifests = {path.stem for path in (smoke / "manifests").iterdir()}

    told = [manifest["part"] for path in results for manifest in json.loads(json.loads(path.read_text())["result"])]

    assert sorted(told) == sorted(manifests)
    assert not list(smoke.rglob("*.pkl"))


def test_a_stage_whose_files_are_gone_is_made_again_and_nothing_else(prefect_api: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    run(data, scale="smoke", games=["trust"], models=["player:learner"], pathways=["history"])
    before = contents(data)
    victim = next((data / "tables" / "steps" / "trust").glob("explore-*"))
    victim.unlink()  # Prefect still holds a result for it

    outcome = run(data, scale="smoke", games=["trust"], models=["player:learner"], pathways=["history"])

    assert outcome.task_count == 1
    assert contents(data) == before


def test_raising_budgets_plays_only_what_is_new(prefect_api: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    request = {
        "scale": "smoke",
        "games": ["snake"],
        "models": ["player:learner"],
        "pathways": ["none", "history"],
    }
    run(data, **request)
    before = {path: path.stat().st_mtime_ns for path in (data / "tables").rglob("*/snake/*.parquet")}

    played: list[str] = []
    config = load_config(None, request, ["exploration_episodes=6", "evaluation_episodes=3"])
    outcome = measure(config, data, lambda kind, number: played.extend([kind] * number), lambda work: None)

    assert outcome.failures == []
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    # evaluate(0) is shared: one episode more at 0, 3 and 3 (two pathways), three at 6 for both, three explored
    assert played.count("episode") == 1 + 2 * 1 + 2 * 3 + 3
    fresh = tmp_path / "fresh"
    run(fresh, "exploration_episodes=6", "evaluation_episodes=3", **request)
    query = "select * exclude (cell_id) from improvement order by pathway"
    assert Warehouse(data).sql(query).equals(Warehouse(fresh).sql(query))


def test_a_new_game_version_reruns_the_cells_of_that_game_only(smoke: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(TRUST), "VERSION", TRUST.VERSION + 1)

    stale = todo(make_plan(load_config(None, {"scale": "smoke"})), smoke)

    others = [piece for piece in stale if piece.cell.record.game != "trust"]
    assert len(stale) > len(others)
    # what was learnt elsewhere was tried in it too
    assert {stage.subject.game.id for piece in others for stage in piece.stages} <= {"trust"}


def test_what_an_explorer_played_serves_all_pathways_and_each_waits_for_it(prefect_api: str, tmp_path: Path) -> None:
    learner = {"id": "player:learner", "explorer": "player:random?confidence=honest"}
    request = {"scale": "smoke", "games": ["snake", "trust"], "models": [learner], "pathways": ["history", "memory"]}

    outcome = run(tmp_path / "data", **request)

    assert outcome.failures == []
    explored = "select count(distinct stage_key), count(distinct cell_id) from stg_cell_stages where stage = 'explore'"
    assert Warehouse(tmp_path / "data").sql(explored).row(0) == (2, 4)  # one a game, for both its cells


def test_a_failing_cell_harms_no_other_and_goes_on_next_time(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    request = {"scale": "smoke", "games": ["trust"], "models": ["player:learner", "player:myopic"]}
    complete = PlayerModel.complete

    async def failing(self: PlayerModel, request: object) -> object:
        if self.player == "myopic" and request.purpose == "remember":  # type: ignore[attr-defined]
            raise ModelError("server", "out of order")
        return await complete(self, request)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(PlayerModel, "complete", failing)
        outcome = run(data, **request)

    assert len(outcome.failures) == 1
    assert "player:myopic" in outcome.failures[0] and "out of order" in outcome.failures[0]
    left = todo(outcome.plan, data)
    assert [(piece.cell.record.model_id, piece.cell.record.pathway) for piece in left] == [("player:myopic", "memory")]
    rows = Warehouse(data).sql("select error_kind, text from stg_experiences where error_kind is not null").rows()
    assert rows == [("server", None)]

    assert run(data, **request).failures == []
    run(tmp_path / "fresh", **request)
    assert contents(data) == contents(tmp_path / "fresh")


def test_a_failed_call_makes_its_evaluation_invalid_never_a_score(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    request = {"scale": "smoke", "games": ["snake"], "models": ["player:expert"], "pathways": ["none"]}
    complete, asked = PlayerModel.complete, []

    async def third_fails(self: PlayerModel, request: object) -> object:
        asked.append(request)
        if len(asked) == 3:
            raise ModelError("timeout", "no answer in 1 s")
        return await complete(self, request)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(PlayerModel, "complete", third_fails)
        outcome = run(data, **request)

    assert len(outcome.failures) == 1 and "invalid" in outcome.failures[0]
    warehouse = Warehouse(data)
    invalid = warehouse.sql("select final_score, end_reason from stg_episodes where status = 'invalid'").rows()
    assert invalid == [(None, "timeout")]
    curve = warehouse.sql("select checkpoint, score, is_valid from improvement_curve order by checkpoint").rows()
    assert [(checkpoint, is_valid) for checkpoint, _, is_valid in curve] == [(0, False), (3, True)]
    assert curve[0][1] is None and curve[1][1] > 0

    assert run(data, **request).failures == []
    assert Warehouse(data).sql("select count(*) from stg_episodes where status = 'invalid'").item() == 0


@pytest.mark.parametrize("kind", sorted(BODIES))
def test_every_stage_kind_ran_and_is_complete(smoke: Path, kind: str) -> None:
    stages = [s for s in make_plan(load_config(None, {"scale": "smoke"})).stages() if s.kind == kind]

    assert stages and not any(missing(smoke, stage) for stage in stages)


def test_a_second_writer_is_told_who_holds_the_folder(smoke: Path) -> None:
    with storage.exclusive(smoke), pytest.raises(storage.StorageError, match=r"another run \(process \d+\)"):
        run(smoke, scale="smoke")


def test_events_count_what_was_played(prefect_api: str, tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    def on_event(kind: str, number: int) -> None:
        seen[kind] = seen.get(kind, 0) + number

    config = load_config(
        None, {"scale": "smoke", "games": ["trust"], "models": ["player:random"], "pathways": ["none"]}
    )
    announced: list[int] = []

    def on_start(work: list[Todo]) -> None:
        announced.extend(piece.episode_count for piece in work)

    measure(config, tmp_path / "data", on_event, on_start)

    assert announced == [14]
    assert seen == {"episode": 14, "step": 140, "cell": 1}
