"""The command line: each command calls one function. Heavy imports happen inside the command that needs them.

Exit codes: 0 all well; 1 something failed and is named; 2 the request was wrong and nothing was done.
"""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from s3gym import __version__
from s3gym.errors import Explained

F = TypeVar("F", bound=Callable[..., Any])
DATA = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("data"),
    help="Data folder.",
    show_default=True,
)


class _Commands(click.Group):
    """Turns a wrong request into one sentence and exit code 2, and names the nearest command for a mistyped one."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("\nStopped. What is finished is kept: the same command goes on from there.", err=True)
            sys.exit(130)
        except Explained as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(2)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Finds the command, or fails with the nearest names."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from s3gym.registry import UnknownName

            raise click.UsageError(str(UnknownName("command", args[0], self.list_commands(ctx))))
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="s3gym")
def main() -> None:
    """Does an LLM agent get better from its own experience, and if not, which link breaks?"""
    if Path(".env").is_file():
        _take_keys(Path(".env"))


def _take_keys(file: Path) -> None:
    """Adds what a file says to the environment, whose own values hold; nothing of it is kept anywhere."""
    from dotenv import load_dotenv

    try:
        load_dotenv(file)
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}; expected lines such as OPENAI_API_KEY=...") from None


def request_options(command: F) -> F:
    """The options that say what to measure."""
    options = [
        click.argument("config_file", metavar="[CONFIG]", required=False, type=click.Path(path_type=Path)),
        click.option("--model", "models", multiple=True, help="player:<name> or a litellm name; repeatable."),
        click.option("--game", "games", multiple=True, help="Repeatable; default: the suite."),
        click.option("--pathway", "pathways", multiple=True, help="none, history, memory, training; repeatable."),
        click.option(
            "--intervention", "interventions", multiple=True, help="A link to replace, beside none; or all; repeatable."
        ),
        click.option("--suite", help="paper or full."),
        click.option("--scale", help="smoke, small (default) or paper."),
        click.option("--replicates", type=int, help="Independent repetitions of every cell."),
        click.option("--seed", type=int, help="Base seed."),
        click.option("--parallel", type=int, help="Most calls in flight at one endpoint."),
        click.option("--max-calls", type=int, help="Stop at so many model calls of the run, restarts included."),
        click.option("--max-cost", type=float, help="Stop at so many US dollars of the run, restarts included."),
        click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Any other setting, as in TOML."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _config(config_file: Path | None, assignments: tuple[str, ...], **values: Any) -> Any:
    from s3gym.config import load_config

    return load_config(config_file, _given(values), assignments)


def _repeated(data: Path, source: str, config_file: Path | None, assignments: tuple[str, ...], **values: Any) -> Any:
    """The configuration of an earlier run, with what is given on top."""
    from s3gym.config import load_config
    from s3gym.terminal import starting

    if config_file is not None:
        raise click.UsageError("--from names a run and CONFIG a file: give one of them, and --set for the rest")
    given = _given(values)
    return load_config(starting.repeated(starting.stored_request(data, source), given), given, assignments)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Options that were given, by the name of their setting."""
    listed = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    return {key: value for key, value in listed.items() if value not in (None, [])}


@main.command()
@request_options
@DATA
@click.option("--from", "source", metavar="RUN", help="Ask for what an earlier run did; its id, or how it begins.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it takes at most; do nothing.")
def run(data: Path, source: str | None, dry_run: bool, **request: Any) -> None:
    """Measure what CONFIG (a TOML file) and the options ask for, and write the report."""
    import signal

    from s3gym.terminal import running

    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))  # as batch systems stop
    config = _config(**request) if source is None else _repeated(data, source, **request)
    if dry_run:
        running.show_estimate(config, data)
        return
    sys.exit(running.run(config, data))


