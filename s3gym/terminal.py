"""What the commands show and ask in a terminal. Numbers come from SQL; here they are only laid out."""

import csv
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from s3gym import storage
from s3gym.config import RunConfig
from s3gym.games.base import EVALUATION, EXPLORATION
from s3gym.plan import GAMES, RunPlan, make_plan, missing
from s3gym.records import Anchor
from s3gym.registry import load, names

console = Console()
errors = Console(stderr=True)

SUMMARY = """
    select
        i.game, i.model_id, i.pathway, i.replicate,
        i.initial_score, i.last_score, i.valid_checkpoint_count, i.checkpoint_count, i.episode_count,
        g.mean_difference, g.difference_low, g.difference_high, g.pair_count, i.naba, i.normalised_last
    from improvement as i
    left join control_gain as g on g.cell_id = i.cell_id
    order by i.game, i.model_id, i.pathway, i.replicate
"""


def run(config: RunConfig, data: Path) -> int:
    """Measures, reports, summarises; the exit code."""
    from flows.benchmark import Todo, measure
    from s3gym.report.render import render
    from s3gym.warehouse import Warehouse

    started = time.perf_counter()
    progress = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("episodes, {task.fields[steps]} steps, {task.fields[cells]} cells"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=errors,
    )
    counts = {"step": 0, "cell": 0}

    def on_start(work: list[Todo]) -> None:
        episodes = sum(todo.episode_count for todo in work)
        tasks = sum(len(todo.stages) for todo in work)
        errors.print(
            f"{len(work)} cells, {tasks} stages, {episodes} episodes to do (at most {_most_calls(work)} model calls); "
            "starting the flow, which takes some seconds the first time ..."
        )
        progress.add_task("Measuring", total=episodes, steps=0, cells=f"0/{len(work)}")
        counts["cells"] = len(work)
        progress.start()

    def on_event(kind: str, number: int) -> None:
        if kind == "episode":
            progress.advance(progress.task_ids[0], number)
            return
        counts[kind] += number
        progress.update(progress.task_ids[0], steps=counts["step"], cells=f"{counts['cell']}/{counts['cells']}")

    try:
        outcome = measure(config, data, on_event, on_start)
    finally:
        progress.stop()
    if outcome.task_count:
        errors.print(f"{outcome.task_count} tasks in {time.perf_counter() - started:.1f} s")
    else:
        errors.print("Nothing to do: every stage is complete. No model was called and no server started.")
    warehouse = Warehouse(data, materialize=True)
    _print_summary(warehouse.sql(SUMMARY).to_dicts())
    out = render(warehouse, data / "report.html")
    console.print(f"Report: {out}", soft_wrap=True, highlight=False)
    for failure in outcome.failures:
        errors.print(f"[red]Failed:[/red] {escape(failure)}", soft_wrap=True)
    if outcome.failures:
        errors.print("Everything else is kept. Run the same command again: only what failed is tried once more.")
    return 1 if outcome.failures else 0


def show_estimate(config: RunConfig, data: Path) -> None:
    """What a run would do, and at most how many calls."""
    from flows.benchmark import todo

    plan = make_plan(config)
    if data.exists() and any(data.iterdir()):
        storage.check_version(data)
    work = todo(plan, data)
    episodes = sum(piece.episode_count for piece in work)
    console.print(
        f"{len(plan.cells)} cells, {len(list(plan.stages()))} stages; to do: {len(work)} cells, "
        f"{sum(len(piece.stages) for piece in work)} stages, {episodes} episodes, "
        f"at most {_most_calls(work)} model calls"
    )


def _most_calls(work: list[Any]) -> int:
    """Upper bound: every episode to its horizon, one judgment and one memory call an exploration episode."""
    calls = 0
    for piece in work:
        for stage in piece.stages:
            subject, count = stage.subject, stage.last - stage.first
            if stage.kind == "evaluate":
                calls += count * subject.evaluation.horizon
            elif stage.kind == "explore":
                calls += count * (subject.exploration.horizon + subject.pathway.IS_MODEL_ASKED)
            elif stage.kind == "self_judge":
                calls += count
            else:
                calls += subject.pathway.IS_MODEL_ASKED
    return calls


