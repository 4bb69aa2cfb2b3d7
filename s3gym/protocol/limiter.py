"""Keeps one endpoint as busy as it can bear: calls in flight, minute budgets, pauses, and when to give up.

One for each endpoint, shared by all who ask it in one event loop. A call waits for its slot, in order of arrival;
how it ends tells how the endpoint is:

* refused for its rate, or told to wait: nobody calls for a while, then slowly more do; fewer calls in flight are
  allowed at first, and each answer allows more. Who was refused keeps the place in line;
* failed, and so did the last few: the same. One failure among answers changes nothing;
* failed, as all have for a while: the endpoint is down, and one call at a time finds out whether it still is;
* down for too long: everybody is told so at once, and nobody calls any more.

It repeats no call (``asking`` does) and ends none (a model's timeout does). Its clock is the event loop's, which
no change of the date moves.
"""

import asyncio
import math
import random
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from types import TracebackType

from s3gym.models.base import TRANSIENT, ModelError

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 16.0
"""Cap of a pause of our own, which doubles while nothing is answered: what recovery may come too late by."""
LONGEST_RETRY_AFTER_SECONDS = 300.0
"""Cap of the pause an endpoint may ask for."""
RAMP_REFUSALS = 4
"""The release after a pause takes as long as so many refusals, one after the other: few calls are out by the first."""
SHORTEST_RAMP_SECONDS = 1.0
LONGEST_RAMP_SECONDS = 8.0
CUT = 0.7
"""What is left of the calls in flight that are allowed, when the endpoint is pressed too hard."""
RECOVERY_ANSWERS = 32
"""Answers that lead from nothing to the full ceiling, whatever that is."""
SLOWEST_RECOVERY = 8
"""Times as many for an endpoint that does not bear the full ceiling: it doubles with each cut on the way there."""
TROUBLE_FAILURES = 5
"""Failures in a row that are the endpoint's trouble and no longer a call's."""
DOWN_FAILURES = 8
"""Failures in a row of an endpoint that is down; more than the attempts of any one request."""
DOWN_SECONDS = 5.0
"""How long nothing was answered by an endpoint that is down."""
GIVE_UP_SECONDS = 600.0
"""How long calls are held back, nothing being answered, before that is final."""
REFUSALS = frozenset({"authentication", "not_found"})
"""Kinds that say: this model will not be served."""
REFUSALS_BELIEVED = 3
"""Refusals in a row of one model that are final; one may be a gateway's mistake."""
STALE_SECONDS = 120.0
"""After so long without any call, earlier failures prove nothing; longer than any caller waits of its own."""
BURST_SHARE = 1 / 20
"""Share of a minute's budget that may be spent at once."""
NOTICE_SECONDS = 30.0
"""Pauses are told of no more often."""


class EndpointDown(ModelError):
    """No call was made: the endpoint, or the model there, has been given up. Final; not to be tried again."""