@main.command()
@click.argument("file", default="s3gym.toml", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", "is_forced", is_flag=True, help="Write over a file that is there.")
def init(file: Path, is_forced: bool) -> None:
    """Write FILE (s3gym.toml unless named), a request with every setting explained and at its default."""
    from s3gym.terminal import starting

    starting.write_example(file, is_forced)


@main.command()
@request_options
@DATA
@click.option("--cron", required=True, help='When, such as "0 3 * * 1": Mondays at 3:00; or @daily, @weekly.')
@click.option("--timezone", default="UTC", show_default=True, help="Of the schedule, such as Europe/Berlin.")
@click.option(
    "--while-running",
    type=click.Choice(["wait", "skip"]),
    default="wait",
    show_default=True,
    help="What a refresh does that comes due while another is at work on the folder.",
)
@click.option("--remeasure", "is_remeasured", is_flag=True, help="Ask hosted models anew each time, as of that day.")
def serve(
    data: Path,
    cron: str,
    timezone: str,
    while_running: str,
    is_remeasured: bool,
    config_file: Path | None,
    assignments: tuple[str, ...],
    **request: Any,
) -> None:
    """Refresh what CONFIG and the options ask for on a schedule, until Ctrl-C; CONFIG is read anew each time."""
    import signal

    from s3gym.terminal import serving

    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))  # as batch systems stop
    given = _given(request)
    sys.exit(serving.keep_schedule(data, cron, timezone, config_file, given, assignments, while_running, is_remeasured))


@main.command()
@request_options
@DATA
@click.option("--explain", "is_explained", is_flag=True, help="For each missing stage, which input changed, and how.")
def status(data: Path, is_explained: bool, **request: Any) -> None:
    """Show which cells are done and which stages are missing; without a request, of the latest run."""
    from s3gym.terminal import running

    asked = any(value for value in request.values())
    running.show_status(_config(**request) if asked else None, data, is_explained)


@main.command()
@DATA
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write; default, in the data folder: report.html or report.md, or report-part of a part.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md"]),
    help="A page with charts and the viewer of episodes, or its text and tables as Markdown; default: as --out ends.",
)
@click.option("--run", "run_id", help="A run id, or 'all'; default: the latest run.")
@click.option("--model", "models", multiple=True, help="Show only this model; repeatable.")
@click.option("--game", "games", multiple=True, help="Show only this game; repeatable.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Show all runs requested since that day, UTC.")
@click.option("--tables", type=click.Path(path_type=Path, file_okay=False), help="Folder for a CSV file of every mart.")
@click.option("--charts", type=click.Path(path_type=Path, file_okay=False), help="Folder for an image of every chart.")
@click.option("--chart-format", type=click.Choice(["svg", "png"]), default="svg", show_default=True)
def report(since: datetime | None, run_id: str | None, **request: Any) -> None:
    """Write the report from cached tables, of all or a part; no model, key or server is needed."""
    from s3gym.terminal import reporting

    if since and run_id not in (None, "all"):
        raise click.UsageError("--since is of all runs since that day and --run of one: leave one of them out")
    reporting.write_report(run_id=run_id, since=since and since.replace(tzinfo=UTC), **request)


@main.command()
@click.argument("query", required=False)
@DATA
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "csv", "parquet"]),
    default="table",
    show_default=True,
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file instead.")
@click.option("--run", "run_id", help="A run id, or 'all'; default: the latest run.")
@click.option("--describe", metavar="VIEW", help="Print a view's documentation.")
@click.option(
    "--export",
    "views",
    type=click.Path(path_type=Path),
    help="Write the views for plain DuckDB: a .sql or .duckdb file, or both into a folder.",
)
def sql(
    query: str | None,
    data: Path,
    output: str,
    out: Path | None,
    run_id: str | None,
    describe: str | None,
    views: Path | None,
) -> None:
    """Run a read-only QUERY (text, a .sql file, or piped in) on every table, view and mart.

    Without one, a terminal gets a shell, and anything else the list of views.
    """
    from s3gym.terminal import answering, shell

    if describe:
        answering.describe_view(describe, data, run_id)
    elif views:
        answering.export_views(views, data, run_id)
    elif query is None and out is None and sys.stdin.isatty() and sys.stdout.isatty():
        shell.converse(data, run_id, output)
    else:
        answering.run_query(query, data, run_id, output, out)


