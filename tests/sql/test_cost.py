from dataclasses import replace
from typing import Any

import pytest

from s3gym.records import CallFacts, Step
from tests.sql.lab import EPISODE, EXPERIENCE, JUDGMENT, SFT_ROW, STEP, TRAINING_STEP, Lab, row

Calls = list[CallFacts | None]
"""The steps of an episode; None is the turn of a scripted player."""


def call(prompt: int | None = None, completion: int | None = None, cost: float | None = None, **more: Any) -> CallFacts:
    given = {"prompt_tokens": prompt, "completion_tokens": completion, "cost_usd": cost}
    return CallFacts(**{"failed_attempts": 0, **given, **more})


def facts(one: CallFacts | None) -> dict[str, Any]:
    names = CallFacts.__dataclass_fields__
    return {name: getattr(one, name) for name in names} if one else {}


def play(lab: Lab, key: str, episodes: list[Calls], phase: str = "evaluation", checkpoint: int = 0) -> None:
    """Writes the episodes and steps of a stage."""
    place = {"stage_key": key, "phase": phase, "checkpoint": checkpoint}
    steps: list[Step] = []
    for index, calls in enumerate(episodes):
        for number, one in enumerate(calls):
            steps.append(replace(STEP, **place, episode_id=f"{key}/{index}", step_index=number, **facts(one)))
    rows = [replace(EPISODE, **place, episode_id=f"{key}/{i}", episode_index=i) for i in range(len(episodes))]
    lab.part(key, {"episodes": rows, "steps": steps})


def test_sums_means_and_shares_are_over_the_calls_that_reported_them(lab: Lab) -> None:
    lab.add()
    lab.link("evaluate", "e", 0)
    first: Calls = [
        call(100, 10, 0.5, cached_tokens=0, latency_seconds=1.0),
        call(300, 20, 1.5, cached_tokens=100, reasoning_tokens=7, latency_seconds=3.0),
    ]
    second: Calls = [call(50, 5, 0.25, failed_attempts=2, failed_cost_usd=0.125), call(None, None, 0.75)]
    play(lab, "e", [first, second])

    found = row(lab.open(), "cost")

    assert {name: found[name] for name in ("activity", "episode_count", "call_count", "unanswered_count")} == {
        "activity": "evaluation",
        "episode_count": 2,
        "call_count": 4,
        "unanswered_count": 0,
    }
    assert (found["prompt_tokens"], found["prompt_known_count"]) == (450, 3)  # 100 + 300 + 50
    assert (found["completion_tokens"], found["completion_known_count"]) == (35, 3)  # 10 + 20 + 5
    assert (found["cached_tokens"], found["cached_known_count"]) == (100, 2)
    assert (found["reasoning_tokens"], found["reasoning_known_count"]) == (7, 1)
    assert (found["cost_usd"], found["cost_known_count"]) == (3.0, 4)  # 0.5 + 1.5 + 0.25 + 0.75
    assert (found["failed_attempt_count"], found["failed_cost_usd"], found["failed_cost_known_count"]) == (2, 0.125, 1)
    assert (found["mean_latency_seconds"], found["latency_known_count"]) == (2.0, 2)  # (1 + 3) / 2
    assert found["usd_per_episode"] == 1.5  # 3 / 2, without the failed attempts
    assert found["cached_share"] == 0.25  # 100 / (100 + 300): the third call reported no cached tokens


def test_what_nobody_reported_is_null_and_never_zero(lab: Lab) -> None:
    lab.add()
    lab.link("evaluate", "e", 0)
    play(lab, "e", [[call(), call(error_kind="timeout")]])

    found = row(lab.open(), "cost")

    assert (found["call_count"], found["unanswered_count"], found["unpriced_count"]) == (2, 1, 1)
    unknown = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cost_usd", "failed_cost_usd")
    made_of_it = ("mean_latency_seconds", "usd_per_episode", "cached_share")
    assert {found[name] for name in (*unknown, *made_of_it)} == {None}
    assert {value for name, value in found.items() if name.endswith("_known_count")} == {0}


