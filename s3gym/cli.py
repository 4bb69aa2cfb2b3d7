"""The command line: each command calls one function. Heavy imports happen inside the command that needs them.

Exit codes: 0 all well; 1 something failed and is named; 2 the request was wrong and nothing was done.
"""

import sys
from collections.abc import Callable
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


def request_options(command: F) -> F:
    """The options that say what to measure."""
    options = [
        click.argument("config_file", metavar="[CONFIG]", required=False, type=click.Path(path_type=Path)),
        click.option("--model", "models", multiple=True, help="player:<name> or a litellm name; repeatable."),
        click.option("--game", "games", multiple=True, help="Repeatable; default: the suite."),
        click.option("--pathway", "pathways", multiple=True, help="none, history, memory, training; repeatable."),
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

    given = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    return load_config(
        config_file, {key: value for key, value in given.items() if value not in (None, [])}, assignments
    )


@main.command()
@request_options
@DATA
@click.option("--dry-run", is_flag=True, help="Say what would be done and what it takes at most; do nothing.")
def run(data: Path, dry_run: bool, **request: Any) -> None:
    """Measure what CONFIG (a TOML file) and the options ask for, and write the report."""
    import signal

    from s3gym.terminal import running

    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))  # as batch systems stop
    config = _config(**request)
    if dry_run:
        running.show_estimate(config, data)
        return
    sys.exit(running.run(config, data))


@main.command()
@request_options
@DATA
def status(data: Path, **request: Any) -> None:
    """Show which cells are done and which stages are missing; without a request, of the latest run."""
    from s3gym.terminal import running

    asked = any(value for value in request.values())
    running.show_status(_config(**request) if asked else None, data)


@main.command()
@DATA
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="HTML file; default: report.html in the data folder.",
)
@click.option("--run", "run_id", help="A run id, or 'all'; default: the latest run.")
def report(data: Path, out: Path | None, run_id: str | None) -> None:
    """Write the HTML report from cached tables; no model, key or server is needed."""
    from s3gym.report.render import render
    from s3gym.resampling import refresh
    from s3gym.warehouse import Warehouse

    warehouse = Warehouse(data, run_id, materialize=True)
    refresh(warehouse)
    click.echo(f"Report: {render(warehouse, out or data / 'report.html')}")


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
def sql(query: str | None, data: Path, output: str, out: Path | None, run_id: str | None, describe: str | None) -> None:
    """Run a read-only QUERY (text or a .sql file) on every table, view and mart; without one, list them."""
    from s3gym.terminal import reading

    reading.show_sql(query, data, output, out, run_id, describe)


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
    """Replay every stored episode from its seed and replies, and compare; then run the SQL checks."""
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