@main.group(cls=_Commands)
def export() -> None:
    """Write stored play to a file for other tools: JSON Lines or Parquet, as its name ends."""


def _export_options(command: F) -> F:
    options = [
        DATA,
        click.option("--run", "run_id", help="A run id, or 'all'; default: the latest run."),
        click.option(
            "--out",
            type=click.Path(path_type=Path, dir_okay=False),
            required=True,
            help="File that ends in .jsonl or .parquet.",
        ),
        click.option("--force", "is_forced", is_flag=True, help="Write over a file that is there."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@export.command("sft")
@_export_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["prompt-completion", "messages"]),
    default="prompt-completion",
    show_default=True,
    help="Prompt and answer apart, or one conversation, as TRL and datasets read them.",
)
def export_sft(data: Path, run_id: str | None, form: Any, out: Path, is_forced: bool) -> None:
    """Write the exploration steps that updates were trained on, with their prompts; no verifier reward is in it."""
    from s3gym.terminal import exporting

    exporting.export_sft(data, run_id, form, out, is_forced)


@export.command("trajectories")
@_export_options
@click.option(
    "--phase",
    "phases",
    type=click.Choice(["exploration", "evaluation"]),
    multiple=True,
    default=["exploration", "evaluation"],
    help="Repeatable; default: both.",
)
def export_trajectories(data: Path, run_id: str | None, phases: tuple[str, ...], out: Path, is_forced: bool) -> None:
    """Write whole episodes with their steps, self-scores and the verifier's rewards."""
    from s3gym.terminal import exporting

    exporting.export_trajectories(data, run_id, phases, out, is_forced)


@main.command()
@click.argument("game", required=False)
def games(game: str | None) -> None:
    """List the games with their scales; with GAME, its card: rules, actions, reward, splits, source."""
    from s3gym.terminal import scales

    if game is None:
        scales.show_games()
    else:
        scales.show_card(game)


@main.command()
@click.argument("game")
@click.option("--phase", type=click.Choice(["exploration", "evaluation"]), default="exploration", show_default=True)
@click.option("--seed", type=int, help="Names the instance; default: a random one, which is told.")
def play(game: str, phase: str, seed: int | None) -> None:
    """Play GAME yourself, with the text an agent sees; at the end you hear the score."""
    from s3gym.terminal import playing

    playing.play_by_hand(game, phase, seed)


@main.command()
@click.argument("episode")
@DATA
def replay(episode: str, data: Path) -> None:
    """Step through a stored EPISODE: its id, or the beginning of it."""
    from s3gym.terminal import reading

    reading.show_episode(episode, data)


@main.command()
@DATA
def verify(data: Path) -> None:
    """Replay every stored episode, work the marts' main numbers out again, compare, and run the SQL checks."""
    from s3gym.terminal import reading

    sys.exit(reading.verify(data))