class Limiter:
    """One endpoint: who may call it, and when."""

    def __init__(
        self,
        ceiling: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        name: str,
        give_up_seconds: float = GIVE_UP_SECONDS,
        on_notice: Callable[[str], None] = lambda told: None,
    ) -> None:
        """Starts with the full ceiling and full budgets.

        Args:
            ceiling: most calls in flight, at least 1.
            requests_per_minute: most calls begun in any minute; None sets no limit.
            tokens_per_minute: most tokens, prompt and answer; None sets no limit.
            name: the endpoint's, for messages; without any credential.
            give_up_seconds: how long to hold back calls while nothing is answered.
            on_notice: told, in a sentence for people, of a pause, an endpoint that is down, up again, or given up.
        """
        assert ceiling >= 1, ceiling
        self.name = name
        self.ceiling = ceiling
        self.in_flight = 0
        self.allowed = float(ceiling)
        """Calls in flight that are allowed at present; 1 to ``ceiling``."""
        self._requests = _Budget(requests_per_minute) if requests_per_minute else None
        self._tokens = _Budget(tokens_per_minute) if tokens_per_minute else None
        self._give_up_seconds = give_up_seconds
        self._on_notice = on_notice
        self._waiting: deque[tuple[Slot, asyncio.Future[None]]] = deque()  # in order of their places
        self._places = count()
        self._timer: asyncio.TimerHandle | None = None
        self._refusals: dict[str, int] = {}  # by model, in a row
        self._refused: dict[str, tuple[str, str]] = {}  # by model: kind and message of what is final
        self._down: tuple[str, str] | None = None  # the same for all models

        self._failures = 0  # in a row, of the transient kinds
        self._last_error: ModelError  # there as soon as there are failures
        self._failing_since = -math.inf
        self._answered_at = -math.inf
        self._left_at = math.inf
        self._cut_at = -math.inf
        self._is_cut = False  # and nothing was answered since
        self._cuts = 0  # since the ceiling was last reached

        self._pauses = 0  # in a row
        self._paused_at = -math.inf
        self._held_since: float | None = None  # since the first of them
        self._resume_at = -math.inf
        self._paused_until_then = 0.0  # seconds of all pauses, the present one whole
        self._ramp = 0.0
        self._released = 0  # since the last pause
        self._is_open = False  # the circuit: open while the endpoint is down
        self._probe: Slot | None = None
        self._pause_count = 0
        self._noticed_at = -math.inf

    def slot(self, model_id: str, estimated_tokens: int = 0) -> "Slot":
        """A place for the calls of one request, one at a time, each in ``async with``.

        Entering waits, and may raise EndpointDown. Leaving it without an error is an answer, with a ModelError a
        failure; anything else says nothing of the endpoint.

        Args:
            model_id: who is called.
            estimated_tokens: prompt and answer; read only where tokens are limited. The slot's ``tokens_used``
                corrects it.
        """
        return Slot(self, model_id, estimated_tokens)

    def given_up(self, model_id: str) -> str | None:
        """Why ``model_id`` is called no more, in a sentence for people; None while it is."""
        gone = self._gone(model_id)
        return gone[1] if gone else None

    async def _enter(self, slot: "Slot") -> None:
        loop = asyncio.get_running_loop()
        if not (self.in_flight or self._waiting) and loop.time() - self._left_at > STALE_SECONDS:
            self._forget_failures()
        if not slot.is_refused:  # one that is comes back to the place it had
            slot.place = next(self._places)
        admitted = loop.create_future()
        insort(self._waiting, (slot, admitted), key=lambda waiting: waiting[0].place)
        self._pump()
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled() and admitted.exception() is None:  # let in, but never to know
                self._refund(slot)
                self._vacate(slot)
            self._pump()
            raise

    def _leave(self, slot: "Slot", error: BaseException | None) -> None:
        now = asyncio.get_running_loop().time()
        if self._tokens is not None and slot.tokens_used is not None:
            self._tokens.give_back(slot.estimated_tokens - slot.tokens_used)
        if self._down is None and not slot.tells_nothing and (error is None or isinstance(error, ModelError)):
            self._learn(slot, error, now)
        if isinstance(error, ModelError) and error.kind in TRANSIENT and _is_refusal(error):
            slot._refuse(now, self._paused_seconds(now))
        self._vacate(slot)
        if not slot.tells_nothing:
            self._left_at = now
        self._pump()

    def _refund(self, slot: "Slot") -> None:
        """Takes back what letting it in has changed, but for its place among those in flight."""
        self._released = max(0, self._released - 1)
        for budget, amount in self._charges(slot):
            budget.give_back(amount)

    def _learn(self, slot: "Slot", error: ModelError | None, now: float) -> None:
        if error is not None and error.kind in TRANSIENT and error.facts.completion_tokens is None:
            self._failed(slot, error, now)
            return
        self._answered(slot, now)  # even where the answer is none that anybody can use
        if error is not None and error.kind in REFUSALS:
            self._refused_once(slot.model_id, error)
        else:
            self._refusals.pop(slot.model_id, None)

    def _vacate(self, slot: "Slot") -> None:
        self.in_flight -= 1
        if self._probe is slot:
            self._probe = None

    def _pump(self) -> None:
        """Lets in whoever may go, and sets the timer for the next who may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting:
            slot, admitted = self._waiting[0]
            gone = self._gone(slot.model_id)
            if gone is not None and not admitted.done():
                admitted.set_exception(EndpointDown(*gone))
            if admitted.done():  # told, or cancelled
                self._waiting.popleft()
                continue
            due, deadline = self._due(slot, now), self._deadline(now)
            if due > now:
                if deadline <= now:
                    self._give_up(now)
                    continue
                if min(due, deadline) < math.inf:
                    self._timer = loop.call_at(min(due, deadline), self._pump)
                return
            self._waiting.popleft()
            self._admit(slot, now)
            admitted.set_result(None)

    def _gone(self, model_id: str) -> tuple[str, str] | None:
        return self._refused.get(model_id) or self._down

    def _due(self, slot: "Slot", now: float) -> float:
        """When the first in the queue may go; infinite until a call ends."""
        most = int(self.allowed) if self._released else self.ceiling  # calls that hang do not keep the first one out
        if self.in_flight >= most or self._probe is not None:
            return math.inf
        # slow at first: after a quarter of the ramp a sixteenth of the calls is out
        share = min(self._released / self.allowed, 1.0)
        due = self._resume_at + self._ramp * math.sqrt(share)
        return max(due, *(now + budget.wait(amount, now) for budget, amount in self._charges(slot)), now)

    def _deadline(self, now: float) -> float:
        """When those who are held back have waited long enough."""
        if self._held_since is None or not (self._is_open or now < self._resume_at):
            return math.inf
        return self._held_since + self._give_up_seconds

    def _admit(self, slot: "Slot", now: float) -> None:
        slot._begin(now, self._paused_seconds(now))
        self.in_flight += 1
        self._released += 1
        if self._is_open:
            self._probe = slot
            slot.is_probe = True
        for budget, amount in self._charges(slot):
            budget.take(amount)

    def _charges(self, slot: "Slot") -> "Iterator[tuple[_Budget, int]]":
        if self._requests is not None:
            yield self._requests, 1
        if self._tokens is not None:
            yield self._tokens, slot.estimated_tokens

    def _answered(self, slot: "Slot", now: float) -> None:
        if self._is_open:
            self._notice(f"{self.name} answers again, after {now - self._failing_since:.0f} s")
            self._paused_until_then = self._paused_seconds(now)
            self._resume_at, self._ramp, self._released = now, LONGEST_RAMP_SECONDS, 0
            self.allowed = self.ceiling  # calls that were lost when it went down may be in flight for long
        self._answered_at = now
        self._forget_failures()
        self._is_cut = False
        if slot.admitted_at > self._cut_at:  # earlier calls were let in under easier conditions
            answers = _doubled(RECOVERY_ANSWERS, self._cuts, RECOVERY_ANSWERS * SLOWEST_RECOVERY)
            self.allowed = min(self.ceiling, self.allowed + self.ceiling / answers)
            if self.allowed == self.ceiling:
                self._cuts = 0

    def _forget_failures(self) -> None:
        self._failures = self._pauses = 0
        self._held_since = None
        self._is_open = False
        self._probe = None

    def _refused_once(self, model_id: str, error: ModelError) -> None:
        count = self._refusals[model_id] = self._refusals.get(model_id, 0) + 1
        if count >= REFUSALS_BELIEVED and model_id not in self._refused:
            told = f"{self.name} refuses {model_id}, {count} calls in a row, the last: {error.message}"
            self._refused[model_id] = (error.kind, told)
            self._notice(told)

    def _failed(self, slot: "Slot", error: ModelError, now: float) -> None:
        self._failures += 1
        self._last_error = error
        if self._failures == 1:  # a call that hung was failing all the while, unless others were answered
            self._failing_since = max(slot.admitted_at, self._answered_at)
        if _is_refusal(error) or self._failures >= TROUBLE_FAILURES:
            self._pause(slot, error, now)
        has_failed_long = self._failures >= DOWN_FAILURES and now - self._failing_since >= DOWN_SECONDS
        if has_failed_long and error.kind != "rate_limit" and not self._is_open:
            self._is_open = True
            self._notice(
                f"{self.name} seems to be down: {self._told(now)}. One call at a time is tried, "
                f"for {self._give_up_seconds:.0f} s at most"
            )
        if self._held_since is not None and now >= self._held_since + self._give_up_seconds:
            self._give_up(now)

    def _pause(self, slot: "Slot", error: ModelError, now: float) -> None:
        """Holds everybody back for a while, as long as the endpoint asks or longer each time in a row.

        Calls let in before the last pause say nothing new: of many that fail together, one makes the pause.
        They may prolong it.
        """
        is_new = slot.admitted_at > self._paused_at
        if is_new:
            self._pauses += 1
            self._pause_count += 1
            self._paused_at = now
            if not self._is_cut:  # a second cut before any answer would tell of the same trouble
                self.allowed = max(1.0, min(self.allowed, self.in_flight) * CUT)
                self._cuts += 1
                self._cut_at, self._is_cut = now, True
        if self._held_since is None:
            self._held_since = now
        if error.retry_after_seconds is not None:
            seconds = max(min(error.retry_after_seconds, LONGEST_RETRY_AFTER_SECONDS), self._own_pause(1))
        elif is_new:
            seconds = self._own_pause(self._pauses)
        else:
            return
        if now + seconds > self._resume_at:
            ramp = RAMP_REFUSALS * (now - slot.admitted_at)
            self._ramp = max(SHORTEST_RAMP_SECONDS, min(ramp, LONGEST_RAMP_SECONDS))
            self._paused_until_then = self._paused_seconds(now) + seconds
            self._resume_at, self._released = now + seconds, 0
        if is_new and now - self._noticed_at >= NOTICE_SECONDS and not self._is_open:
            self._noticed_at = now
            self._notice(
                f"{self.name}: no call for {seconds:.1f} s, then up to {int(self.allowed)} at a time ({error})"
            )

    def _paused_seconds(self, now: float) -> float:
        """How long nobody was let in because of a pause, so far."""
        return self._paused_until_then - max(0.0, self._resume_at - now)

    def _own_pause(self, number: int) -> float:
        """Seconds; less up to half, so that several users of one endpoint do not come back together."""
        longest = _doubled(FIRST_PAUSE_SECONDS, number, LONGEST_PAUSE_SECONDS)
        return longest * (1 - random.Random(f"{self.name}/{self._pause_count}").random() / 2)

    def _give_up(self, now: float) -> None:
        """For good: who waits is told by the pump, and so is who comes later."""
        if self._down is None:
            told = f"{self.name} is given up: {self._told(now)}. Run again when it answers; no answer is paid twice"
            self._down = (self._last_error.kind, told)
            self._notice(told)

    def _notice(self, told: str) -> None:
        asyncio.get_running_loop().call_soon(self._on_notice, told)  # its faults are not ours

    def _told(self, now: float) -> str:
        since = datetime.now(UTC) - timedelta(seconds=now - self._failing_since)
        return (
            f"{self._failures} calls failed and none was answered since {since:%H:%M:%S} UTC, last {self._last_error}"
        )


class Slot:
    """One request's place among the calls in flight, and in the line before it."""

    def __init__(self, limiter: Limiter, model_id: str, estimated_tokens: int) -> None:
        self.model_id = model_id
        self.estimated_tokens = estimated_tokens
        self.tokens_used: int | None = None
        """What the call took in truth; to be set by who knows."""
        self.tells_nothing = False
        """Whether the call's end says nothing of the endpoint, whatever it is; to be set by who knows."""
        self.is_probe = False
        """Whether it asks an endpoint that is down: its failure is no fault of the request."""
        self.is_refused = False
        """Whether the last call was refused for its rate, or told to wait."""
        self.refused_seconds = 0.0
        """How long, since the first refusal, calls took to be refused and pauses held the request back."""
        self.place = -1
        """In line; the lowest goes first."""
        self.admitted_at = math.inf
        self._limiter = limiter
        self._was_refused = False  # ever
        self._paused_seconds = 0.0  # of the limiter's, when it was refused

    def withdraw(self) -> None:
        """No call is made: what it took of the budgets goes back, and its end says nothing of the endpoint."""
        self.tells_nothing = True
        self._limiter._refund(self)

    def _begin(self, now: float, paused_seconds: float) -> None:
        if self.is_refused:
            self.refused_seconds += paused_seconds - self._paused_seconds
        self.admitted_at, self.tokens_used = now, None
        self.tells_nothing = self.is_probe = self.is_refused = False

    def _refuse(self, now: float, paused_seconds: float) -> None:
        if self._was_refused:
            self.refused_seconds += now - self.admitted_at
        self.is_refused = self._was_refused = True
        self._paused_seconds = paused_seconds

    async def __aenter__(self) -> "Slot":
        await self._limiter._enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter._leave(self, error)


