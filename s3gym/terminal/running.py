"""``run`` and ``status``: what is done, what is left, and how it went."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from flows.benchmark import Todo, check_models, measure, todo
from flows.logbook import keep_verdicts
from s3gym import storage
from s3gym.config import MAIN, ModelEntry, RunConfig
from s3gym.errors import Explained
from s3gym.estimate import Estimate, Span, estimate, most_calls, total
from s3gym.models.prices import prices_of
from s3gym.plan import Stage, make_plan, missing
from s3gym.registry import UnknownName
from s3gym.report.render import render
from s3gym.resampling import refresh
from s3gym.subjects import prices_in
from s3gym.terminal.console import console, errors, plain, verbatim
from s3gym.terminal.explaining import show_reasons
from s3gym.warehouse import Warehouse

SUMMARY = """
    select
        i.game, i.model_id, i.replicate,
        i.pathway || if(i.intervention = 'main', '', ', ' || i.intervention) as pathway,
        i.initial_score, i.last_score, i.valid_checkpoint_count, i.checkpoint_count, i.episode_count,
        g.mean_difference, g.difference_low, g.difference_high, g.pair_count, i.naba, i.normalised_last
    from improvement as i
    left join control_gain as g on g.cell_id = i.cell_id
    order by i.game, i.model_id, i.pathway, i.intervention != 'main', i.intervention, i.replicate
"""

UNUSABLE = """
    select
        cell_id, phase, ok_count + repaired_count as usable_count, step_count - failed_call_count as answered_count
    from action_validity
    where usable_rate < 0.5 and model_id not like 'player:%'
    order by cell_id, phase
