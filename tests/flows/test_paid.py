"""What was paid, whatever happened on the way: rows, manifests, journal and the server's own count agree."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.runtime import StageFailed
from s3gym.journal import Journal
from tests.direct import measure_directly
from tests.flows.tables import contents
from tests.flows.test_kill import plays
from tests.models.loopback import Loopback, Reply, chat, failure

FAILURES = ("failed_attempts", "failed_cost_usd")
PROMPT_PRICE, COMPLETION_PRICE = 2.0, 10.0
"""Dollars per million tokens."""


class Till:
    """Answers with tokens that depend on the prompt, refuses after so many answers, and adds up what it asks for."""

    def __init__(self, most_answers: int) -> None:
        self.most_answers = most_answers
        self.answered: list[tuple[int, int]] = []
        """Prompt and completion tokens."""

    def __call__(self, body: dict[str, Any]) -> Reply:
        if len(self.answered) >= self.most_answers:
            return failure(400, "no more")
        answer = plays(body)
        tokens = sum(len(message["content"]) for message in body["messages"]), len(answer)
        self.answered.append(tokens)
        return chat(answer, usage=dict(zip(("prompt_tokens", "completion_tokens"), tokens, strict=True)))

    @property
    def dollars(self) -> float:
        prompt, completion = map(sum, zip(*self.answered, strict=True))
        return (prompt * PROMPT_PRICE + completion * COMPLETION_PRICE) / 1e6


Measure = Callable[..., Any]


@pytest.fixture
def measure(loopback: Loopback) -> Measure:
    def measured(data: Path, till: Till, **values: Any) -> Any:
        loopback.handler = till
        model = {
            "id": "openai/loopback",
            "base_url": loopback.base_url,
            "prompt_price": PROMPT_PRICE,
            "completion_price": COMPLETION_PRICE,
        }
        return measure_directly(data, **{"scale": "smoke", "games": ["trust"], "models": [model], **values})

    return measured


def manifests(data: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((data / "manifests").iterdir())]


def without_failures(data: Path) -> dict[str, list[dict[str, Any]]]:
    """The tables, but for what says that calls had to be repeated."""
    kept = {
        table: [{name: value for name, value in row.items() if name not in FAILURES} for row in rows]
        for table, rows in contents(data).items()
    }
    return {table: sorted(rows, key=repr) for table, rows in kept.items()}


def summed(rows: list[dict[str, Any]], name: str) -> float:
    return sum(row[name] or 0 for row in rows)


def test_a_stage_that_failed_half_way_ends_with_the_sums_of_an_undisturbed_run(
    measure: Measure, loopback: Loopback, tmp_path: Path
) -> None:
    pathways = {"pathways": ["memory"]}
    whole, first, second = Till(10**6), Till(35), Till(10**6)  # the first stage has 7 x 10 calls
    measure(tmp_path / "undisturbed", whole, **pathways)
    data = tmp_path / "data"

    start = len(loopback.requests)
    with pytest.raises(StageFailed):
        measure(data, first, **pathways)
    refused = len(loopback.requests) - start - 35
    plan = measure(data, second, **pathways)

    # the rows: as if nothing had happened, but for the failures
    assert without_failures(data) == without_failures(tmp_path / "undisturbed")
    # the journal: every request that reached the server, and what they cost
    asked = len(loopback.requests) - start
    assert refused >= 1 and asked == 35 + refused + len(second.answered)
    assert len(whole.answered) == 35 + len(second.answered)
    with Journal(data / "journal.sqlite") as journal:
        calls, dollars = journal.spent({stage.key for stage in plan.stages()})
    assert calls == asked
    assert dollars == pytest.approx(first.dollars + second.dollars) == pytest.approx(whole.dollars)
    # the manifests: what the rows cost, and apart from it what was paid for them now
    told = manifests(data)
    assert summed(told, "calls_made") == len(second.answered)
    assert summed(told, "calls_replayed") == 35
    assert summed(told, "calls_failed") == 0
    assert summed(told, "failed_attempts") == refused
    assert summed(told, "paid_usd") == pytest.approx(second.dollars)
    assert summed(told, "cost_usd") == pytest.approx(whole.dollars)
    assert summed(told, "prompt_tokens") == sum(prompt for prompt, _ in whole.answered)


def test_a_stage_made_again_from_the_journal_costs_nothing_and_keeps_its_tokens(
    measure: Measure, loopback: Loopback, tmp_path: Path
) -> None:
    data, till = tmp_path / "data", Till(10**6)
    measure(data, till, pathways=["none"])
    before, rows = manifests(data), contents(data)
    for path in (data / "manifests").iterdir():
        path.unlink()

    measure(data, Till(0), pathways=["none"])

    assert contents(data) == rows
    for then, now in zip(before, manifests(data), strict=True):
        assert (then["calls_made"], then["calls_replayed"]) == (70, 0)
        assert then["paid_usd"] == pytest.approx(then["cost_usd"])
        assert (now["calls_made"], now["calls_replayed"], now["paid_usd"]) == (0, 70, 0.0)
        assert (now["prompt_tokens"], now["cost_usd"]) == (then["prompt_tokens"], then["cost_usd"])


def test_each_part_of_a_stage_says_what_it_took_itself(measure: Measure, tmp_path: Path) -> None:
    data = tmp_path / "data"
    measure(data, Till(10**6), pathways=["none"], evaluation_episodes=7)
    measure(data, Till(10**6), pathways=["none"], evaluation_episodes=14)
    next((data / "manifests").glob("*-00000-00007.json")).unlink()

    # when: one of the two evaluations lacks episodes 0 to 6 and 14 to 20, the other 14 to 20 alone
    measure(data, Till(10**6), pathways=["none"], evaluation_episodes=21)

    told = sorted((row["first_episode"], row["calls_made"], row["calls_replayed"]) for row in manifests(data))
    assert told == [(0, 0, 70), (0, 70, 0), (7, 70, 0), (7, 70, 0), (14, 70, 0), (14, 70, 0)]


def test_what_nobody_knows_is_null_and_a_refused_stage_says_that_it_failed(loopback: Loopback, tmp_path: Path) -> None:
    loopback.handler = lambda body: failure(400, "no")
    model = {"id": "openai/loopback", "base_url": loopback.base_url}

    measure_directly(tmp_path / "data", scale="smoke", games=["trust"], models=[model], pathways=["none"])

    for row in manifests(tmp_path / "data"):
        assert (row["status"], row["calls_made"], row["calls_failed"]) == ("invalid", 7, 7)
        assert (row["cost_usd"], row["paid_usd"], row["prompt_tokens"]) == (None, None, None)
