import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from s3gym.journal import Journal
from s3gym.models import api
from s3gym.models.base import Completion, ModelError, Request, estimate_tokens
from s3gym.models.prices import given_prices
from s3gym.protocol.allowance import GRACE_SECONDS, Allowance, Spent
from s3gym.protocol.asking import ATTEMPTS, Asker, wait_seconds
from s3gym.protocol.limiter import Limiter
from s3gym.records import CallFacts
from tests.clocks import run_skipping
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
    assert replayed == answer
    assert (counters(first), counters(later)) == ((1, 0, 0), (0, 1, 0))
    asyncio.run(later.ask(request_of(seed=1)))
    assert len(loopback.requests) == 2


def test_what_may_pass_is_asked_again(loopback: Loopback, journal: Journal) -> None:
    waits = Waits()
    asker = asker_of(loopback, journal, sleep=waits)
    loopback.enqueue(failure(429, "slow down", {"Retry-After": "7"}), failure(500, "oops"))
    assert asyncio.run(asker.ask(request_of())).text == ANSWER
    assert counters(asker) == (3, 0, 2)
    assert [call.facts.error_kind for call in journal.calls(9)] == [None, "server", "rate_limit"]
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
    assert (counters(restarted), again.facts) == ((1, 1, 0), answer.facts)  # rows are the same after any restart


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
    assert (len(replayed), len(loopback.requests), asker.calls_replayed) == (2, 2, 2)  # what is known costs no call


def test_a_limit_in_dollars_cannot_be_kept_where_an_answer_has_no_price() -> None:
    allowance = Allowance(max_cost=1.0)
    with allowance.call():
        allowance.paid(CallFacts(prompt_tokens=5))

    with pytest.raises(Spent, match="an answer came whose cost nobody knows"), allowance.call():
        pass


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
        asyncio.run(asker.ask(request_of()))
    assert (counters(asker), len(loopback.requests)) == ((2, 0, 0), 2)


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
    assert journal.calls(9) == []


# --- a clock that leaps -------------------------------------------------------------------------------------


class Timed(Instant):
    """Answers, or raises, so many seconds after it is asked, as ``verdict`` says of the request and the number of its
    call, from 1."""

    model_id = "timed"
    is_free = False

    def __init__(self, verdict: Callable[[Request, int], tuple[float, Exception | None]]) -> None:
        self.verdict = verdict
        self.calls: list[tuple[int, float]] = []
        """Seed and time of each call."""

    async def complete(self, request: Request) -> Completion:
        self.calls.append((request.seed, asyncio.get_running_loop().time()))
        seconds, error = self.verdict(request, len(self.calls))
        await asyncio.sleep(seconds)
        if error is not None:
            raise error
        return Completion(text=str(request.seed), facts=CallFacts(cost_usd=0.5))


def test_a_fault_in_a_back_end_is_kept_as_a_failed_call(journal: Journal) -> None:
    model = Timed(lambda request, number: (1.0, KeyError(f"api_key={CANARY} \ud800") if request.seed else None))
    limiter = Limiter(4, name="here")
    asker = Asker(model, journal, limiter, sleep=Waits())

    with pytest.raises(ModelError) as failed:
        run_skipping(asker.ask(request_of(seed=1)))

    assert isinstance(failed.value.__cause__, KeyError)
    assert failed.value.message == "timed: KeyError in its back end: 'api_key=[redacted] \\ud800'"
    assert counters(asker) == (1, 0, 1)  # not asked again: it would end the same way
    (call,) = journal.calls(9)
    assert (call.is_answered, call.facts.error_kind) == (False, "bad_request")
    assert call.facts.error_message == failed.value.message


def test_a_fault_in_a_back_end_says_nothing_of_the_endpoint() -> None:
    async def main() -> float:
        limiter = Limiter(8, name="here")
        model = Timed(lambda request, number: (1.0, ModelError("rate_limit", "no") if number == 1 else ValueError()))
        asker = Asker(model, limiter=limiter)
        await asyncio.gather(*(asker.ask(request_of(seed=seed)) for seed in range(9)), return_exceptions=True)
        return limiter.allowed

    assert run_skipping(main()) == pytest.approx(0.7 * 8)  # as the refusal left it


def test_what_the_journal_answers_in_a_slot_is_no_answer_of_the_endpoint(journal: Journal) -> None:
    async def main() -> None:
        limiter = Limiter(8, requests_per_minute=1, name="here")
        model = Timed(lambda request, number: (1.0, ModelError("rate_limit", "no") if number == 1 else None))
        asker = Asker(model, journal, limiter)

        await asyncio.gather(*(asker.ask(request_of()) for _ in range(9)))

        assert counters(asker) == (2, 8, 1)
        assert limiter.allowed == 1 + 8 / 32  # one of the 32 answers that lead from nothing to the ceiling of 8
        # a call at 0 s and one at 60 s; at 120 s all others are let in for one request, which none of them takes
        assert asyncio.get_running_loop().time() == pytest.approx(120.0)

    run_skipping(main())