@main.command()
@click.argument("key", required=False)
@DATA
@click.option("--stage", default="", help="Only of stages whose key begins so.")
@click.option("--model", help="Only of this model.")
@click.option("--failed", is_flag=True, help="Only those without an answer.")
@click.option("--limit", type=click.IntRange(min=1), default=30, show_default=True, help="The newest so many.")
@click.option("--format", "output", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
def calls(key: str | None, data: Path, stage: str, model: str | None, failed: bool, limit: int, output: str) -> None:
    """List the model calls, newest first; with KEY, or the beginning of it, show one whole."""
    from s3gym.terminal import calls

    if key is None:
        calls.list_calls(data, stage, model, failed, limit, output)
    elif stage or model or failed or output == "csv":
        raise click.UsageError("KEY names one call: leave --stage, --model and --failed out; csv is for lists")
    else:
        calls.show_call(data, key, output)


@main.group("data", cls=_Commands, invoke_without_command=True)
@DATA
@click.pass_context
def data_folder(context: click.Context, data: Path) -> None:
    """Care for the data folder; alone, show what is in it by table and stage, and what could go."""
    context.default_map = {name: {"data": data} for name in data_folder.commands}
    if context.invoked_subcommand is None:
        from s3gym.terminal import folder

        folder.show_data(data)


@data_folder.command("compact")
@DATA
def data_compact(data: Path) -> None:
    """Pack the many small files of complete stages into few, which reads faster; the rows stay the same."""
    from s3gym.terminal import folder

    folder.compact(data)


@data_folder.command("merge")
@click.argument("other", type=click.Path(path_type=Path, file_okay=False))
@DATA
def data_merge(other: Path, data: Path) -> None:
    """Add what the data folder OTHER has: rows, requests, model calls and weights, each once. OTHER is only read."""
    from s3gym.terminal import folder

    folder.merge(data, other)


@data_folder.command("migrate")
@DATA
def data_migrate(data: Path) -> None:
    """Bring a folder that an earlier version wrote up to date, in place."""
    from s3gym.terminal import folder

    folder.migrate(data)


@main.command()
@DATA
@click.option("--yes", "is_confirmed", is_flag=True, help="Delete it; without this, only say what that would be.")
def prune(data: Path, is_confirmed: bool) -> None:
    """Delete from the journal the calls of complete stages, whose answers the tables hold."""
    from s3gym.terminal import pruning

    pruning.prune(data, is_confirmed)


@main.command()
@click.option("--game", "games", multiple=True, help="Repeatable; default: all.")
@click.option(
    "--episodes",
    type=click.IntRange(min=2),
    default=200,
    show_default=True,
    help="At least so many where a mean is sampled; more until its standard error is 3 % of the scale.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Measure the configurations of the runs in this data folder and keep the result there.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("anchors.csv"),
    show_default=True,
    help="Without --data: the games' own configurations, as shipped in s3gym/anchors.csv; current rows are kept.",
)
def anchors(games: tuple[str, ...], episodes: int, data: Path | None, out: Path) -> None:
    """Measure the reference players that set the normalised scale."""
    from s3gym.terminal import measuring

    if data is None:
        measuring.measure_for_package(games, episodes, out)
    else:
        measuring.measure_for_folder(games, episodes, data)


@main.command()
@click.option("--game", "games", multiple=True, help="Repeatable; default: all.")
@click.option("--scale", type=click.Choice(["smoke", "small", "paper"]), default="small", show_default=True)
@click.option(
    "--gain",
    type=click.FloatRange(min=0, min_open=True),
    help="Look for a gain of this size, as a share of the way from the random to the expert player.",
)
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="Chance to find it.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Two-sided chance of a false alarm; divide it by the number of cells that are judged together.",
)
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.5,
    show_default=True,
    help="Assumed, of the scores of agent and control on one instance.",
)
@click.option(
    "--persistence",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Assumed: share of a difference's variance that its instance brings back at every checkpoint.",
)
def power(games: tuple[str, ...], scale: str, gain: float | None, **assumed: float) -> None:
    """Say, before anything is spent, how small a gain a scale would show, and what a gain of --gain needs."""
    from s3gym.power import Assumptions
    from s3gym.terminal import power

    power.show_power(games, scale, gain, Assumptions(**assumed))


@main.group(cls=_Commands)
def models() -> None:
    """See what a model can do."""


@models.command("check")
@click.argument("model")
@click.option("--base-url", help="An endpoint of your own.")
@click.option(
    "--max-output-tokens",
    type=click.IntRange(min=1),
    default=14_000,
    show_default=True,
    help="Most tokens of an answer, as in a run; lower it for a small model on a CPU.",
)
def models_check(model: str, base_url: str | None, max_output_tokens: int) -> None:
    """Try MODEL out on one tiny episode: what works, what is known of it, and what a run would lack."""
    from s3gym.terminal import checking

    sys.exit(checking.check_model(model, base_url, max_output_tokens))