def test_one_answer_without_a_price_leaves_the_cost_of_an_episode_unknown(lab: Lab) -> None:
    lab.add()
    lab.link("evaluate", "e", 0)
    play(lab, "e", [[call(cost=1.0), call()]])

    found = row(lab.open(), "cost")

    assert (found["cost_usd"], found["cost_known_count"], found["unpriced_count"]) == (1.0, 1, 1)
    assert found["usd_per_episode"] is None


def test_a_call_that_failed_for_nothing_leaves_it_known(lab: Lab) -> None:
    lab.add()
    lab.link("evaluate", "e", 0)
    play(lab, "e", [[call(cost=1.0), call(error_kind="bad_request")]])

    assert row(lab.open(), "cost")["usd_per_episode"] == 1.0


def test_what_costs_nothing_costs_zero(lab: Lab) -> None:
    lab.add()
    lab.link("evaluate", "e", 0)
    play(lab, "e", [[call(100, 10, 0.0, cached_tokens=0)]])

    found = row(lab.open(), "cost")

    assert (found["cost_usd"], found["usd_per_episode"], found["cached_share"]) == (0.0, 0.0, 0.0)


def test_scripted_players_have_no_row(lab: Lab) -> None:
    lab.add()
    lab.link("evaluate", "e", 0)
    play(lab, "e", [[None, None]])

    warehouse = lab.open()

    assert warehouse.sql("from cost").rows() == warehouse.sql("from model_cost").rows() == []


def test_calls_are_told_apart_by_what_they_were_for(lab: Lab) -> None:
    lab.add()
    for stage, key, checkpoint in [
        ("explore", "x", 0),
        ("self_judge", "j", 0),
        ("build_experience", "b", 3),
        ("evaluate", "e", 3),
    ]:
        lab.link(stage, key, checkpoint)
    play(lab, "x", [[call(cost=1.0)], [call(cost=2.0)]], "exploration")
    play(lab, "e", [[call(cost=4.0)]], checkpoint=3)
    between = replace(EXPERIENCE, stage_key="x", checkpoint=1, **facts(call(cost=8.0)))
    last = replace(EXPERIENCE, stage_key="b", checkpoint=2, **facts(call(cost=16.0)))
    judged = [replace(JUDGMENT, stage_key="j", episode_id=f"x/{i}", **facts(call(cost=32.0))) for i in range(2)]
    lab.part("others", {"experiences": [between, last], "judgments": judged})

    rows = lab.open().sql("select activity, episode_count, call_count, cost_usd from cost order by activity").rows()

    assert rows == [
        ("evaluation", 1, 1, 4.0),
        ("exploration", 2, 2, 3.0),  # 1 + 2
        ("judgment", 2, 2, 64.0),  # 32 + 32
        ("memory", 2, 2, 24.0),  # 8 between two episodes, 16 after the last
    ]


def test_a_shared_stage_counts_in_each_cell_and_once_in_all(lab: Lab) -> None:
    for cell in ("a", "b"):
        lab.add(cell)
        lab.link("evaluate", "shared", 0, cell_id=cell)
        lab.link("evaluate", f"own {cell}", 3, cell_id=cell)
        play(lab, f"own {cell}", [[call(20, 2, 0.5)]], checkpoint=3)
    play(lab, "shared", [[call(10, 1, 1.0)], [call(10, 1, 1.0)]])

    warehouse = lab.open()

    # 2 shared calls of 1 dollar, 1 of its own of 0.5
    assert warehouse.sql("select cell_id, call_count, cost_usd from cost order by cell_id").rows() == [
        ("a", 3, 2.5),
        ("b", 3, 2.5),
    ]
    total = row(warehouse, "model_cost")
    assert (total["episode_count"], total["call_count"], total["cost_usd"]) == (4, 4, 3.0)  # 2 x 1 + 2 x 0.5
    assert (total["prompt_tokens"], total["completion_tokens"]) == (60, 6)  # 2 x 10 + 2 x 20; 2 x 1 + 2 x 2
    assert total["usd_per_episode"] == 0.75  # 3 / 4


