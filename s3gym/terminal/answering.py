"""``sql``: one query and its result, the list of views, and the views written out for other programs."""

import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from s3gym import storage
from s3gym.export.views import write_views
from s3gym.terminal.console import console, errors, exact, inert, prose, verbatim
from s3gym.warehouse import Warehouse

if TYPE_CHECKING:
    import polars as pl


def run_query(query: str | None, data: Path, run_id: str | None, output: str, out: Path | None) -> None:
    """Runs a query, given as text, as a file or on standard input, and shows or writes its result; none lists views."""
    text = _text_of(query)
    warehouse = Warehouse(data, run_id)
    if not text.strip():
        list_views(warehouse)
        return
    if output in ("parquet", "table") and (out is None) == (output == "parquet"):
        raise storage.StorageError(f"--format {output} {'needs' if out is None else 'cannot go to'} --out FILE")
    with cancelled_by_signal(warehouse.cancel):
        frame = warehouse.sql(text)
    note_outdated(warehouse, text)
    if out is None:
        show_frame(frame, output)
    elif output == "parquet":
        content = io.BytesIO()
        frame.write_parquet(content)
        storage.write_bytes(out, content.getvalue())
    else:
        storage.write_text(out, _text(frame, output))


def list_views(warehouse: Warehouse) -> None:
    """Shows the names of all views by layer, and those of the tables that they rest on."""
    table = Table("layer", "view")
    for layer, name in warehouse.views():
        table.add_row(layer, name)
    for name in warehouse.columns():
        if name.startswith("raw."):
            table.add_row("raw", name)
    console.print(table)


def describe_view(view: str, data: Path, run_id: str | None) -> None:
    """Shows the documentation of a view."""
    verbatim(Warehouse(data, run_id).describe(view))


def export_views(out: Path, data: Path, run_id: str | None) -> None:
    """Writes the views for plain DuckDB."""
    warehouse = Warehouse(data, run_id)
    for path in write_views(warehouse, run_id, out):
        prose(f"Views: {path}")
    _note(sorted(warehouse.outdated()))


def note_outdated(warehouse: Warehouse, query: str) -> None:
    """Says which views of a query lack rows because what they rest on has not been computed yet."""
    _note(sorted(name for name in warehouse.outdated() if re.search(rf"\b{name}\b", query)))


def show_frame(frame: "pl.DataFrame", output: str, most: int | None = None) -> None:
    """Prints a result; as a table of at most so many rows."""
    if output != "table":
        exact(_text(frame, output).rstrip())
        return
    table = Table(*map(_cell, frame.columns))
    for row in frame.head(frame.height if most is None else most).iter_rows():
        table.add_row(*("" if value is None else _cell(value) for value in row))
    console.print(table)


@contextmanager
def cancelled_by_signal(cancel: Callable[[], None]) -> Iterator[None]:
    """Calls ``cancel`` on Ctrl-C, at once.

    While DuckDB computes, Python gets round to its own handlers late or never; the number of a signal is written to a
    pipe right away, and a thread waits at its other end.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def watch() -> None:
        while told := os.read(reading, 1):
            if told[0] == signal.SIGINT:
                cancel()

    handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    pipe = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(pipe)
        signal.signal(signal.SIGINT, handler)
        os.close(writing)
        watcher.join()
        os.close(reading)


def _text_of(query: str | None) -> str:
    """The query itself, what a file named like one holds, or what is piped in."""
    if query is None:
        return "" if sys.stdin.isatty() else sys.stdin.read()
    if not query.endswith(".sql") or (re.search(r"\s", query) and not Path(query).exists()):
        return query
    try:
        return Path(query).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise storage.StorageError(f"{query} cannot be read as UTF-8 text: {error}") from None


def _note(outdated: list[str]) -> None:
    if outdated:
        errors.print(
            f"Note: {', '.join(outdated)}: not yet computed for the episodes as they are now; `s3gym report` does it",
            soft_wrap=True,
        )


def _text(frame: "pl.DataFrame", output: str) -> str:
    return frame.write_json() if output == "json" else _flat(frame).write_csv()


def _cell(value: object) -> str:
    """A value in a table, without markup and control characters of its own."""
    return escape(inert(str(value)))


def _flat(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Lists and structs as JSON text, which CSV can hold."""
    import polars as pl

    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    return frame.with_columns(pl.Series(name, map(json.dumps, frame[name].to_list())) for name in nested)