def test_only_the_time_of_being_refused_is_held_against_a_request() -> None:
    """With one call a minute a request is refused twelve times, which takes eleven minutes, and is then answered."""

    def verdict(request: Request, number: int) -> tuple[float, Exception | None]:
        if request.seed == 0:
            return 350.0, None  # meanwhile others are answered, so the endpoint is not given up
        return 0.0, ModelError("rate_limit", "no") if number <= 1 + 12 else None

    async def main() -> None:
        model = Timed(verdict)
        asker = Asker(model, limiter=Limiter(8, requests_per_minute=1, name="here"))
        await asyncio.gather(asker.ask(request_of(seed=0)), asker.ask(request_of(seed=1)))
        arrivals = [at for seed, at in model.calls if seed == 1]
        assert len(arrivals) == 13 and arrivals[11] - arrivals[0] == pytest.approx(660.0)

    run_skipping(main())


def test_a_request_that_is_refused_for_too_long_fails_while_others_are_answered() -> None:
    def verdict(request: Request, number: int) -> tuple[float, Exception | None]:
        return 1.0, ModelError("rate_limit", "no", 50.0) if request.seed == 1 else None

    async def main() -> None:
        model = Timed(verdict)
        asker = Asker(model, limiter=Limiter(8, name="here"))

        async def others() -> None:
            for seed in range(2, 1000):
                await asker.ask(request_of(seed=seed))

        going = asyncio.create_task(others())
        with pytest.raises(ModelError, match="rate_limit: no"):
            await asker.ask(request_of(seed=1))
        going.cancel()
        # first refused at 1 s, then every 50 + 1 s: the twelfth time after that is the first beyond 600 s
        assert asyncio.get_running_loop().time() == pytest.approx(1 + 12 * 51)

    run_skipping(main())


# --- a run that is stopped ----------------------------------------------------------------------------------


def test_a_run_that_is_cancelled_keeps_what_is_in_flight_and_asks_nothing_more(journal: Journal) -> None:
    told: list[str] = []

    async def main() -> None:
        allowance = Allowance(max_calls=100)
        model = Timed(lambda request, number: (5.0, None))
        asker = Asker(model, journal, Limiter(3, name="here"), allowance)

        async def episode(number: int) -> None:
            with suppress(Spent):  # as a stage ends
                for step in range(9):
                    await asker.ask(request_of(seed=10 * number + step))

        async def work() -> None:
            beside = [asyncio.create_task(episode(number)) for number in range(2)]  # whom no cancellation reaches
            await asyncio.gather(*(episode(number) for number in range(2, 5)))
            await asyncio.gather(*beside)

        run = asyncio.create_task(allowance.finishing_calls(work(), told.append))
        await asyncio.sleep(6.0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

        assert asyncio.get_running_loop().time() == 10.0  # three calls from 0 s to 5 s, three to 10 s
        assert (len(model.calls), allowance.calls, allowance.cost_usd) == (6, 6, 3.0)
        with pytest.raises(Spent, match="is being stopped"):
            await asker.ask(request_of(seed=99))

    run_skipping(main())
    assert sorted(call.seed for call in journal.calls(99) if call.is_answered) == [0, 1, 10, 20, 30, 40]
    assert len(told) == 1 and told[0].startswith("Stopping: 3 calls are in flight")


def test_a_call_that_takes_too_long_is_given_up_and_where_none_is_out_nobody_waits(journal: Journal) -> None:
    async def main() -> None:
        for seconds in (500.0, 0.0):
            allowance = Allowance()
            model = Timed(lambda request, number, seconds=seconds: (seconds, None))  # type: ignore[misc]
            asker = Asker(model, journal, allowance=allowance)

            async def work(asker: Asker = asker, seed: int = int(seconds)) -> None:
                await asker.ask(request_of(seed=seed))
                await asyncio.sleep(500.0)

            run = asyncio.create_task(allowance.finishing_calls(work()))
            await asyncio.sleep(1.0)
            run.cancel()
            began = asyncio.get_running_loop().time()
            with pytest.raises(asyncio.CancelledError):
                await run
            assert asyncio.get_running_loop().time() - began == (GRACE_SECONDS if seconds else 0.0)

    run_skipping(main())
    assert [call.seed for call in journal.calls(9)] == [0]


def test_work_that_ends_within_its_allowance_gives_its_result_or_its_error() -> None:
    async def work(is_failing: bool) -> int:
        if is_failing:
            raise ValueError("oops")
        return 7

    assert asyncio.run(Allowance().finishing_calls(work(False))) == 7
    with pytest.raises(ValueError, match="oops"):
        asyncio.run(Allowance().finishing_calls(work(True)))


def test_waits_double_up_to_a_cap_and_differ_between_calls() -> None:
    for attempt, longest in [(1, 1.0), (2, 2.0), (3, 4.0), (7, 60.0), (50, 60.0)]:  # 2 ** 6 = 64 is capped
        assert longest / 2 <= wait_seconds(attempt, None, seed=0) <= longest
    assert wait_seconds(1, None, seed=0) != wait_seconds(1, None, seed=1)
    assert wait_seconds(1, None, seed=0) == wait_seconds(1, None, seed=0)
    assert wait_seconds(1, 86_400.0, seed=0) == 300.0
    assert wait_seconds(50, 0.0, seed=0) >= 30.0