def show_status(config: RunConfig | None, data: Path) -> None:
    """Cells done and stages missing."""
    storage.check_version(data)
    plan = make_plan(config or _latest_config(data))
    table = Table("cell", "stages done", "to do", title=_requested(plan, data))
    for cell in plan.cells:
        left = [stage for stage in cell.stages if missing(data, stage)]
        first = f"{left[0].kind} @{left[0].checkpoint}" if left else ""
        table.add_row(escape(cell.record.cell_id), f"{len(cell.stages) - len(left)}/{len(cell.stages)}", first)
    console.print(table)


def _latest_config(data: Path) -> RunConfig:
    import json

    from s3gym.warehouse import Warehouse

    rows = Warehouse(data).sql("select config from stg_runs order by requested_at desc limit 1").to_dicts()
    if not rows:
        raise storage.StorageError(f"no run is recorded in {data}; run `s3gym run` first")
    return RunConfig.model_validate(json.loads(rows[0]["config"]))


def _requested(plan: RunPlan, data: Path) -> str:
    done = sum(1 for cell in plan.cells if not any(missing(data, stage) for stage in cell.stages))
    return f"run {plan.run.run_id}: {done} of {len(plan.cells)} cells done"


def show_sql(
    query: str | None, data: Path, output: str, out: Path | None, run_id: str | None, describe: str | None
) -> None:
    """Runs a query and shows or writes its result."""
    from s3gym.warehouse import Warehouse

    storage.check_version(data)
    warehouse = Warehouse(data, run_id)
    if describe:
        console.print(warehouse.describe(describe), markup=False, highlight=False)
        return
    if query is None:
        table = Table("layer", "view")
        for layer, name in warehouse.views():
            table.add_row(layer, name)
        console.print(table)
        return
    if query.endswith(".sql") and Path(query).is_file():
        query = Path(query).read_text()
    frame = warehouse.sql(query)
    if output == "parquet":
        if out is None:
            raise storage.StorageError("--format parquet needs --out FILE")
        frame.write_parquet(out)
        return
    if output == "table" and out is None:
        table = Table(*frame.columns)
        for row in frame.iter_rows():
            table.add_row(*("" if value is None else escape(str(value)) for value in row))
        console.print(table)
        return
    text = frame.write_json() if output == "json" else frame.write_csv()
    if out is None:
        click_echo(text)
    else:
        storage.write_text(out, text)


def click_echo(text: str) -> None:
    """Plain output that no markup, wrapping or colour touches."""
    import click

    click.echo(text.rstrip("\n"))


def show_games() -> None:
    """One line a game."""
    table = Table("game", "version", "score", "steps", "random", "expert", "players", "what it is")
    shipped = {(row["game"], row["player"]): row for row in _shipped_anchors() if row["phase"] == EVALUATION}
    for name in names(GAMES):
        module = load(GAMES, name, "game")
        game, card = module.GAME, (module.__doc__ or "").split("\n", 1)[0]
        ends = [shipped.get((name, player), {}).get("mean") for player in ("random", "expert")]
        shown = [f"{float(mean):.3g}" if mean else "" for mean in ends]
        table.add_row(
            name,
            str(game.VERSION),
            game.unit,
            str(game.evaluation.horizon),
            *shown,
            ", ".join(game.players),
            card,
        )
    console.print(table)


def _shipped_anchors() -> list[dict[str, str]]:
    path = Path(__file__).parent / "anchors.csv"
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def play_by_hand(game_id: str, phase: str, seed: int) -> None:
    """A person plays, with the text an agent sees; the score is told at the end, which no agent is."""
    game = load(GAMES, game_id, "game").GAME
    config = getattr(game, phase)
    state, rewards, end_reason = game.reset(config, seed), [], None
    console.print(game.rules(config), markup=False, highlight=False)
    console.print("\nWrite an action, or nothing to stop.\n")
    for _ in range(config.horizon):
        console.print(game.render(game.view(state)), markup=False, highlight=False)
        try:
            text = console.input("Answer: ", markup=False)
        except EOFError:
            text = ""
        if not text.strip():
            break
        taken = game.take(state, text)
        state, end_reason = taken.outcome.state, taken.outcome.end_reason
        rewards.append(taken.outcome.reward)
        console.print(f"Feedback: {taken.outcome.feedback}\n", markup=False, highlight=False)
        if end_reason is not None:
            break
    console.print(game.render(game.view(state)), markup=False, highlight=False)
    ended = f"ended by {end_reason}" if end_reason else "stopped or out of steps"
    console.print(
        f"\n{len(rewards)} steps, {ended}. Final score: {game.final_score(rewards):g} {game.unit}",
        highlight=False,
    )


