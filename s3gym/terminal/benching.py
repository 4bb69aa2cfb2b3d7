"""``bench``: how fast the program is on this machine, laid out beside what it is compared with."""

import json
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from s3gym.bench.environment import PeerError
from s3gym.bench.games import PASS_SECONDS, Parts, Speed, measure
from s3gym.bench.host import Host, calibrate, processor_name, python_name
from s3gym.bench.reference import LOOP_TARGET, PROMPT_TARGET, SOURCE, compare
from s3gym.bench.textarena import PeerRow, PeerSpeeds, measure_textarena
from s3gym.registry import GAMES, load, names
from s3gym.terminal.console import console, errors, verbatim


def bench_games(
    games: tuple[str, ...], phase: str, steps: int, repeat: int, has_textarena: bool, env: Path | None, output: str
) -> int:
    """Times the games and shows the result; the exit code, 1 when TextArena was wanted and could not be had."""
    entries = [load(GAMES, name, "game").GAME for name in dict.fromkeys(games or names(GAMES))]
    speeds, calibrations = [], [calibrate()]
    with Progress(
        TextColumn("Timing {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=errors,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=len(entries) * repeat)

        def on_repeat() -> None:
            progress.advance(task)
            calibrations.append(calibrate())

        for game in entries:
            progress.update(task, description=game.id)
            speeds.append(measure(game, phase, steps, repeat, on_repeat))
    peers, failure = None, None
    if has_textarena:
        try:
            with errors.status(f"TextArena {'in ' + str(env) if env else 'in a temporary environment'} ..."):
                peers = measure_textarena([game.id for game in entries], steps, repeat, env)
        except PeerError as error:
            failure = error
    host = Host(python_name(), processor_name(), tuple(calibrations))
    if output == "json":
        verbatim(json.dumps(as_json(host, speeds, peers), indent=2))
    else:
        _show(host, speeds, peers)
    if failure is not None:
        errors.print(f"Failed: {failure}", markup=False, highlight=False, soft_wrap=True)
        return 1
    return 0


def as_json(host: Host, speeds: list[Speed], peers: PeerSpeeds | None) -> dict[str, Any]:
    """All figures; null where there is nothing to compare with."""
    return {
        "host": {
            "python": host.python,
            "processor": host.processor,
            "calibration_best_per_second": max(host.calibrations),
            "calibration_worst_per_second": min(host.calibrations),
        },
        "reference": {"source": SOURCE, "loop_target": LOOP_TARGET, "prompt_target": PROMPT_TARGET},
        "games": [_speed_json(speed) for speed in speeds],
        "textarena": peers and {"version": peers.version, "games": [_peer_json(row) for row in peers.rows]},
    }


def _speed_json(speed: Speed) -> dict[str, Any]:
    comparison = compare(speed)
    return {
        "game": speed.game,
        "phase": speed.phase,
        "step_count": speed.loop.step_count,
        "episode_count": speed.loop.episode_count,
        "loop_steps_per_second": speed.loop.steps_per_second,
        "prompt_steps_per_second": speed.prompt.steps_per_second,
        "resets_per_second": speed.resets_per_second,
        "shares": speed.parts.shares(),
        "reference": comparison
        and {
            "size": comparison.reference.size,
            "loop_steps_per_second": comparison.reference.loop,
            "prompt_steps_per_second": comparison.reference.prompt,
            "loop_ratio": comparison.loop_ratio,
            "prompt_ratio": comparison.prompt_ratio,
            "is_loop_target_reached": comparison.is_loop_target_reached,
            "is_prompt_target_reached": comparison.is_prompt_target_reached,
        },
    }


def _peer_json(row: PeerRow) -> dict[str, Any]:
    return {
        "game": row.game,
        "environment": row.environment,
        "size": row.size,
        "loop_steps_per_second": row.loop and row.loop.steps_per_second,
        "prompt_steps_per_second": row.prompt and row.prompt.steps_per_second,
        "error": row.error,
    }


def _show(host: Host, speeds: list[Speed], peers: PeerSpeeds | None) -> None:
    console.print(_speed_table(speeds))
    best, worst = max(host.calibrations), min(host.calibrations)
    verbatim(
        "loop: reset, random player, step; loop + prompt: also the observation of every step and the rules of every "
        f"episode. CPU time of one core, best pass; a pass begins no episode after {PASS_SECONDS:g} s.\n"
        f"Reference: {SOURCE}. The ratios take it as published: it ran on a similar, noisy core at another time.\n"
        f"Host: {host.python} on {host.processor}; calibration, a fixed loop of plain Python: best {best:,.0f}, worst "
        f"{worst:,.0f} iterations per CPU second. The further apart, the noisier the core was."
    )
    console.print(_parts_table(speeds))
    if peers is not None:
        console.print(_peer_table(speeds, peers))


def _table(title: str, words: list[str], numbers: list[str]) -> Table:
    table = Table(title=title)
    for heading in words:
        table.add_column(heading)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def _speed_table(speeds: list[Speed]) -> Table:
    table = _table(
        f"Steps per second, {speeds[0].phase} configurations",
        ["game", "reference"],
        ["loop", "its loop", f"aim {LOOP_TARGET:g}x", "loop + prompt", "its loop + prompt", f"aim {PROMPT_TARGET:g}x"],
    )
    for speed in speeds:
        comparison = compare(speed)
        loop, prompt = f"{speed.loop.steps_per_second:,.0f}", f"{speed.prompt.steps_per_second:,.0f}"
        if comparison is None:
            table.add_row(speed.game, "-", loop, "-", "-", prompt, "-", "-")
            continue
        reference = comparison.reference
        table.add_row(
            speed.game,
            reference.size,
            loop,
            f"{reference.loop:,}",
            ratio_text(comparison.loop_ratio, comparison.is_loop_target_reached),
            prompt,
            f"{reference.prompt:,}",
            ratio_text(comparison.prompt_ratio, comparison.is_prompt_target_reached),
        )
    return table


def _parts_table(speeds: list[Speed]) -> Table:
    table = _table("Where the time of loop + prompt goes", ["game"], [*Parts._fields, "resets per second"])
    for speed in speeds:
        shares = (f"{share:.0%}" for share in speed.parts.shares().values())
        table.add_row(speed.game, *shares, f"{speed.resets_per_second:,.0f}")
    return table


def ratio_text(ratio: float, is_reached: bool) -> str:
    """Such as ``2.41x reached``."""
    return f"{ratio:.2f}x {'reached' if is_reached else 'missed'}"


def _peer_table(speeds: list[Speed], peers: PeerSpeeds) -> Table:
    own = {speed.game: speed for speed in speeds}
    table = _table(
        f"TextArena {peers.version}, timed in the same run",
        ["game", "environment", "what is played"],
        ["loop", "loop + prompt", "s3gym, loop", "s3gym, loop + prompt"],
    )
    for row in peers.rows:
        if row.loop is None or row.prompt is None:
            table.add_row(row.game, row.environment, f"cannot run: {row.error}", *"----")
            continue
        loop, prompt = row.loop.steps_per_second, row.prompt.steps_per_second
        speed = own[row.game]
        table.add_row(
            row.game,
            row.environment,
            row.size,
            f"{loop:,.0f}",
            f"{prompt:,.0f}",
            f"{speed.loop.steps_per_second / loop:.2f}x",
            f"{speed.prompt.steps_per_second / prompt:.2f}x",
        )
    return table
