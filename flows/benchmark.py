"""The benchmark, read top to bottom: a cell walks explore -> self_judge -> build_experience -> evaluate.

Evaluation at a checkpoint runs beside the next exploration; cells run side by side; one that fails harms no other.
A run is planned from the manifests first: what is complete becomes no task, and a run with nothing to do starts
no server.
"""

import asyncio
import itertools
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flows.build_experience import build_experience
from flows.evaluate import evaluate
from flows.explore import explore
from flows.logbook import MANUAL, Outcome, logged
from flows.runtime import Runtime, StageFailed, limiters_for
from flows.self_judge import self_judge
from flows.weights import clear_weights, lost_weights, recall_weights
from s3gym import storage
from s3gym.config import ConfigError, ModelEntry, RunConfig
from s3gym.errors import Explained
from s3gym.journal import Journal
from s3gym.models._failures import redact
from s3gym.models.base import Model
from s3gym.models.prices import prices_of
from s3gym.plan import INVALID, CellPlan, RunPlan, Stage, make_plan, missing
from s3gym.protocol.allowance import Allowance, Spent
from s3gym.subjects import prices_in

BODIES = {body.__name__: body for body in (explore, self_judge, build_experience, evaluate)}
PARALLEL_CELLS = 8
"""Cells walked at once; more only crowds the server, calls have their own ceiling."""


@dataclass(frozen=True)
class Todo:
    """What of a cell is still to be done, in the order of its chain."""

    cell: CellPlan
    stages: tuple[Stage, ...]

    gaps: tuple[Sequence[tuple[int, int]], ...]
    """What each of its stages lacks, as ``plan.missing`` gives it."""

    @property
    def episode_count(self) -> int:
        """Episodes its stages will play."""
        return sum(
            last - first
            for stage, gaps in zip(self.stages, self.gaps, strict=True)
            for first, last in gaps
            if stage.kind in ("explore", "evaluate")
        )

    @property
    def models(self) -> list[Model]:
        """Who is asked."""
        return [stage.model for stage in self.stages]


def todo(plan: RunPlan, data: Path) -> list[Todo]:
    """The cells with something missing. A stage that cells share is done by the first of them."""
    claimed: set[str] = set()
    work = []
    for cell in plan.cells:
        recalled = lost_weights(data, cell.stages)
        found = [
            (stage, [(stage.first, stage.last)] if stage.key in recalled else missing(data, stage))
            for stage in cell.stages
            if stage.key not in claimed
        ]
        lacking = [(stage, gaps) for stage, gaps in found if gaps]
        claimed.update(stage.key for stage, _ in lacking)
        if lacking:
            stages, gaps = zip(*lacking, strict=True)
            work.append(Todo(cell, stages, gaps))
    return work


def check_models(work: list[Todo]) -> None:
    """Asks each back end that will be called whether it can serve its model; raises UnknownName."""
    for model in {model.model_id: model for piece in work for model in piece.models}.values():
        model.check()


def check_prices(work: list[Todo], config: RunConfig) -> None:
    """A limit in dollars needs prices to be kept; raises ConfigError."""
    if config.max_cost is None:
        return
    entries = {entry.id: entry for entry in config.models}
    for name in {model.model_id: None for piece in work for model in piece.models if not model.is_free}:
        if name.startswith("python:"):  # it may say what its calls cost; the first that does not ends the run
            continue
        if prices_of(name, prices_in(entries.get(name) or ModelEntry(id=name))) is None:
            raise ConfigError(
                f"max_cost = {config.max_cost:g}, but nobody knows the price of {name!r}; give its prompt_price "
                "and completion_price in dollars per million tokens, or use max_calls"
            )


def measure(
    config: RunConfig,
    data: Path,
    on_event: Callable[[str, int], None],
    on_start: Callable[[list[Todo]], None],
    on_notice: Callable[[str], None] = lambda told: None,
    trigger: str = MANUAL,
) -> Outcome:
    """Runs what ``config`` asks for and ``data`` does not hold yet.

    Args:
        config: the request.
        data: the data folder; made if missing.
        on_event: called with a kind (``step``, ``episode``, ``change``, ``cell``) and a number as work is done.
        on_start: called with the work before it begins, only when there is some.
        on_notice: told, in a sentence for people, when an endpoint makes calls wait.
        trigger: what set it off, for the log of refreshes.

    Raises:
        ConfigError, UnknownName, SplitError, StorageError: the request is wrong; nothing was run.
    """
    plan = make_plan(config)
    work = todo(plan, data)  # each task looks again, so what another run does meanwhile is not done twice
    check_models(work)
    check_prices(work, config)
    storage.open_folder(data)
    with storage.exclusive(data):
        storage.sweep(data)
        for cell in plan.cells:
            recall_weights(data, cell.stages)
        storage.write_request(data, plan.run, [cell.record for cell in plan.cells], plan.links())
        outcome = Outcome(plan, failures=list(plan.left_out))
        with logged(data, outcome, [stage for piece in work for stage in piece.stages], trigger):
            if work:
                on_start(work)
                _measured(config, outcome, work, data, on_event, on_notice)
            for cell in plan.cells:
                clear_weights(data, cell.subject, cell.stages)
        return outcome