"""
"""Cells of which more is wrong than their scores say; embedded players do it on purpose."""

ASSUMPTIONS = (
    "Lowest: episodes as short as their rules allow, replies of one token, all prompts from the provider's cache. "
    "Highest: every episode to its horizon, every reply of max_output_tokens = {limit:,}; set that lower to see what "
    "shorter replies take. Calls made again after a failure come on top; calls that the journal can answer are "
    "counted, but cost nothing. Without a model's own tokenizer its tokens are estimated; a price that nobody knows is "
    "unknown, and can be given in the config. No surcharge for very long prompts is in it."
)


def run(config: RunConfig, data: Path) -> int:
    """Measures, reports, summarises; the exit code."""
    if (data / storage.MARKER).exists():
        Warehouse(data)  # says now, not after the work, that an earlier request cannot be read
    started = time.perf_counter()
    progress = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("episodes, {task.fields[steps]} steps, {task.fields[cells]} cells{task.fields[trained]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=errors,
    )
    counts = {"step": 0, "cell": 0, "change": 0}

    def on_start(work: list[Todo]) -> None:
        episodes = sum(todo.episode_count for todo in work)
        tasks = sum(len(todo.stages) for todo in work)
        errors.print(
            f"{len(work)} cells, {tasks} stages, {episodes} episodes to do{_calls_to_come(work)}; "
            "starting the flow, which takes some seconds the first time ..."
        )
        progress.add_task("Measuring", total=episodes, steps=0, cells=f"0/{len(work)}", trained="")
        counts["cells"] = len(work)
        progress.start()

    def on_event(kind: str, number: int) -> None:
        if kind == "episode":
            progress.advance(progress.task_ids[0], number)
            return
        counts[kind] += number
        trained = f", {counts['change']} training steps" if counts["change"] else ""
        cells = f"{counts['cell']}/{counts['cells']}"
        progress.update(progress.task_ids[0], steps=counts["step"], cells=cells, trained=trained)

    try:
        outcome = measure(config, data, on_event, on_start, lambda told: errors.print(escape(told), soft_wrap=True))
    except Explained as error:
        if not progress.tasks:  # nothing was begun: a wrong request
            raise
        return _failed([str(error)])
    finally:
        progress.stop()
    if outcome.task_count:
        errors.print(f"{outcome.task_count} tasks in {time.perf_counter() - started:.1f} s")
    else:
        errors.print("Nothing to do: every stage is complete. No model was called and no server started.")
    try:
        warehouse = Warehouse(data, materialize=True)
        refresh(warehouse)
        if outcome.refresh is not None:
            keep_verdicts(data, outcome.refresh, warehouse)
        _print_summary(warehouse.sql(SUMMARY).to_dicts())
        for row in warehouse.sql(UNUSABLE).to_dicts():
            errors.print(
                f"[yellow]Note:[/yellow] {escape(row['cell_id'])}, {row['phase']}: {row['usable_count']} of "
                f'{row["answered_count"]} answers could be used; `s3gym sql "from action_validity"` says why not',
                soft_wrap=True,
                highlight=False,
            )
        verbatim(f"Report: {render(warehouse, data / 'report.html')}")
    except Explained as error:  # the run itself was done, so it is no wrong request
        outcome.failures.append(f"report: {error}")
    if outcome.stopped is not None:
        errors.print(f"[red]Stopped:[/red] {escape(outcome.stopped)}", soft_wrap=True)
    if outcome.failures:
        return _failed(outcome.failures)
    return 1 if outcome.stopped else 0


def _failed(failures: list[str]) -> int:
    for failure in failures:
        errors.print(f"[red]Failed:[/red] {escape(failure)}", soft_wrap=True)
    errors.print("Everything else is kept. Run the same command again: only what failed is tried once more.")
    return 1


def show_estimate(config: RunConfig, data: Path) -> None:
    """What a run would do, and between which bounds its calls, tokens and dollars will be."""
    plan = make_plan(config)
    storage.check_usable(data)
    work = todo(plan, data)
    try:
        check_models(work)
    except UnknownName:
        raise
    except Explained as error:  # such as a key: needed to run, not to plan
        errors.print(f"Note: {escape(str(error))}", soft_wrap=True)
    for sentence in plan.left_out:
        errors.print(f"Note: {escape(sentence)}", soft_wrap=True)
    episodes = sum(piece.episode_count for piece in work)
    lacking = _lacking(work)
    console.print(
        f"{len(plan.cells)} cells, {len(list(plan.stages()))} stages; to do: {len(work)} cells, "
        f"{sum(len(piece.stages) for piece in work)} stages, {episodes} episodes, "
        f"at most {most_calls(lacking)} model calls"
    )
    paid = {stage.model.model_id for stage, _ in lacking if not stage.model.is_free}
    if paid:
        entries = {entry.id: entry for entry in config.models}
        prices = {name: prices_of(name, prices_in(entries.get(name) or ModelEntry(id=name))) for name in paid}
        _print_estimates(estimate(lacking, prices))
        console.print(ASSUMPTIONS.format(limit=config.max_output_tokens), soft_wrap=True)


def show_status(config: RunConfig | None, data: Path, is_explained: bool = False) -> None:
    """Cells done and stages missing; explained, why each of them is."""
    storage.check_version(data)
    plan = make_plan(config or _latest_config(data))
    if is_explained:
        show_reasons(plan, data)
        return
    table = Table("cell", "stages done", "to do")
    done = 0
    for cell in plan.cells:
        left = [stage for stage in cell.stages if missing(data, stage)]
        done += not left
        first = f"{left[0].kind} @{left[0].checkpoint}" if left else ""
        table.add_row(escape(cell.record.cell_id), f"{len(cell.stages) - len(left)}/{len(cell.stages)}", first)
    table.title = f"run {plan.run.run_id}: {done} of {len(plan.cells)} cells done"
    console.print(table)


def _calls_to_come(work: list[Todo]) -> str:
    """How many calls of models that are no embedded players; nothing where there are none."""
    lacking = [piece for piece in _lacking(work) if not piece[0].model.is_free]
    return f" (at most {most_calls(lacking)} model calls)" if lacking else ""


def _lacking(work: list[Todo]) -> list[tuple[Stage, Sequence[tuple[int, int]]]]:
    return [(stage, gaps) for piece in work for stage, gaps in zip(piece.stages, piece.gaps, strict=True)]


def _print_estimates(estimates: list[Estimate]) -> None:
    is_told = any(row.intervention not in (None, MAIN) for row in estimates)
    table = Table("model", *(["intervention"] if is_told else []), title="Lowest to highest of what it takes")
    for name in ("calls", "prompt tokens", "completion tokens", "dollars"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in [*estimates, total(estimates)] if len(estimates) > 1 else estimates:
        tokens = ["-", "-", "free"]
        if not row.is_free:
            dollars = "unknown" if row.dollars is None else _span(row.dollars, _dollars)
            tokens = [_span(row.prompt_tokens), _span(row.completion_tokens), dollars]
        whose = [escape(row.model_id), *([row.intervention or ""] if is_told else [])]
        table.add_row(*whose, _span(row.calls), *tokens)
    console.print(table)


def _span(span: Span, write: Callable[[float], str] = "{:,.0f}".format) -> str:
    low, high = write(span.low), write(span.high)
    return low if low == high else f"{low} to {high}"


def _dollars(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 0.01 or not amount else f"{amount:.1g}"


def _latest_config(data: Path) -> RunConfig:
    rows = Warehouse(data).sql("select config from stg_runs order by requested_at desc limit 1").to_dicts()
    if not rows:
        raise storage.StorageError(f"no run is recorded in {data}; run `s3gym run` first")
    return RunConfig.model_validate_json(rows[0]["config"])


def _print_summary(rows: list[dict[str, Any]]) -> None:
    table = Table(title="Mean held-out score, and the gain against the control on the same instances (95 % interval)")
    for name in ("game", "model", "pathway"):
        table.add_column(name, no_wrap=True)
    for name in ("first", "last", "gain against none", "pairs", "NABA", "normalised"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        gain = row["mean_difference"]
        interval = "-"
        if gain is not None:
            low, high = row["difference_low"], row["difference_high"]
            interval = f"{gain:+.2f} [{'n/a' if low is None else f'{low:+.2f}, {high:+.2f}'}]"
        replicate = f" r{row['replicate']}" if row["replicate"] else ""
        table.add_row(
            row["game"],
            escape(row["model_id"]) + replicate,
            row["pathway"],
            plain(row["initial_score"]),
            plain(row["last_score"]),
            interval,
            plain(row["pair_count"]),
            plain(row["naba"]),
            plain(row["normalised_last"]),
        )
    console.print(table)
