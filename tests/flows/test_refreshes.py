"""The log of refreshes, and what changed from one to the next."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.benchmark import measure
from flows.logbook import keep_verdicts
from s3gym.config import load_config
from s3gym.games.trust import GAME as TRUST
from s3gym.models.scripted import PlayerModel
from s3gym.resampling import refresh
from s3gym.warehouse import Warehouse
from tests.flows.conftest import run

REQUEST: dict[str, Any] = {
    "scale": "smoke",
    "games": ["trust", "snake"],
    "models": ["player:learner"],
    "pathways": ["none", "history"],
}
LOG = "select trigger, status, stages_made, calls_made, paid_usd from stg_refreshes order by started_at"


def test_a_new_game_version_reruns_that_game_and_the_drift_says_why(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    before = run(data, **REQUEST)
    warehouse = Warehouse(data)
    refresh(warehouse)
    assert before.refresh is not None
    keep_verdicts(data, before.refresh, warehouse)
    monkeypatch.setattr(type(TRUST), "VERSION", TRUST.VERSION + 1)

    after = run(data, **REQUEST)

    change = f"game VERSION {TRUST.VERSION - 1} -> {TRUST.VERSION}"
    # evaluations at 0 (one for both pathways) and at 3, explore, self_judge, build_experience
    assert after.refresh is not None
    assert (json.loads(after.refresh.reasons), after.refresh.stages_made) == ({change: 6}, 6)
    drift = Warehouse(data).sql("select game, status, cause, difference, outcome, previous_verdict from drift").rows()
    seen = {(game, status, cause, outcome) for game, status, cause, _, outcome, _ in drift}
    assert seen == {("snake", "unchanged", None, None), ("trust", "remeasured", change, "none_shown")}
    assert {difference for game, _, _, difference, _, _ in drift if game == "trust"} == {0.0}  # the same rules
    assert {verdict for *_, verdict in drift} == {None, "too_few_episodes", "no_improvement_shown"}


def test_every_going_through_is_logged_however_it_ends(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    request = REQUEST | {"games": ["trust"], "pathways": ["none"]}

    async def interrupted(self: PlayerModel, request: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(BaseException):  # noqa: B017, PT011 - as it reaches the process
        patch.setattr(PlayerModel, "complete", interrupted)
        run(data, **request)
    run(data, **request)
    run(data, **request)

    rows = Warehouse(data).sql(LOG).rows()
    assert rows == [
        ("manual", "stopped", 0, 0, 0.0),
        ("manual", "complete", 2, 0, 0.0),
        ("manual", "nothing_to_do", 0, 0, 0.0),
    ]
    versions = json.loads(Warehouse(data).sql("select versions from stg_refreshes limit 1").item())
    assert {"s3gym", "python", "prefect", "prompts"} <= versions.keys()


def test_calls_are_counted_and_a_price_that_nobody_knows_is_null(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "priced_agent.py").write_text(
        "def answer(messages):\n"
        "    return {'text': 'Answer: cheat, Score: 1', 'prompt_tokens': 3, 'completion_tokens': 1, 'cost_usd': 0.5}\n"
    )
    (tmp_path / "free_agent.py").write_text("def answer(messages):\n    return 'Answer: cheat, Score: 1'\n")
    monkeypatch.chdir(tmp_path)
    request = REQUEST | {"games": ["trust"], "pathways": ["none"]}

    for name in ("priced_agent", "free_agent"):
        run(tmp_path / "data", **request | {"models": [f"python:{name}:answer"]})

    calls, paid = zip(*Warehouse(tmp_path / "data").sql(LOG).select("calls_made", "paid_usd").rows(), strict=True)
    # two evaluations of seven episodes of ten steps
    assert calls == (140, 140)
    assert paid == (70.0, None)


def test_as_of_asks_hosted_models_and_agents_anew_and_no_others(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "moody_agent.py").write_text("def answer(messages):\n    return 'Answer: cheat, Score: 1'\n")
    monkeypatch.chdir(tmp_path)
    models = ["python:moody_agent:answer", "player:random"]
    request = REQUEST | {"games": ["trust"], "pathways": ["none"], "models": models}
    data = tmp_path / "data"
    run(data, **request)

    after = measure(load_config(None, request, ["as_of=2026-12-07"]), data, lambda *a: None, lambda work: None)

    assert after.refresh is not None
    assert json.loads(after.refresh.reasons) == {"model revision none -> as of 2026-12-07": 2}
    assert after.calls_made == 140
    drift = Warehouse(data).sql("select model_id, status, cause from drift order by model_id").rows()
    assert drift == [
        ("player:random", "unchanged", None),
        ("python:moody_agent:answer", "remeasured", "model_revision none -> as of 2026-12-07"),
    ]