@main.group(cls=_Commands)
def bench() -> None:
    """Measure how fast the program is on this machine."""


@bench.command("games")
@click.option("--game", "games", multiple=True, help="Repeatable; default: all.")
@click.option("--phase", type=click.Choice(["exploration", "evaluation"]), default="evaluation", show_default=True)
@click.option("--steps", type=click.IntRange(min=1), default=15_000, show_default=True, help="Steps of one pass.")
@click.option("--repeat", type=click.IntRange(min=1), default=5, show_default=True, help="Passes; the best counts.")
@click.option("--textarena", "has_textarena", is_flag=True, help="Time TextArena beside it; installed from PyPI.")
@click.option(
    "--env",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps TextArena's environment; default: a temporary one.",
)
@click.option("--format", "output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def bench_games(has_textarena: bool, env: Path | None, **request: Any) -> None:
    """Time the games: steps a second on one core with a random player, beside the reference platform's."""
    from s3gym.terminal import benching

    if env is not None and not has_textarena:
        raise click.UsageError("--env is where TextArena is installed: give --textarena as well")
    sys.exit(benching.bench_games(**request, has_textarena=has_textarena, env=env))


@bench.command("harness")
@click.option("--latency", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Seconds.")
@click.option("--in-flight", type=click.IntRange(min=1), default=64, show_default=True, help="Most calls at once.")
@click.option("--episodes", type=click.IntRange(min=1), default=64, show_default=True, help="Of 39 steps each.")
@click.option("--inspect", "has_inspect", is_flag=True, help="Time inspect_ai beside it; installed from PyPI.")
@click.option(
    "--env",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps inspect_ai's environment; default: a temporary one.",
)
@click.option("--format", "output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def bench_harness(
    latency: float, in_flight: int, episodes: int, has_inspect: bool, env: Path | None, output: str
) -> None:
    """Time the harness around its model calls: wall time over the ideal schedule, CPU a step, memory."""
    from s3gym.bench.harness import Load
    from s3gym.terminal import timing

    if env is not None and not has_inspect:
        raise click.UsageError("--env is where inspect_ai is installed: give --inspect as well")
    sys.exit(timing.bench_harness(Load(latency, in_flight, episodes), has_inspect, env, output))


@bench.command("sql")
@click.option("--steps", type=click.IntRange(min=1), default=10_000_000, show_default=True, help="Of the data made.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to be made and kept; default: a temporary one.",
)
@click.option("--format", "output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def bench_sql(steps: int, data: Path | None, output: str) -> None:
    """Time every mart over data made for it, all of them together and each by itself, and their memory."""
    from s3gym.terminal import querying

    sys.exit(querying.bench_sql(steps, data, output))


@bench.command("training")
@click.option("--model", help="local:<folder>, local:smollm2 ...; default: a random one of 10 million parameters.")
@click.option("--tokens", type=click.IntRange(min=64), default=400, show_default=True, help="Of a row.")
@click.option("--batch", type=click.IntRange(1, 256), default=4, show_default=True, help="Rows at once.")
@click.option("--steps", type=click.IntRange(min=1), default=4, show_default=True, help="Of an update.")
@click.option("--new-tokens", type=click.IntRange(min=1), default=32, show_default=True, help="Most of an answer.")
@click.option("--repeat", type=click.IntRange(min=1), default=3, show_default=True, help="Passes; the best counts.")
@click.option("--format", "output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def bench_training(output: str, **given: Any) -> None:
    """Time an update and an evaluation with its weights, beside transformers and peft alone."""
    from s3gym.bench.training import Load
    from s3gym.terminal import comparing

    sys.exit(comparing.bench_training(Load(**given), output))