def test_calls_in_other_games_are_told_apart_and_counted_once_in_all(lab: Lab) -> None:
    # given a stage that is one cell's own evaluation and another cell's transfer
    lab.add("snake", training="{}")
    lab.add("tetris", game="tetris")
    lab.link("evaluate", "own", 0, cell_id="snake")
    lab.link("transfer", "shared", 0, cell_id="snake")
    lab.link("transfer", "alone", 3, cell_id="snake")
    lab.link("evaluate", "shared", 0, cell_id="tetris")
    play(lab, "own", [[call(cost=1.0)]])
    play(lab, "shared", [[call(cost=2.0)]])
    play(lab, "alone", [[call(cost=4.0)]] * 5, checkpoint=3)  # 3 of them are asked for

    warehouse = lab.open()

    cells = warehouse.sql("select cell_id, activity, episode_count, cost_usd from cost order by all").rows()
    assert cells == [
        ("snake", "evaluation", 1, 1.0),
        ("snake", "transfer", 4, 14.0),  # 2 + 3 * 4
        ("tetris", "evaluation", 1, 2.0),
    ]
    total = warehouse.sql("select activity, episode_count, cost_usd from model_cost order by all").rows()
    assert total == [("evaluation", 2, 3.0), ("transfer", 3, 12.0)]


def test_better_answers_asked_for_to_train_on_cost_and_training_does_not(lab: Lab) -> None:
    lab.add(training="{}")
    asked = [
        replace(SFT_ROW, episode_id="a", step_index=0, decision="corrected", **facts(call(10, 1, 1.0))),
        replace(SFT_ROW, episode_id="a", step_index=1, decision="filtered", **facts(call(10, error_kind="timeout"))),
        replace(SFT_ROW, episode_id="b", step_index=0, decision="corrected", **facts(call(20, 2, 2.0))),
        replace(SFT_ROW, episode_id="b", step_index=1),
    ]
    lab.train(3, asked, [replace(TRAINING_STEP, seconds=60.0)])

    found = row(lab.open(), "cost")

    assert (found["activity"], found["episode_count"], found["call_count"]) == ("correction", 2, 3)
    assert (found["prompt_tokens"], found["cost_usd"], found["unanswered_count"]) == (40, 3.0, 1)
    assert (found["mean_latency_seconds"], found["usd_per_episode"]) == (None, 1.5)  # 3 / 2


def test_totals_are_one_row_a_model(lab: Lab) -> None:
    for model, cost in (("m1", 1.0), ("m2", 2.0)):
        for replicate in (0, 1):
            key = f"{model} {replicate}"
            lab.add(key, model_id=model, replicate=replicate)
            lab.link("evaluate", key, 0, cell_id=key)
            play(lab, key, [[call(cost=cost)]])

    rows = lab.open().sql("select model_id, call_count, cost_usd from model_cost order by model_id").rows()

    assert rows == [("m1", 2, 2.0), ("m2", 2, 4.0)]


def test_episodes_beyond_the_budget_belong_to_bigger_ones(lab: Lab) -> None:
    lab.add()
    lab.link("evaluate", "e", 0)  # asks for 3 episodes
    play(lab, "e", [[call(cost=1.0)]] * 5)

    warehouse = lab.open()

    assert row(warehouse, "cost")["cost_usd"] == row(warehouse, "model_cost")["cost_usd"] == 3.0


@pytest.mark.parametrize("view", ["cost", "model_cost"])
def test_nothing_measured_is_no_row(lab: Lab, view: str) -> None:
    assert lab.open().sql(f"from {view}").rows() == []