def _is_refusal(error: ModelError) -> bool:
    return error.kind == "rate_limit" or error.retry_after_seconds is not None


class _Budget:
    """A bucket that fills as time goes by: in no minute is more taken than ``per_minute``.

    An amount above what the bucket holds is taken from a full one, which then owes it.
    """

    def __init__(self, per_minute: int) -> None:
        self._size = max(1.0, per_minute * BURST_SHARE)
        # a minute sees at most a full bucket and what flows in; the first unit of it may come at the very start
        self._per_second = (per_minute - self._size + 1) / 60
        self._left = self._size
        self._filled_at = -math.inf

    def wait(self, amount: int, now: float) -> float:
        """Seconds until ``amount`` may be taken."""
        self._left = min(self._size, self._left + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        return max(0.0, (min(amount, self._size) - self._left) / self._per_second)

    def take(self, amount: int) -> None:
        """At the time of the last ``wait``."""
        self._left -= amount

    def give_back(self, amount: int) -> None:
        """What was taken for nothing; negative when it was too little."""
        self._left = min(self._size, self._left + amount)


def _doubled(first: float, number: int, most: float) -> float:
    """The value of number 1, 2, 3...: twice the one before, up to ``most``."""
    return min(first * 2.0 ** min(number - 1, 60), most)  # numbers may grow for days
