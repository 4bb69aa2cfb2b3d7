"""``sql``, ``replay`` and ``verify``: what is stored, read again."""

import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from s3gym import storage
from s3gym.terminal.board import palette_of, show
from s3gym.terminal.console import ask, console, errors, exact, inert, plain, verbatim
from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse

if TYPE_CHECKING:
    import polars as pl


def show_sql(
    query: str | None, data: Path, output: str, out: Path | None, run_id: str | None, describe: str | None
) -> None:
    """Runs a query and shows or writes its result."""
    warehouse = Warehouse(data, run_id)
    if describe:
        verbatim(warehouse.describe(describe))
        return
    if query is None:
        table = Table("layer", "view")
        for layer, name in warehouse.views():
            table.add_row(layer, name)
        console.print(table)
        return
    if query.endswith(".sql") and Path(query).is_file():
        try:
            query = Path(query).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise storage.StorageError(f"{query} cannot be read as UTF-8 text: {error}") from None
    frame = warehouse.sql(query)
    if outdated := sorted(name for name in warehouse.outdated() if re.search(rf"\b{name}\b", query)):
        errors.print(
            f"Note: {', '.join(outdated)}: not yet computed for the episodes as they are now; `s3gym report` does it",
            soft_wrap=True,
        )
    if output in ("parquet", "table") and (out is None) == (output == "parquet"):
        raise storage.StorageError(f"--format {output} {'needs' if out is None else 'cannot go to'} --out FILE")
    if output == "parquet" and out is not None:
        content = io.BytesIO()
        frame.write_parquet(content)
        storage.write_bytes(out, content.getvalue())
        return
    if output == "table":
        table = Table(*map(_cell, frame.columns))
        for row in frame.iter_rows():
            table.add_row(*("" if value is None else _cell(value) for value in row))
        console.print(table)
        return
    text = frame.write_json() if output == "json" else _flat(frame).write_csv()
    if out is None:
        exact(text.rstrip())
    else:
        storage.write_text(out, text)


def _cell(value: object) -> str:
    """A value in a table, without markup and control characters of its own."""
    return escape(inert(str(value)))


def _flat(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Lists and structs as JSON text, which CSV can hold."""
    import polars as pl

    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    return frame.with_columns(pl.Series(name, map(json.dumps, frame[name].to_list())) for name in nested)


def show_episode(episode: str, data: Path) -> None:
    """Prints a stored episode; a person at a terminal goes through it step by step."""
    warehouse = Warehouse(data)
    text = episode.replace("'", "''")
    found = warehouse.sql(
        f"select * from stg_episodes where starts_with(episode_id, '{text}') order by episode_id"
    ).to_dicts()
    matches = [row for row in found if row["episode_id"] == episode] or found
    if len(matches) != 1:
        some = ", ".join(row["episode_id"] for row in matches[:5]) or "none"
        raise storage.StorageError(
            f"{len(matches)} episodes begin with {episode!r} ({some}); give a whole episode_id, as listed by "
            '`s3gym sql "select cell_id, episode_id, final_score from int_cell_episodes"`'
        )
    row = matches[0]
    own = str(row["episode_id"]).replace("'", "''")
    steps = warehouse.sql(f"select * from stg_steps where episode_id = '{own}' order by step_index").to_dicts()
    palette = palette_of(row["game"])
    is_stepped = sys.stdin.isatty() and sys.stdout.isatty()
    verbatim(f"{row['episode_id']}  seed {row['seed']}  {row['status']}")
    for step in steps:
        console.rule(f"step {step['step_index'] + 1} of {len(steps)}")
        show(step["observation"], palette)
        for name in ("reasoning", "reply", "error_message"):
            if step[name] is not None:
                verbatim(f"\n{name}: {step[name]}")
        told = ("action", "action_status", "self_score", "verifier_reward", "feedback")
        verbatim("\n" + "   ".join(f"{name}: {plain(step[name])}" for name in told))
        if is_stepped:
            typed = ask("Enter: next step; a: all the rest; q: stop > ")
            if typed not in ("", "a"):
                return
            is_stepped = typed == ""
    console.rule("end")
    show(row["final_observation"], palette)
    verbatim(f"\n{row['end_reason']}; final score {plain(row['final_score'])}")


def verify(data: Path) -> int:
    """Replays everything stored; the exit code."""
    count = wrong = 0
    for verdict in verify_folder(data):
        count += verdict.is_replay
        wrong += bool(verdict.problems)
        for problem in verdict.problems:
            verbatim(f"{verdict.subject}: {problem}", "red")
    offending = {name: rows for name, rows in Warehouse(data, "all").checks().items() if rows}
    for name, rows in offending.items():
        console.print(f"check {name}: {rows} offending rows", style="red", highlight=False)
    console.print(f"{count} episodes replayed, {wrong} differ; {len(offending)} SQL checks failed", highlight=False)
    return 1 if wrong or offending else 0
