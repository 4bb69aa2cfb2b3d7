"""The limiter on a clock that leaps: minutes of trouble in milliseconds.

``python -m tests.protocol.test_limiter`` prints what a minute of 429s does to throughput.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from s3gym.models import api
from s3gym.models.base import TRANSIENT, ModelError
from s3gym.protocol.asking import wait_seconds
from s3gym.protocol.limiter import EndpointDown, Limiter
from s3gym.records import CallFacts
from tests.clocks import SkippingLoop, run_hurried, run_skipping
from tests.models.loopback import ANSWER, Loopback, Reply, failure, request_of

HURRY = 40.0
"""Seconds of the limiter in one of ours, where a real server is asked."""
Verdict = Callable[[float, int], ModelError | None]
"""Time of arrival and number of the call, from 1, to its failure; None for an answer."""


def now() -> float:
    return asyncio.get_running_loop().time()


class Endpoint:
    """Takes ``latency`` seconds for an answer, as long or ``failing`` seconds for a failure, and notes the times."""

    def __init__(
        self, verdict: Verdict = lambda at, number: None, latency: float = 1.0, failing: float | None = None
    ) -> None:
        self.verdict, self.latency = verdict, latency
        self.failing = latency if failing is None else failing
        self.arrivals: list[float] = []
        self.answers: list[float] = []
        self.in_flight = self.most_in_flight = 0

    async def call(self) -> None:
        self.arrivals.append(now())
        error = self.verdict(now(), len(self.arrivals))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency if error is None else self.failing)
        finally:
            self.in_flight -= 1
        if error is not None:
            raise error
        self.answers.append(now())


def limiter_of(ceiling: int = 64, *limits: int | None, **settings: Any) -> Limiter:
    return Limiter(ceiling, *limits, **{"name": "http://localhost:8000/v1", **settings})


async def once(limiter: Limiter, endpoint: Endpoint, model_id: str = "m", tokens: int = 0) -> None:
    """One call, not repeated."""
    async with limiter.slot(model_id, tokens):
        await endpoint.call()


async def ask(limiter: Limiter, endpoint: Endpoint, seed: int = 0, attempts: int = 4) -> None:
    """One request as an asker makes it: a refusal for the rate, or of a probe, is no attempt."""
    attempt = 1
    while True:
        slot = limiter.slot("m")
        try:
            async with slot:
                return await endpoint.call()
        except EndpointDown:
            raise
        except ModelError as error:
            if error.kind not in TRANSIENT:
                raise
            if error.kind == "rate_limit" or slot.is_probe:
                continue
            if attempt == attempts:
                raise
            await asyncio.sleep(wait_seconds(attempt, None, seed))
            attempt += 1


async def keep_asking(limiter: Limiter, endpoint: Endpoint, seconds: float, attempts: int = 4) -> None:
    """96 episodes, each asking again as soon as it is answered, for so long; none may fail."""

    async def episode(number: int) -> None:
        while True:
            await ask(limiter, endpoint, number, attempts)

    episodes = [asyncio.create_task(episode(number)) for number in range(96)]
    done, going = await asyncio.wait(episodes, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in going:
        task.cancel()
    await asyncio.wait(episodes)
    for task in done:
        task.result()


async def settle(*calls: Awaitable[None]) -> list[BaseException | None]:
    return await asyncio.gather(*calls, return_exceptions=True)


def rate_limit(retry_after: float | None = None) -> ModelError:
    return ModelError("rate_limit", "slow down", retry_after)


def between(first: float, last: float, error: ModelError) -> Verdict:
    return lambda at, number: error if first <= at < last else None


def count(times: list[float], first: float, last: float) -> int:
    return sum(first <= at < last for at in times)


# -- calls in flight, order, cancellation


def test_no_more_calls_fly_than_the_ceiling_and_they_go_in_order() -> None:
    order: list[int] = []

    async def main() -> Endpoint:
        limiter, endpoint = limiter_of(3), Endpoint()

        async def numbered(number: int) -> None:
            async with limiter.slot("m"):
                order.append(number)
                await endpoint.call()

        await asyncio.gather(*(numbered(number) for number in range(10)))
        assert now() == pytest.approx(4.0)  # 10 calls, 3 at a time, 1 s each
        return endpoint

    assert run_skipping(main()).most_in_flight == 3
    assert order == list(range(10))


def test_whoever_leaves_the_queue_keeps_nobody_waiting() -> None:
    async def main() -> float:
        limiter, endpoint = limiter_of(1), Endpoint(latency=10.0)
        tasks = [asyncio.create_task(once(limiter, endpoint)) for _ in range(4)]
        await asyncio.sleep(1.0)
        tasks[1].cancel()  # waits
        await asyncio.sleep(1.0)
        tasks[0].cancel()  # in flight, at 2 s
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [True, True, False, False]
        assert limiter.in_flight == 0
        return now()

    assert run_skipping(main()) == pytest.approx(22.0)


def test_a_place_given_to_one_who_is_cancelled_at_that_moment_goes_to_the_next() -> None:
    async def main() -> None:
        limiter, endpoint = limiter_of(1, 40), Endpoint()  # a budget of two at once, one every 1.5 s
        async with limiter.slot("m"):
            given, next_ = (asyncio.create_task(once(limiter, endpoint)) for _ in range(2))
            await asyncio.sleep(0.0)
        assert limiter.in_flight == 1  # the place has been given to the second, which has not run since
        given.cancel()
        await asyncio.wait([given, next_])
        assert (limiter.in_flight, endpoint.arrivals, given.cancelled()) == (0, [0.0], True)

    run_skipping(main())


def test_who_is_refused_keeps_the_place_in_line() -> None:
    order: list[int] = []

    async def main() -> None:
        limiter, endpoint = limiter_of(1), Endpoint()

        async def numbered(number: int, refusals: int) -> None:
            slot = limiter.slot("m")
            for left in reversed(range(refusals + 1)):
                with suppress(ModelError):
                    async with slot:
                        order.append(number)
                        endpoint.verdict = between(0.0, 99.0, rate_limit()) if left else lambda at, number: None
                        await endpoint.call()

        await asyncio.gather(numbered(0, 2), numbered(1, 0), numbered(2, 1), numbered(3, 0))

    run_skipping(main())
    assert order == [0, 0, 0, 1, 2, 2, 3]


def test_a_call_that_failed_goes_to_the_end_of_the_line() -> None:
    order: list[int] = []

    async def main() -> None:
        limiter, endpoint = limiter_of(1), Endpoint()

        async def numbered(number: int, error: ModelError | None) -> None:
            slot = limiter.slot("m")
            with suppress(ModelError):
                async with slot:
                    order.append(number)
                    endpoint.verdict = lambda at, number: error
                    await endpoint.call()
                return
            async with slot:
                order.append(number)

        await asyncio.gather(numbered(0, ModelError("server", "oops")), numbered(1, None), numbered(2, None))

    run_skipping(main())
    assert order == [0, 1, 2, 0]  # one bad request is not all that an endpoint in trouble is tried with


# -- minute budgets


@pytest.mark.parametrize("limit", [1, 7, 60, 600])
def test_no_minute_sees_more_requests_than_the_budget_and_most_of_it_is_used(limit: int) -> None:
    async def main() -> list[float]:
        limiter, endpoint = limiter_of(64, limit), Endpoint()
        await asyncio.gather(*(once(limiter, endpoint) for _ in range(5 * limit)))
        return endpoint.arrivals

    arrivals = run_skipping(main())
    minutes = [count(arrivals, at, at + 60 - 1e-3) for at in arrivals]
    assert max(minutes) <= limit
    assert arrivals[-1] <= 5 * 60 / 0.95  # 5 minutes' worth


def test_tokens_are_budgeted_by_estimate_and_corrected_by_use() -> None:
    async def main() -> tuple[int, int]:
        calls = []
        for used in (1_000, 100):
            limiter, endpoint = limiter_of(64, None, 60_000), Endpoint()

            async def spend(limiter: Limiter = limiter, endpoint: Endpoint = endpoint, used: int = used) -> None:
                async with limiter.slot("m", 1_000) as slot:
                    await endpoint.call()
                    slot.tokens_used = used

            start = now()
            tasks = [asyncio.create_task(spend()) for _ in range(2_000)]
            await asyncio.sleep(120.0)
            calls.append(count(endpoint.arrivals, start, start + 120))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return calls[0], calls[1]

    as_estimated, cheaper = run_skipping(main())
    # the bucket holds 60,000 / 20 = 3,000 and gets 57,001 a minute: 3,000 + 2 * 57,001 = 117,002 in 2 minutes
    assert as_estimated == 117
    assert cheaper > 5 * as_estimated


def test_a_call_larger_than_the_budget_is_made_and_paid_off() -> None:
    async def main() -> list[float]:
        limiter, endpoint = limiter_of(64, None, 6_000), Endpoint()
        await asyncio.gather(*(once(limiter, endpoint, tokens=12_000) for _ in range(3)))
        return endpoint.arrivals

    # 300 held, 5,701 a minute: 12,000 - 300 is owed, and 300 must be there again, after 12,000 / 5,701 minutes
    assert run_skipping(main()) == pytest.approx([0.0, 126.29, 252.59], abs=0.01)


# -- pauses


@pytest.mark.parametrize(("asked", "paused"), [(7.0, 7.0), (86_400.0, 300.0)])
@pytest.mark.parametrize("kind", ["rate_limit", "server"])
def test_nobody_calls_until_the_endpoint_said_to_come_back(kind: str, asked: float, paused: float) -> None:
    async def main() -> list[float]:
        limiter = limiter_of(64)
        endpoint = Endpoint(between(0.0, 1.0, ModelError(kind, "later", asked)))
        await settle(*(once(limiter, endpoint) for _ in range(64)))
        assert now() == 1.0
        await asyncio.gather(*(once(limiter, endpoint) for _ in range(64)))
        return endpoint.arrivals[64:]

    later = run_skipping(main())
    assert later[0] == pytest.approx(1.0 + paused)
    # the release takes four times the second a refusal took, and is quadratic: of the 44 allowed the first goes
    # at once, the second after 4 * sqrt(1 / 44.8) = 0.60 s, the third after 0.85 s, the fourth after 1.04 s
    assert count(later, 0.0, later[0] + 0.99) == 3
    assert count(later, 0.0, later[0] + 4.01) >= 44


def test_the_longest_pause_that_was_asked_for_counts() -> None:
    async def main() -> float:
        limiter, endpoint = limiter_of(3), Endpoint()
        endpoint.verdict = lambda at, number: rate_limit({1: 5.0, 2: 60.0, 3: 2.0}[number]) if number <= 3 else None
        await settle(*(once(limiter, endpoint) for _ in range(3)))
        await once(limiter, endpoint)
        return endpoint.arrivals[-1]

    assert run_skipping(main()) == pytest.approx(61.0)


def test_without_a_word_pauses_double_while_nothing_is_answered() -> None:
    async def main(name: str) -> list[float]:
        limiter, endpoint = limiter_of(1, name=name), Endpoint(between(0.0, 100.0, rate_limit()), latency=0.0)
        while not endpoint.answers:
            await settle(once(limiter, endpoint))
        return [later - earlier for earlier, later in pairwise(endpoint.arrivals)]

    gaps = run_skipping(main("one"))
    for gap, longest in zip(gaps, [1, 2, 4, 8, 16, 16, 16], strict=False):
        assert longest / 2 <= gap <= longest
    assert max(gaps) <= 16
    assert run_skipping(main("one")) == gaps
    assert run_skipping(main("two")) != gaps


def test_calls_that_fail_together_are_one_event() -> None:
    async def main() -> tuple[float, float]:
        limiter, endpoint = limiter_of(64), Endpoint(between(0.0, 1.0, rate_limit()))
        await settle(*(once(limiter, endpoint) for _ in range(64)))
        allowed = limiter.allowed
        await once(limiter, endpoint)
        return allowed, endpoint.arrivals[-1]

    allowed, resumed = run_skipping(main())
    assert allowed == pytest.approx(0.7 * 64)
    assert 1.5 <= resumed <= 2.0  # one pause of 0.5 to 1 s, not 64 of them


def test_a_few_dozen_answers_bring_the_full_ceiling_back_and_more_where_it_is_never_borne() -> None:
    async def main() -> list[int]:
        limiter = limiter_of(64)

        async def answers_after(refusals: int) -> int:
            verdicts = [rate_limit(), None] * refusals
            endpoint = Endpoint(lambda at, number: verdicts[number - 1] if number < len(verdicts) else None)
            for _ in range(2 * refusals - 1):  # in turn, one call at a time
                await settle(once(limiter, endpoint))
            assert limiter.allowed == 1.0
            answers = 0
            while limiter.allowed < 64:
                await once(limiter, endpoint)
                answers += 1
            return answers

        return [await answers_after(refusals) for refusals in (1, 2, 9, 1)]

    # 63 calls to be won; 64 / 32 with each answer, half of that after a second refusal, an eighth at worst
    assert run_skipping(main()) == [32, 63, 252, 32]


def test_a_pause_is_slept_through_and_not_polled() -> None:
    async def main() -> int:
        limiter, endpoint = limiter_of(64), Endpoint(between(0.0, 1.0, rate_limit(300.0)))
        await settle(*(once(limiter, endpoint) for _ in range(64)))
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingLoop)
        before = loop.waits
        tasks = [asyncio.create_task(once(limiter, endpoint)) for _ in range(64)]
        await asyncio.sleep(299.0)
        waits = loop.waits - before
        await asyncio.gather(*tasks)
        return waits

    assert run_skipping(main()) == 1


def test_a_single_failure_among_answers_slows_nothing() -> None:
    async def main() -> None:
        limiter = limiter_of(64)
        endpoint = Endpoint(lambda at, number: ModelError("server", "oops") if number % 7 == 0 else None)
        await keep_asking(limiter, endpoint, 100.5, attempts=6)
        assert len(endpoint.arrivals) == 101 * 64
        assert len(endpoint.answers) == pytest.approx(100 * 64 * 6 / 7, rel=0.01)
        assert limiter.allowed == 64

    run_skipping(main())


@pytest.mark.parametrize(("latency", "share"), [(1.0, 0.5), (5.0, 0.8), (30.0, 0.8)])
def test_an_endpoint_that_bears_less_than_the_ceiling_is_kept_busy(latency: float, share: float) -> None:
    async def main() -> Endpoint:
        limiter, endpoint = limiter_of(64), Endpoint(latency=latency, failing=0.2)
        endpoint.verdict = lambda at, number: rate_limit() if endpoint.in_flight >= 40 else None
        await keep_asking(limiter, endpoint, 100 * latency)
        return endpoint

    endpoint = run_skipping(main())
    assert len(endpoint.answers) >= share * 40 * 100
    assert len(endpoint.answers) >= 0.8 * len(endpoint.arrivals)


@pytest.mark.parametrize(
    "error",
    [ModelError(kind, "no") for kind in ("bad_request", "content_filter", "context_window", "empty_reply", "truncated")]
    + [ModelError("malformed_reply", "a tool call", paid=CallFacts(prompt_tokens=20, completion_tokens=5))],
    ids=lambda error: error.kind,
)
def test_a_fault_of_the_call_or_its_answer_is_none_of_the_endpoint(error: ModelError) -> None:
    async def main() -> None:
        limiter, endpoint = limiter_of(8), Endpoint(lambda at, number: error)
        outcomes = await settle(*(once(limiter, endpoint) for _ in range(80)))
        assert {type(outcome) for outcome in outcomes} == {ModelError}
        assert (now(), limiter.allowed) == (10.0, 8)

    run_skipping(main())


def test_a_slot_given_back_unused_takes_no_budget_and_tells_nothing() -> None:
    async def main() -> None:
        limiter = limiter_of(8, 60, 6_000)
        endpoint = Endpoint(between(0.0, 1.0, ModelError("connection", "refused")), latency=10.0)
        await settle(*(once(limiter, endpoint) for _ in range(3)))  # 60 / 20 requests at once; all fail at 10 s
        before = now()
        for _ in range(99):
            async with limiter.slot("m", 6_000) as slot:
                slot.withdraw()
        assert now() == before
        # the failures still count: two more are five in a row, which is the endpoint's trouble
        endpoint.verdict = lambda at, number: ModelError("connection", "refused")
        await settle(*(once(limiter, endpoint) for _ in range(3)))
        assert limiter.allowed < 8

    run_skipping(main())


# -- an endpoint that is down


@pytest.mark.parametrize("kind", ["connection", "server", "timeout", "malformed_reply"])
@pytest.mark.parametrize("askers", [4, 64])
def test_three_minutes_of_being_down_cost_few_calls_and_no_request(kind: str, askers: int) -> None:
    notices: list[str] = []

    async def main() -> Endpoint:
        limiter = limiter_of(64, on_notice=notices.append)
        endpoint = Endpoint(between(10.0, 190.0, ModelError(kind, "refused")))

        async def episode(number: int) -> None:
            for step in range(30):
                await ask(limiter, endpoint, number * 100 + step)

        await asyncio.gather(*(episode(number) for number in range(askers)))
        return endpoint

    endpoint = run_skipping(main())
    assert len(endpoint.answers) == 30 * askers
    assert count(endpoint.arrivals, 10.0, 190.0) <= askers + 40
    assert count(endpoint.arrivals, 30.0, 190.0) <= 20  # one at a time, 8 to 16 s apart and 1 s long
    assert endpoint.answers[-1] <= 190 + 16 + 8 + 32
    back = next(at for at in endpoint.answers if at > 190.0)
    assert count(endpoint.arrivals, back, back + 2.0) <= 5  # no herd: 64 / 16 in the first quarter of 8 s
    opened, closed = [told for told in notices if "down" in told or "again" in told]
    assert "http://localhost:8000/v1 seems to be down" in opened and f"last {kind}: refused" in opened
    assert "answers again, after 1" in closed


def test_an_endpoint_down_for_too_long_is_given_up_and_everybody_told() -> None:
    notices: list[str] = []

    async def main() -> list[BaseException | None]:
        limiter = limiter_of(8, give_up_seconds=120.0, on_notice=notices.append)
        endpoint = Endpoint(lambda at, number: ModelError("connection", "refused; check base_url"))
        outcomes = await settle(*(ask(limiter, endpoint, seed) for seed in range(100)))
        assert now() <= 1 + 120 + 1
        calls = len(endpoint.arrivals)
        outcomes += await settle(ask(limiter, endpoint))
        assert (len(endpoint.arrivals), limiter.in_flight) == (calls, 0)
        return outcomes

    outcomes = run_skipping(main())
    assert len(outcomes) == 101
    assert all(isinstance(outcome, EndpointDown) for outcome in outcomes)
    told = outcomes[-1]
    assert isinstance(told, EndpointDown) and told.kind == "connection" and told.facts.error_kind == "connection"
    for part in ("http://localhost:8000/v1", "refused; check base_url", "since", "UTC", "Run again"):
        assert part in told.message
    assert told.message == notices[-1] and len(notices) == 3  # a pause, down, given up


def test_giving_up_does_not_wait_for_calls_that_hang_and_is_not_taken_back() -> None:
    notices: list[str] = []

    async def main() -> None:
        limiter = limiter_of(8, give_up_seconds=120.0, on_notice=notices.append)
        timeout = ModelError("timeout", "no answer within 600 s")
        endpoint = Endpoint(lambda at, number: timeout if number <= 8 else None, latency=600.0)
        tasks = [asyncio.create_task(once(limiter, endpoint)) for _ in range(40)]
        await asyncio.sleep(600.0 + 121.0)
        going = [task for task in tasks if not task.done()]
        assert len(going) == 4 + 1  # let in while only four had failed, and one to see whether it is still down
        assert sum(isinstance(task.exception(), EndpointDown) for task in tasks if task.done()) == 40 - 8 - 5
        await asyncio.gather(*going)
        with pytest.raises(EndpointDown):
            await once(limiter, endpoint)

    run_skipping(main())
    assert "given up" in notices[-1]


def test_endless_429_is_given_up_with_its_own_kind_and_never_called_down() -> None:
    notices: list[str] = []

    async def main() -> None:
        limiter = limiter_of(64, on_notice=notices.append)
        endpoint = Endpoint(lambda at, number: rate_limit(), latency=0.1)
        outcomes = await settle(*(ask(limiter, endpoint, seed) for seed in range(200)))
        assert {outcome.kind for outcome in outcomes if isinstance(outcome, EndpointDown)} == {"rate_limit"}
        assert now() == pytest.approx(600.0, abs=1.0)
        assert len(endpoint.arrivals) <= 64 + 5 * 60

    run_skipping(main())
    assert "given up" in notices[-1] and not [told for told in notices if "seems to be down" in told]


def test_calls_that_hang_do_not_keep_the_others_from_going_on() -> None:
    async def main() -> None:
        limiter, started = limiter_of(64), 0

        async def call() -> None:
            nonlocal started
            async with limiter.slot("m"):
                started += 1
                if started <= 50:
                    await asyncio.sleep(600.0)
                elif now() < 30.0:
                    raise ModelError("connection", "refused")

        calls = [asyncio.create_task(call()) for _ in range(200)]
        await asyncio.sleep(60.0)
        assert sum(task.done() for task in calls) == 150
        assert sum(task.done() and task.exception() is None for task in calls) >= 120
        await asyncio.wait(calls)

    run_skipping(main())


def test_failures_of_one_moment_among_answers_are_no_endpoint_that_is_down() -> None:
    notices: list[str] = []

    async def main() -> None:
        limiter = limiter_of(64, on_notice=notices.append)
        answering, hanging = Endpoint(), Endpoint(lambda at, number: ModelError("timeout", "no"), latency=600.0)
        hung = [asyncio.create_task(once(limiter, hanging)) for _ in range(20)]
        while now() < 599.0:
            await once(limiter, answering)
        assert await settle(*hung) != [None] * 20
        await once(limiter, answering)

    run_skipping(main())
    assert not [told for told in notices if "down" in told]


@pytest.mark.parametrize("kind", ["authentication", "not_found"])
def test_a_model_that_is_refused_is_asked_no_more_and_others_are(kind: str) -> None:
    async def main() -> None:
        limiter = limiter_of(2)
        refusing = Endpoint(lambda at, number: ModelError(kind, "no such thing; check the name"))
        serving = Endpoint()
        outcomes = await settle(
            *(once(limiter, refusing, "bad") for _ in range(50)), *(once(limiter, serving, "good") for _ in range(50))
        )
        refused, served = outcomes[:50], outcomes[50:]
        assert served == [None] * 50
        assert len(refusing.arrivals) in (3, 4)  # two at a time
        final = refused[-1]
        assert isinstance(final, EndpointDown) and final.kind == kind
        assert "refuses bad" in final.message and "check the name" in final.message
        with pytest.raises(EndpointDown):
            await once(limiter, refusing, "bad")
        await once(limiter, serving, "good")

    run_skipping(main())


def test_one_refusal_among_answers_is_believed_to_be_the_calls_own() -> None:
    async def main() -> None:
        limiter = limiter_of(4)
        endpoint = Endpoint(lambda at, number: ModelError("authentication", "no") if number % 2 else None)
        outcomes = await settle(*(once(limiter, endpoint) for _ in range(40)))
        assert sum(outcome is None for outcome in outcomes) == 20

    run_skipping(main())


def test_old_failures_prove_nothing_after_a_long_rest() -> None:
    async def main() -> None:
        limiter, endpoint = limiter_of(8), Endpoint(lambda at, number: ModelError("connection", "refused"))
        for _ in range(2):
            outcomes = await settle(*(once(limiter, endpoint) for _ in range(8)))
            assert {type(outcome) for outcome in outcomes} == {ModelError}  # not given up, though an hour has passed
            await asyncio.sleep(3_600.0)

    run_skipping(main())


def test_a_fault_of_the_program_inside_a_slot_frees_it_and_accuses_nobody() -> None:
    async def main() -> None:
        limiter = limiter_of(1)
        for _ in range(20):
            with pytest.raises(ZeroDivisionError):
                async with limiter.slot("m"):
                    raise ZeroDivisionError
        assert (limiter.in_flight, limiter.allowed, now()) == (0, 1, 0.0)

    run_skipping(main())


def test_a_real_servers_wish_to_be_left_alone_for_a_minute_is_granted(loopback: Loopback) -> None:
    arrivals: list[float] = []
    refused = failure(429, "slow down", {"Retry-After": "60"})

    def handler(body: dict[str, Any]) -> Reply | str:
        arrivals.append(time.monotonic() * HURRY)
        return refused if len(arrivals) <= 2 else ANSWER

    async def main() -> None:
        limiter, model = limiter_of(2), api.load("openai/gpt-4.1", loopback.base_url)

        async def patient(seed: int) -> None:
            while True:
                with suppress(ModelError):
                    async with limiter.slot("m"):
                        await model.complete(request_of(seed=seed, timeout_seconds=60.0 * HURRY))
                    return

        await asyncio.gather(*(patient(seed) for seed in range(4)))

    loopback.handler = handler
    run_hurried(main(), HURRY)
    assert len(arrivals) == 6
    assert arrivals[2] - arrivals[1] >= 60.0


# -- what a minute of 429s does to throughput

TROUBLE = (30.0, 90.0)
"""Seconds within which every call is refused."""


def throughput(
    error: ModelError, latency: float = 1.0, ceiling: int = 64, seconds: float = 160.0
) -> tuple[list[int], list[int]]:
    """Calls answered and refused in every ten seconds; as many in flight as are allowed, all the time."""

    async def main() -> Endpoint:
        endpoint = Endpoint(between(*TROUBLE, error), latency)
        await keep_asking(limiter_of(ceiling), endpoint, seconds)
        return endpoint

    endpoint = run_skipping(main())
    bins = [10.0 * index for index in range(int(seconds) // 10)]
    answered = [count(endpoint.answers, at, at + 10) for at in bins]
    return answered, [count(endpoint.arrivals, max(at, TROUBLE[0]), min(at + 10, TROUBLE[1])) for at in bins]


def throughput_table(latency: float = 1.0, ceiling: int = 64) -> str:
    """What ``throughput`` gives with and without Retry-After, against the ideal, in lines for people."""
    ideal = 10 * ceiling / latency
    lines = [f"429 from {TROUBLE[0]:g} s to {TROUBLE[1]:g} s; {ceiling} in flight, {latency:g} s latency"]
    for label, error in (("no Retry-After", rate_limit()), ("Retry-After 10", rate_limit(10.0))):
        answered, refused = throughput(error, latency, ceiling)
        lines.append(f"{label:15} answered, % of ideal " + " ".join(f"{100 * n / ideal:4.0f}" for n in answered))
        lines.append(f"{'':15} refused calls        " + " ".join(f"{n:4}" for n in refused))
    return "\n".join(lines)


@pytest.mark.parametrize("retry_after", [None, 1.0, 10.0])
def test_full_speed_is_back_within_half_a_minute_of_a_minute_of_429(retry_after: float | None) -> None:
    answered, refused = throughput(rate_limit(retry_after))
    ideal = 640  # 64 in flight, 1 s each, in 10 s
    assert min(answered[1:3]) == ideal
    assert sum(answered[4:9]) == 0
    assert answered[11] >= 0.9 * ideal  # from 110 s on: 20 s after the end
    assert min(answered[12:]) == ideal
    assert sum(refused) <= 64 + 300


if __name__ == "__main__":
    print(throughput_table())
    print(throughput_table(latency=5.0))
