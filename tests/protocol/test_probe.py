"""What is said of a model follows from what it did; each case is one thing that a model may do."""

import asyncio
import itertools
from typing import Any

import pytest

from s3gym.games.trust import GAME
from s3gym.models._cards import Card
from s3gym.models.base import Decoding, ModelError, Request
from s3gym.models.prices import FREE, Prices
from s3gym.protocol.probe import MOST_CALLS, TEMPERATURE, USUAL_CALLS, Finding, Trial, findings, try_out
from s3gym.records import CallFacts, Step
from tests.clocks import run_skipping
from tests.programmed import Answer, Programmed

SAID = "Answer: cheat, Score: 1"
LISTED = Prices(prompt_usd=2e-6, cached_usd=0.5e-6, completion_usd=8e-6, written_usd=2e-6)


def step(reply: str | None = SAID, **changes: Any) -> Step:
    """An answer as asked."""
    usual: dict[str, Any] = {
        "stage_key": "check",
        "game": "trust",
        "phase": "evaluation",
        "checkpoint": 0,
        "episode_id": "e",
        "step_index": 0,
        "observation": "Round 1 of 2.",
        "reply": reply,
        "action_status": "ok",
        "self_score": 1.0,
        "is_terminated": False,
        "is_truncated": False,
        "history_tokens_dropped": 0,
    }
    return Step(**{**usual, **changes})


def failed(kind: str, message: str = "no luck") -> Step:
    return step(None, action_status=None, self_score=None, error_kind=kind, error_message=message)


def found(trial: Trial, card: Card | None = None, **given: Any) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings(card or Card(), trial, **given)}


def verdicts(of: dict[str, Finding]) -> dict[str, str]:
    return {name: finding.verdict for name, finding in of.items()}


def failures(of: dict[str, Finding]) -> list[str]:
    return [name for name, finding in of.items() if finding.is_failure]


def tried(*answers: Answer, facts: CallFacts | None = None) -> tuple[Trial, list[Request]]:
    model = Programmed(*answers, facts=facts)
    return asyncio.run(try_out(model, GAME, Decoding())), model.requests


# --- what is asked ------------------------------------------------------------------------------------------


def test_an_episode_is_played_three_times_and_begun_with_a_temperature() -> None:
    trial, requests = tried(SAID)

    first, second, again_first, again_second, other_first, other_second, warm = requests
    assert len(requests) == USUAL_CALLS == 7
    assert (first, second) == (again_first, again_second)
    assert first.messages == other_first.messages
    assert len({first.seed, second.seed, other_first.seed, other_second.seed}) == 4
    assert [request.decoding.temperature for request in requests] == [None] * 6 + [TEMPERATURE]
    assert [len(steps) for steps in (trial.first, trial.again, trial.reseeded, trial.warmed)] == [2, 2, 2, 1]


def test_a_model_that_fails_at_once_is_asked_no_more() -> None:
    trial, requests = tried(SAID, ModelError("not_found", "no such model"))

    assert len(requests) == 2
    assert (len(trial.first), trial.again, trial.reseeded, trial.warmed) == (2, (), (), ())


def test_no_trial_takes_more_calls_than_are_announced() -> None:
    answers: list[Answer] = [ModelError("server", "oops"), SAID] * MOST_CALLS
    model = Programmed(*answers)
    model.is_free = False

    trial = run_skipping(try_out(model, GAME, Decoding()))

    assert len(model.requests) == MOST_CALLS == 14  # each of seven fails once
    assert len(trial.answered) == USUAL_CALLS


# --- what is said -------------------------------------------------------------------------------------------


