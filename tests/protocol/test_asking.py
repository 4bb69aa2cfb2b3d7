import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from s3gym.journal import Journal
from s3gym.models import api
from s3gym.models.base import Completion, ModelError, Request, estimate_tokens
from s3gym.models.prices import given_prices
from s3gym.protocol.allowance import Allowance, Spent
from s3gym.protocol.asking import ATTEMPTS, Asker, wait_seconds
from s3gym.protocol.limiter import Limiter
from s3gym.records import CallFacts
from tests.models.loopback import ANSWER, CANARY, Loopback, chat, failure, request_of

A_CALL_USD = (20 * 1.0 + 5 * 2.0) / 1e6
"""Of the loopback server's usual answer, 20 prompt and 5 completion tokens, at 1 and 2 dollars a million."""


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.db") as opened:
        yield opened


class Waits(list[float]):
    """Waits for nothing and notes how long it would have been."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def asker_of(loopback: Loopback, journal: Journal | None = None, **settings: Any) -> Asker:
    model = api.load("openai/gpt-4.1", loopback.base_url)
    return Asker(model, journal, **{"sleep": Waits(), **settings})


def counters(asker: Asker) -> tuple[int, int, int]:
    return asker.calls_made, asker.calls_replayed, asker.failures


def test_a_question_already_answered_is_not_asked_again(loopback: Loopback, journal: Journal) -> None:
    first, later = asker_of(loopback, journal), asker_of(loopback, journal)
    answer = asyncio.run(first.ask(request_of()))
    replayed = asyncio.run(later.ask(request_of()))
    assert (answer.is_replayed, replayed.is_replayed) == (False, True)
    assert (replayed.text, replayed.facts) == (answer.text, answer.facts)
    assert (counters(first), counters(later)) == ((1, 0, 0), (0, 1, 0))
    asyncio.run(later.ask(request_of(seed=1)))
    assert len(loopback.requests) == 2


def test_what_may_pass_is_asked_again(loopback: Loopback, journal: Journal) -> None:
    waits = Waits()
    asker = asker_of(loopback, journal, sleep=waits)
    loopback.enqueue(failure(429, "slow down", {"Retry-After": "7"}), failure(500, "oops"))
    assert asyncio.run(asker.ask(request_of())).text == ANSWER
    assert counters(asker) == (3, 0, 2)
    assert journal.attempts(journal.key(asker.model.identity(), request_of())) == 3
    assert waits[0] == 7.0  # as the server asked
    assert 1.0 <= waits[1] <= 2.0  # ours, doubled once, less up to half


def test_what_cannot_pass_is_not_asked_again(loopback: Loopback, journal: Journal) -> None:
    loopback.enqueue(failure(422, "messages: too many"))
    asker = asker_of(loopback, journal)
    with pytest.raises(ModelError, match="bad_request"):
        asyncio.run(asker.ask(request_of()))
    assert (counters(asker), len(loopback.requests)) == ((1, 0, 1), 1)


def test_retries_end_with_the_last_error_and_go_on_after_a_restart(loopback: Loopback, journal: Journal) -> None:
    loopback.enqueue(*[failure(500, f"oops {number}") for number in range(1, ATTEMPTS + 1)])
    with pytest.raises(ModelError, match=f"oops {ATTEMPTS}") as failed:
        asyncio.run(asker_of(loopback, journal).ask(request_of()))
    assert failed.value.facts.failed_attempts == ATTEMPTS - 1  # before the one that is told
    restarted = asker_of(loopback, journal)
    answer = asyncio.run(restarted.ask(request_of()))
    assert (answer.text, answer.facts.failed_attempts) == (ANSWER, ATTEMPTS)
    assert counters(restarted) == (1, 0, 0)
    again = asyncio.run(restarted.ask(request_of()))
    assert (again.is_replayed, again.facts) == (True, answer.facts)  # rows are the same after any restart


def test_what_failed_attempts_cost_is_told_with_the_answer(loopback: Loopback, journal: Journal) -> None:
    loopback.enqueue(chat(""))
    model = api.load("openai/gpt-4.1", loopback.base_url, prices=given_prices(1.0, None, 2.0))
    asker = Asker(model, journal, sleep=Waits())
    with pytest.raises(ModelError, match="empty_reply"):
        asyncio.run(asker.ask(request_of()))

    facts = asyncio.run(asker.ask(request_of())).facts

    assert facts.failed_attempts == 1
    assert facts.failed_cost_usd == pytest.approx(A_CALL_USD)


# --- limits of the run --------------------------------------------------------------------------------------


def test_no_call_is_made_beyond_the_allowed_number(loopback: Loopback, journal: Journal) -> None:
    allowance = Allowance(max_calls=3, calls=1)  # one was made before the restart
    asker = Asker(api.load("openai/gpt-4.1", loopback.base_url), journal, allowance=allowance)

    async def ask(count: int) -> list[object]:
        calls = [asker.ask(request_of(seed=seed)) for seed in range(count)]
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(ask(5))

    spent = [outcome for outcome in outcomes if isinstance(outcome, Spent)]
    assert (len(spent), len(loopback.requests), asker.calls_made) == (3, 2, 2)
    assert str(spent[0]) == "3 calls are made, max_calls = 3; all are kept, raise it to go on"
    replayed = [outcome for outcome in asyncio.run(ask(5)) if isinstance(outcome, Completion)]
    assert len(replayed) == 2 and all(outcome.is_replayed for outcome in replayed)  # what is known costs no call


def test_a_limit_in_dollars_cannot_be_kept_where_an_answer_has_no_price() -> None:
    allowance = Allowance(max_cost=1.0)
    allowance.admit()
    allowance.paid(CallFacts(prompt_tokens=5))

    with pytest.raises(Spent, match="an answer came whose cost nobody knows"):
        allowance.admit()


def test_a_limit_in_dollars_stops_before_the_next_call(loopback: Loopback) -> None:
    loopback.handler = lambda request: chat(ANSWER)
    allowance = Allowance(max_cost=2.5 * A_CALL_USD)
    model = api.load("openai/gpt-4.1", loopback.base_url, prices=given_prices(1.0, None, 2.0))
    asker = Asker(model, allowance=allowance)

    async def ask() -> None:
        for seed in range(9):
            await asker.ask(request_of(seed=seed))

    with pytest.raises(Spent, match="are spent, max_cost = 7.5e-05"):
        asyncio.run(ask())
    assert (asker.calls_made, allowance.cost_usd) == (3, pytest.approx(3 * A_CALL_USD))


def test_without_a_journal_every_question_is_a_call(loopback: Loopback) -> None:
    asker = asker_of(loopback)
    for _ in range(2):
        assert not asyncio.run(asker.ask(request_of())).is_replayed
    assert counters(asker) == (2, 0, 0)


def test_no_more_calls_fly_than_the_ceiling_allows(loopback: Loopback) -> None:
    loopback.handler = lambda body: chat(ANSWER).after(0.05)

    async def together() -> None:
        asker = asker_of(loopback, limiter=Limiter(3, name="here"))
        await asyncio.gather(*(asker.ask(request_of(seed=number)) for number in range(9)))

    asyncio.run(together())
    assert loopback.most_in_flight == 3
    assert len(loopback.requests) == 9


def test_the_key_gets_into_no_journal(loopback: Loopback, journal: Journal, tmp_path: Path) -> None:
    loopback.enqueue(failure(500, f"key {CANARY} hit a bug"), failure(401, f"Incorrect API key provided: {CANARY}"))
    with pytest.raises(ModelError, match="authentication"):
        asyncio.run(asker_of(loopback, journal).ask(request_of()))
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Incorrect API key provided" in written
    assert CANARY.encode() not in written


class Instant:
    """A scripted player's promise: free and at once."""

    model_id = "player:instant"
    revision = None
    endpoint = "player"
    is_free = True

    def identity(self) -> dict[str, Any]:
        return {}

    def count_tokens(self, text: str) -> int:
        return estimate_tokens(text)

    async def complete(self, request: Request) -> Completion:
        return Completion(text=str(request.seed))


def test_a_scripted_player_is_asked_directly_and_not_kept(journal: Journal) -> None:
    asker = Asker(Instant(), journal)
    assert asyncio.run(asker.ask(request_of(seed=3))).text == "3"
    assert counters(asker) == (0, 0, 0)
    assert journal.attempts(journal.key({}, request_of(seed=3))) == 0


def test_waits_double_up_to_a_cap_and_differ_between_calls() -> None:
    for attempt, longest in [(1, 1.0), (2, 2.0), (3, 4.0), (7, 60.0), (50, 60.0)]:  # 2 ** 6 = 64 is capped
        assert longest / 2 <= wait_seconds(attempt, None, seed=0) <= longest
    assert wait_seconds(1, None, seed=0) != wait_seconds(1, None, seed=1)
    assert wait_seconds(1, None, seed=0) == wait_seconds(1, None, seed=0)
    assert wait_seconds(1, 86_400.0, seed=0) == 300.0
    assert wait_seconds(50, 0.0, seed=0) >= 30.0