def show_episode(episode: str, data: Path) -> None:
    """Prints a stored episode step by step."""
    from s3gym.warehouse import Warehouse

    storage.check_version(data)
    warehouse = Warehouse(data)
    text = episode.replace("'", "''")
    found = warehouse.sql(
        f"select * from stg_episodes where starts_with(episode_id, '{text}') order by episode_id"
    ).to_dicts()
    exact = [row for row in found if row["episode_id"] == episode] or found
    if len(exact) != 1:
        some = ", ".join(row["episode_id"] for row in exact[:5]) or "none"
        raise storage.StorageError(f"{len(exact)} episodes begin with {episode!r} ({some}); give a whole episode_id")
    row = exact[0]
    own = str(row["episode_id"]).replace("'", "''")
    steps = warehouse.sql(f"select * from stg_steps where episode_id = '{own}' order by step_index").to_dicts()
    console.print(f"{row['episode_id']}  seed {row['seed']}  {row['status']}", markup=False, highlight=False)
    for step in steps:
        console.rule(f"step {step['step_index']}")
        console.print(step["observation"], markup=False, highlight=False)
        for name in ("reasoning", "reply", "error_message"):
            if step[name] is not None:
                console.print(f"\n{name}: {step[name]}", markup=False, highlight=False)
        told = ("action", "action_status", "self_score", "verifier_reward", "feedback")
        console.print(
            "\n" + "   ".join(f"{name}: {_plain(step[name])}" for name in told), markup=False, highlight=False
        )
    console.rule("end")
    console.print(row["final_observation"], markup=False, highlight=False)
    console.print(f"\n{row['end_reason']}; final score {_plain(row['final_score'])}", markup=False, highlight=False)


def verify(data: Path) -> int:
    """Replays everything stored; the exit code."""
    from s3gym.verification import verify_folder
    from s3gym.warehouse import Warehouse

    count = wrong = 0
    for verdict in verify_folder(data):
        count += 1
        wrong += bool(verdict.problems)
        for problem in verdict.problems:
            console.print(
                f"{verdict.episode_id}: {problem}", style="red", markup=False, highlight=False, soft_wrap=True
            )
    offending = {name: rows for name, rows in Warehouse(data, "all").checks().items() if rows}
    for name, rows in offending.items():
        console.print(f"check {name}: {rows} offending rows", style="red", highlight=False)
    console.print(f"{count} episodes replayed, {wrong} differ; {len(offending)} SQL checks failed", highlight=False)
    return 1 if wrong or offending else 0


def measure_anchors(games: tuple[str, ...], episode_count: int, out: Path) -> None:
    """Measures every reference player and writes the table as CSV."""
    import io

    from s3gym.protocol.anchors import measure_anchor

    rows = []
    for game_id in games or names(GAMES):
        game = load(GAMES, game_id, "game").GAME
        for phase in (EXPLORATION, EVALUATION):
            for player in game.players:
                anchor = measure_anchor(game, phase, player, episode_count)
                rows.append(asdict(anchor))
                error = (
                    "exact" if anchor.episode_count == 0 else f"+- {anchor.standard_error:.3g} ({anchor.episode_count})"
                )
                console.print(f"{game_id} {phase} {player}: {anchor.mean:.4g} {error}", highlight=False)
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Anchor)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    storage.write_text(out, text.getvalue())
    console.print(f"Anchors: {out}", highlight=False)


def _print_summary(rows: list[dict[str, Any]]) -> None:
    table = Table(title="Mean held-out score, and the gain against the control on the same instances (95 % interval)")
    for name in ("game", "model", "pathway"):
        table.add_column(name)
    for name in ("first", "last", "gain against none", "pairs", "NABA", "normalised"):
        table.add_column(name, justify="right")
    for row in rows:
        gain = row["mean_difference"]
        interval = (
            f"{gain:+.2f} [{row['difference_low']:+.2f}, {row['difference_high']:+.2f}]"
            if (gain is not None and row["difference_low"] is not None)
            else _plain(gain)
        )
        replicate = f" r{row['replicate']}" if row["replicate"] else ""
        table.add_row(
            row["game"],
            escape(row["model_id"]) + replicate,
            row["pathway"],
            _plain(row["initial_score"]),
            _plain(row["last_score"]),
            interval,
            _plain(row["pair_count"]),
            _plain(row["naba"]),
            _plain(row["normalised_last"]),
        )
    console.print(table)


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