def test_a_model_that_does_all_of_it_is_fine() -> None:
    card = Card(prices=LISTED, context_tokens=128_000)
    facts = CallFacts(
        prompt_tokens=100, cached_tokens=64, completion_tokens=5, reasoning_tokens=3, cost_usd=1e-3, latency_seconds=0.5
    )
    trial, _ = tried(lambda request: f"{request.seed} it is.\n{SAID}", facts=facts)

    of = found(trial, card)

    assert verdicts(of) == {
        "key and set-up": "yes",
        "reachable": "yes",
        "answer contract": "yes",
        "tokens reported": "yes",
        "price known": "yes",
        "context size known": "yes",
        "seed honoured": "yes",
        "temperature accepted": "yes",
        "reasoning apart": "no",  # it has none
        "latency": "0.50 s",
    }
    assert failures(of) == []
    # seven calls: 700 prompt tokens, 448 from a cache, 35 to complete, 0.7 cents
    assert of["tokens reported"].told == "700 prompt (448 cached), 35 completion, in 7 of 7 answers"
    assert of["price known"].told == (
        "$2 prompt, $0.5 cached, $8 completion a million tokens, by litellm's list; this check cost $0.007"
    )
    assert of["context size known"].told == "128,000 tokens"
    assert of["reasoning apart"].told == "none was returned, 21 tokens reported"


def test_what_nobody_says_is_unknown() -> None:
    of = found(Trial(first=[step()], again=[step()], reseeded=[step()], warmed=[step()]))

    assert [of[name].verdict for name in ("price known", "context size known", "latency")] == ["unknown"] * 3
    assert of["tokens reported"].verdict == "no"
    assert failures(of) == []


def test_what_lacks_before_anything_is_asked_is_a_failure() -> None:
    of = found(Trial(), Card(missing_keys=("MY_KEY",)), lacking="set the environment variable MY_KEY")

    assert failures(of) == ["key and set-up"]
    assert of["key and set-up"].told == "set the environment variable MY_KEY"
    assert (of["reachable"].verdict, of["answer contract"].told) == ("unknown", "not tried")


@pytest.mark.parametrize(
    ("error", "card", "failing", "told"),
    [
        (failed("connection"), Card(), "reachable", "connection: no luck"),
        (failed("timeout"), Card(), "reachable", "timeout: no luck"),
        (failed("authentication", "bad key"), Card(), "key and set-up", "bad key"),
        (
            failed("authentication"),
            Card(missing_keys=("A", "B")),
            "key and set-up",
            "set the environment variable A or B",
        ),
        (failed("not_found"), Card(), "answer contract", "no answer came: not_found: no luck"),
        (failed("truncated"), Card(), "answer contract", "no answer came: truncated: no luck"),
    ],
)
def test_a_failed_call_is_put_down_to_one_thing(error: Step, card: Card, failing: str, told: str) -> None:
    of = found(Trial(first=[step(), error]), card)

    assert failures(of) == [failing]
    assert of[failing].told == told
    assert [of[name].verdict for name in ("seed honoured", "temperature accepted")] == ["unknown"] * 2


def test_a_key_that_is_not_there_is_no_fault_where_calls_are_answered() -> None:
    assert found(Trial(first=[step()]), Card(missing_keys=("OLLAMA_API_BASE",)))["key and set-up"].verdict == "yes"


@pytest.mark.parametrize(
    ("steps", "verdict", "told"),
    [
        ([step(), step()], "yes", "2 of 2 answers are usable"),
        (
            [step(), step("**Answer**: cheat", action_status="repaired")],
            "yes",
            "2 of 2 answers are usable; 1 of them only after repair, such as '**Answer**: cheat'",
        ),
        (
            [step(), step("I\n  refuse", action_status="unparsable", self_score=None)],
            "partly",
            "1 of 2 answers are usable; unparsable: 'I refuse'",
        ),
        ([step("x", action_status="illegal")], "no", "0 of 1 answers are usable; illegal: 'x'"),
        (
            [step(self_score=None)],
            "partly",
            "1 of 1 answers are usable; 1 without a self-score, without which judging is not measured",
        ),
        (
            [step("\x1b[31m" + "y" * 200, action_status="unparsable")],
            "no",
            f"0 of 1 answers are usable; unparsable: '...{'y' * 160}'",
        ),
    ],
)
def test_the_answer_contract_is_told_with_the_reply_that_broke_it(steps: list[Step], verdict: str, told: str) -> None:
    contract = found(Trial(first=steps))["answer contract"]

    assert (contract.verdict, contract.told) == (verdict, told)
    assert contract.is_failure == (verdict == "no")


