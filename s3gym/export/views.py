"""The tables and views of a data folder as SQL that plain DuckDB runs, and as a database file of views.

What has a row an episode or a step is not copied: its views read the folder's Parquet by paths relative to it, so that
the two may be moved together. What was asked for is small, and read many times by each mart; it is a table.
DuckDB takes a relative path from the directory it was started in, else from those in ``file_search_path``.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from s3gym import storage
from s3gym.derived import DERIVED
from s3gym.export.files import ExportError
from s3gym.records import TABLES
from s3gym.warehouse import View, Warehouse, make_views, quoted, read_views, reading

SCRIPT, DATABASE = ".sql", ".duckdb"

_HEAD = """\
-- The tables and views of an s3gym data folder, for DuckDB 2.0 or newer. Paths are relative to the folder: start
-- DuckDB in it, or tell where it is: set file_search_path = 'FOLDER'. Rows that a run has added since are not there.
create schema if not exists raw"""
_RUN = "getvariable('run_id')"
"""What the views ask for the run to show."""


def write_views(warehouse: Warehouse, run_id: str | None, out: Path) -> list[Path]:
    """Writes the script, the database, or both into a folder, as the name ends; gives back the paths.

    Args:
        warehouse: The data folder.
        run_id: The run that the warehouse was opened for; None leaves the choice to the variable ``run_id`` of a
            session, and without it shows the latest run.
        out: A name that ends in ``.sql`` or ``.duckdb``, else a folder.

    Raises:
        ExportError: DuckDB cannot make the views.
    """
    paths = [out] if out.suffix in (SCRIPT, DATABASE) else [out / f"views{end}" for end in (SCRIPT, DATABASE)]
    tables = [_HEAD, *_tables(warehouse)]
    chosen = _RUN if run_id is None else quoted(run_id)
    views = [view._replace(text=view.text.replace(_RUN, chosen).rstrip()) for view in read_views().values()]
    for path in paths:
        if path.suffix == SCRIPT:
            made = [f"create or replace view {view.name} as\n{view.text}" for view in views]
            storage.write_text(path, "".join(f"{statement};\n\n" for statement in tables + made))
        else:
            storage.write_bytes(path, _database(tables, views, warehouse.data))
    return paths


def _tables(warehouse: Warehouse) -> Iterator[str]:
    made = warehouse.derived
    derived = {table: storage.derived_file(warehouse.data, table, made.run_id, made.key) for table in DERIVED}
    rows = {**warehouse.rows, **{table: [storage.Rows(path, ())] for table, path in derived.items() if path.exists()}}
    for name in warehouse.columns():
        schema, _, table = name.rpartition(".")
        if schema == "raw":
            is_small = table not in TABLES or table in (*storage.REQUEST_TABLES, *storage.LOG_TABLES)
            kind = "table" if is_small else "view"
            found = rows.get(table)
            content = reading(found, warehouse.data) if found else _holding(warehouse, name)
            yield f"create or replace {kind} {name} as {content}"


def _holding(warehouse: Warehouse, table: str) -> str:
    """The rows themselves, of a table that has no file in the folder: it is empty, or comes with the package."""
    columns = warehouse.sql(f"describe {table}").select("column_name", "column_type").rows()
    rows = warehouse.sql(f"from {table}").rows() or [(None,) * len(columns)]
    casts = ", ".join(f"cast({name} as {kind}) as {name}" for name, kind in columns)
    values = ",\n".join(f"({', '.join(map(_literal, row))})" for row in rows)
    some = "" if warehouse.sql(f"from {table} limit 1").height else " where false"
    return f"select {casts} from (values\n{values}\n) as t ({', '.join(name for name, _ in columns)}){some}"


def _literal(value: Any) -> str:
    """As text, from which a cast gets every digit of a number back."""
    return "null" if value is None else quoted(str(value))


def _database(tables: Sequence[str], views: Sequence[View], data: Path) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "views.duckdb")
        try:
            with duckdb.connect(path, config={"file_search_path": str(data)}) as connection:
                connection.execute(";\n".join(tables))
                make_views(connection, views)
        except duckdb.Error as error:
            raise ExportError(f"DuckDB cannot make the views of {data}: {error}") from None
        return Path(path).read_bytes()