def _measured(
    config: RunConfig,
    outcome: Outcome,
    work: list[Todo],
    data: Path,
    on_event: Callable[[str, int], None],
    on_notice: Callable[[str], None],
) -> None:
    """Does the work in Prefect; what was called and paid is in ``outcome``, also when it is stopped."""
    from prefect.exceptions import TerminationSignal

    from flows.server import orchestration_server

    with orchestration_server(data), Journal(data / "journal.sqlite") as journal:
        calls, cost_usd = journal.spent({stage.key for stage in outcome.plan.stages()})
        allowance = Allowance(config.max_calls, config.max_cost, calls, cost_usd)
        models = [model for piece in work for model in piece.models]
        runtime = Runtime(data, journal, limiters_for(models, config, on_notice), allowance, on_event)
        try:
            asyncio.run(allowance.finishing_calls(_orchestrated(work, outcome, runtime), on_notice))
        except TerminationSignal:  # what Prefect makes of a SIGTERM
            raise KeyboardInterrupt from None
        finally:
            outcome.calls_made = allowance.calls - calls
            outcome.paid_usd = allowance.cost_usd - cost_usd if allowance.is_priced else None


def _together(stages: Sequence[Stage]) -> list[list[Stage]]:
    """The stages in order, all transfers of a checkpoint as one: many small stages need not be many tasks."""
    return [
        list(group) for _, group in itertools.groupby(stages, lambda s: (s.kind, s.checkpoint, s.is_transfer or s.key))
    ]


async def _orchestrated(work: list[Todo], outcome: Outcome, runtime: Runtime) -> None:
    from prefect import flow

    from flows.caching import Work, cached_task

    data = runtime.data
    tasks = {kind: cached_task(body, data) for kind, body in BODIES.items()}
    doors = asyncio.Semaphore(PARALLEL_CELLS)

    def failed(stage: Stage, told: str) -> None:
        """Notes what failed calls did to a stage; of an endpoint that was given up that is told once, for all."""
        model = stage.model
        limiter = runtime.limiters.get(model.endpoint)
        reason = limiter.given_up(model.model_id) if limiter else None
        if reason is not None:
            told = f"{reason}. What rests on its calls is marked invalid, or waits for the next run"
        if told not in outcome.failures:
            outcome.failures.append(told)

    ends = {stage.key: asyncio.get_running_loop().create_future() for piece in work for stage in piece.stages}

    async def do(stages: list[Stage]) -> bool:
        """One task, once all it reads is there; False and a noted failure when it did not end well."""
        is_done = await is_ready(stages) and await attempt(stages)
        for stage in stages:
            end_of(stage, is_done)
        return is_done

    async def is_ready(stages: list[Stage]) -> bool:
        """Waits for what other cells, which came first, do for this one too."""
        sources = [source for stage in stages for source in (*stage.explored, stage.experience) if source is not None]
        for source in sources:
            if source.key in ends and not await ends[source.key]:
                return False  # told where it failed
        return True

    def end_of(stage: Stage, is_done: bool) -> None:
        if not ends[stage.key].done():
            ends[stage.key].set_result(is_done)

    async def attempt(stages: list[Stage]) -> bool:
        piece = Work(stages, runtime)
        outcome.task_count += 1
        try:
            manifests = await tasks[stages[0].kind](piece.label, piece)
        except Spent as error:
            outcome.stopped = outcome.stopped or str(error)
            return False
        except StageFailed as error:
            failed(stages[0], str(error))
            return False
        except Exception as error:  # noqa: BLE001 - whatever breaks one cell must not break the others
            told = str(error) if isinstance(error, Explained) else f"{type(error).__name__}: {redact(str(error))}"
            failed(stages[0], f"{piece.label}: {told}")
            return False
        invalid = [manifest for manifest in manifests if manifest["status"] == INVALID]
        by_key = {stage.key: stage for stage in stages}
        for manifest in invalid:
            stage = by_key[manifest["key"]]
            failed(
                stage,
                f"{stage.label}: {manifest['failed_calls']} calls failed, what rests on them is marked invalid "
                f"({manifest['first_error']})",
            )
        return not invalid

    async def walk(todo: Todo) -> None:
        async with doors:
            beside: list[asyncio.Task[bool]] = []
            if all(stage.kind == "evaluate" for stage in todo.stages):
                await do(list(todo.stages))
            else:
                for stages in _together(todo.stages):
                    if stages[0].kind == "evaluate":
                        beside.append(asyncio.create_task(do(stages)))
                    elif stages[0].kind != "self_judge" and not await do(stages):
                        break
                judged = [s for s in todo.stages if s.kind == "self_judge" and not missing(data, s.explored[0])]
                if judged:
                    beside.append(asyncio.create_task(do(judged)))
                await asyncio.gather(*beside)
            for stage in todo.stages:  # not reached
                end_of(stage, False)
            runtime.on_event("cell", 1)

    @flow(name="benchmark", flow_run_name=f"benchmark {outcome.plan.run.run_id}")
    async def benchmark() -> None:
        if threading.current_thread() is threading.main_thread():  # Prefect's handler would break out of the loop
            signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
        await asyncio.gather(*(walk(cell) for cell in work))

    await benchmark()