numbers = itertools.count()


@pytest.mark.parametrize(
    ("answer", "verdict", "told"),
    [
        (lambda request: f"{request.seed}\n{SAID}", "yes", "2 answers came again word by word"),
        (lambda request: f"{next(numbers)}\n{SAID}", "no", "the same seed gave another answer"),
        (lambda request: SAID, "unknown", "the same answers, whatever the seed"),
    ],
)
def test_a_seed_is_honoured_where_it_alone_changes_the_answer(answer: Answer, verdict: str, told: str) -> None:
    seed = found(tried(answer)[0])["seed honoured"]

    assert seed.verdict == verdict
    assert told in seed.told


def test_thinking_that_changes_tells_of_the_seed_as_well() -> None:
    trial = Trial(first=[step(reasoning="a")], again=[step(reasoning="b")], reseeded=[step()])

    assert found(trial)["seed honoured"].verdict == "no"


def test_a_seed_is_not_judged_by_failed_calls() -> None:
    seed = found(Trial(first=[step()], again=[step()], reseeded=[failed("server")]))["seed honoured"]

    assert (seed.verdict, seed.told) == ("unknown", "a call failed: server: no luck")


def test_a_temperature_that_fails_the_call_is_not_accepted() -> None:
    temperature = found(Trial(first=[step()], again=[step()], warmed=[failed("bad_request")]))["temperature accepted"]

    assert (temperature.verdict, temperature.told) == ("no", "bad_request: no luck")


def test_what_was_not_sent_is_not_taken() -> None:
    dropped = step(dropped_parameters="seed, temperature")

    of = found(Trial(first=[dropped], again=[dropped], reseeded=[dropped], warmed=[dropped]))

    assert of["seed honoured"][1:3] == ("no", "it takes none; what it draws by chance differs between runs")
    assert of["temperature accepted"][1:3] == ("no", "it uses its own; leave temperature out")


def test_thinking_is_counted() -> None:
    trial = Trial(first=[step(reasoning="hmm", reasoning_tokens=7), step()])

    assert found(trial)["reasoning apart"][1:3] == ("yes", "in 1 of 2 answers, 3 characters, 7 tokens reported")


def test_tokens_that_some_answers_lack_are_told() -> None:
    trial = Trial(first=[step(prompt_tokens=9, completion_tokens=2), step(prompt_tokens=9)])

    assert found(trial)["tokens reported"][1:3] == (
        "partly",
        "9 prompt (unknown cached), 2 completion, in 1 of 2 answers",
    )


def test_a_cost_that_comes_with_the_answers_needs_no_list() -> None:
    price = found(Trial(first=[step(cost_usd=0.25), step(cost_usd=0.25)]))["price known"]

    assert (price.verdict, price.told) == ("yes", "told with the answers; this check cost $0.5")


def test_a_scripted_player_is_free_and_has_neither_tokens_nor_temperature() -> None:
    of = found(tried(SAID)[0], Card(prices=FREE), is_free=True)

    assert of["price known"].told == "free"
    assert of["tokens reported"].told == of["temperature accepted"].told == "a scripted player has none"


def test_the_latency_is_the_median_of_all_answers() -> None:
    trial = Trial(first=[step(latency_seconds=0.1), step(latency_seconds=9.0)], again=[step(latency_seconds=0.3)])

    assert found(trial)["latency"][1:3] == ("0.30 s", "median of 3, at most 9.00 s")
