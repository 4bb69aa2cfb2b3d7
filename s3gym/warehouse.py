"""DuckDB over the data folder: ``raw.<table>`` from the Parquet files that count, then ``sql/`` as views.

The only place that knows where ``sql/`` is. Numbers are made by the SQL, not here. Nothing here writes to the
folder, and a query can read nothing outside it.
"""

import graphlib
import hashlib
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from s3gym import derived
from s3gym.errors import Explained
from s3gym.records import SHIPPED_ANCHORS, TABLES
from s3gym.reference import PUBLISHED
from s3gym.registry import UnknownName
from s3gym.storage import (
    REQUEST_TABLES,
    check_version,
    derived_file,
    manifest_path,
    parts_of,
    schema,
    to_arrow,
    visible_files,
)

if TYPE_CHECKING:
    import polars as pl

LAYERS = ("staging", "intermediate", "marts", "checks")
"""Folders of ``sql/``; a file reads its own layer and those before it, never a later one."""

ALL_RUNS = "all"

_WRITE_DICTIONARY = "python -c \"from s3gym.warehouse import dictionary; print(dictionary(), end='')\" > sql/README.md"
_READS = re.compile(r"\b(?:from|join)\s+([a-z]\w*)")
_QUERY_ERRORS = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.PermissionException,
)
"""Errors of a query as such, whatever the files hold."""


class WarehouseError(Explained):
    """A query or a file cannot be used; the message says which and what to do."""


class View(NamedTuple):
    """One file of ``sql/``."""

    layer: str
    name: str
    """The file's stem."""
    text: str

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it is read by many views and small: the texts of all steps are not."""
        is_shared = self.layer in ("staging", "intermediate") and self.name != "stg_steps"
        # derived tables are in memory already, and may be filled when all views are made
        return is_shared and not any(f"raw.{table}" in self.text for table in derived.DERIVED)

    @property
    def header(self) -> str:
        """The comment at the top: purpose, grain, key, columns, formula, source, what is left out."""
        lines = itertools.takewhile(lambda line: line.startswith("--"), self.text.splitlines())
        return "\n".join(line.removeprefix("--").removeprefix(" ") for line in lines)

    @property
    def reads(self) -> list[str]:
        """What stands after ``from`` or ``join``: names of views, of steps inside the file, and ``raw``."""
        code = re.sub(r"--.*", "", self.text)
        return sorted(set(_READS.findall(code)))


class Derived(NamedTuple):
    """Which derived tables belong to the rows that there are."""

    run_id: str
    """Whose they are: the selected run, or ``all``."""
    key: str
    """Hash of all that they are made of."""
    missing: tuple[str, ...]
    """Tables that have not been made of it; they are empty."""


class Warehouse:
    """The tables of a data folder as they are now, and the views on them.

    Args:
        data: The data folder.
        run_id: Whose cells the marts show: a run's id, ``all``, or None for the latest run.
        materialize: Computes what the marts read once and keeps it in memory: worth it where many of them are
            read from thousands of files, as every reading of a view opens its files again.

    Raises:
        StorageError: ``data`` is no data folder of this version.
        WarehouseError: there is no such run, or a file cannot be read.
    """

    def __init__(self, data: Path, run_id: str | None = None, *, materialize: bool = False) -> None:
        check_version(data)
        folder = os.path.abspath(data)
        self.data = Path(folder)
        self._files = _snapshot(self.data)
        self._views = read_views()
        self._connection = duckdb.connect(":memory:")
        with self._explained():
            self._connection.execute("set TimeZone = 'UTC'")
            self._connection.execute("set python_enable_replacements = false")
            self._connection.execute("set variable run_id = $1", [run_id])
            self._make_raw()
            self.derived = self._make_derived(run_id)
            for view in self._views.values():
                kind = "table" if materialize and view.is_worth_keeping else "view"
                self._connection.execute(f"create {kind} {view.name} as {view.text}")
            self._check_run(run_id)
            self._connection.execute(f"set allowed_directories = [{_quoted(folder)}]")
            self._connection.execute("set enable_external_access = false")
            self._connection.execute("set lock_configuration = true")

    def sql(self, query: str) -> "pl.DataFrame":
        """The result of one SELECT statement (also FROM, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE).

        Raises:
            WarehouseError: it is another kind of statement, or fails; the message holds DuckDB's.
        """
        import polars as pl

        with self._explained():
            kinds = [statement.type for statement in self._connection.extract_statements(query)]
            if kinds != [duckdb.StatementType.SELECT]:
                found = ", ".join(kind.name for kind in kinds) or "none"
                raise WarehouseError(f"expected one SELECT statement, got {found}: data is only read here")
            # a SELECT may hide a DELETE in its WITH
            self._connection.execute("begin transaction read only")
            try:
                frame: pl.DataFrame = self._connection.sql(query).pl()
            except pl.exceptions.PolarsError as error:
                raise WarehouseError(f"a column of the result cannot be shown, cast it: {error}") from None
            finally:
                self._connection.execute("rollback")
            return frame

    def views(self) -> list[tuple[str, str]]:
        """(layer, name) of every view, in the order of ``LAYERS``, then by name."""
        return [(view.layer, view.name) for view in _by_layer(self._views)]

    def describe(self, view: str) -> str:
        """What a view holds: the header of its file. Raises UnknownName with the nearest names."""
        if view not in self._views:
            raise UnknownName("view", view, self._views)
        return self._views[view].header

    def fill(self, table: str, rows: Sequence[Any]) -> None:
        """Puts the rows of a missing derived table in its place."""
        self._connection.register("content", to_arrow(table, rows))
        self._connection.execute(f"insert into raw.{table} from content")
        self._connection.unregister("content")
        self.derived = self.derived._replace(missing=tuple(name for name in self.derived.missing if name != table))

    def outdated(self) -> set[str]:
        """Views that rest on a derived table that has not been made of the rows as they are, so that they lack rows."""
        found: set[str] = set()
        for view in self._views.values():  # each after all that it reads
            if any(f"raw.{table}" in view.text for table in self.derived.missing) or found & set(view.reads):
                found.add(view.name)
        return found

    def checks(self) -> dict[str, int]:
        """Offending rows by check; all is well when every count is 0."""
        names = [view.name for view in _by_layer(self._views) if view.layer == "checks"]
        return {name: self.sql(f"select count(*) as offending from {name}").item() for name in names}

    def _make_raw(self) -> None:
        self._connection.execute("create schema raw")
        self._store("shipped_anchors", _read_shipped(SHIPPED_ANCHORS, schema("anchors")))
        for table, (file, columns) in PUBLISHED.items():
            self._store(table, _read_shipped(file, columns))
        for table, files in self._files.items():
            if not files:
                self._store(table, schema(table).empty_table())
                continue
            # what was asked for is small and read by every view, often several times
            kind = "table" if table in REQUEST_TABLES else "view"
            listed = ", ".join(_quoted(str(file)) for file in files)
            self._connection.execute(
                f"create {kind} raw.{table} as from read_parquet([{listed}], hive_partitioning = false, "
                "union_by_name = false)"
            )

    def _make_derived(self, run_id: str | None) -> Derived:
        query = "select run_id from raw.runs order by requested_at desc, run_id desc limit 1"
        latest = self._connection.execute(query).fetchall()
        run = run_id or (latest[0][0] if latest else "none")
        chosen = [file.stem for file in self._files["runs"]] if run == ALL_RUNS else [run]
        read = hashlib.sha256(repr((derived.VERSION, derived.RESAMPLES, derived.PERMUTATIONS, derived.SEED)).encode())
        read.update(repr(chosen).encode())
        for part in sorted({file.stem for file in self._files["episodes"]}):
            # its bytes and not its name alone: a part with a failed call is made again under the same name
            with suppress(FileNotFoundError):
                read.update(manifest_path(self.data, part).read_bytes())
        key = read.hexdigest()[:16]
        files = {table: derived_file(self.data, table, run, key) for table in derived.DERIVED}
        missing = tuple(table for table, file in files.items() if not file.exists())
        for table, file in files.items():
            content = schema(table).empty_table() if table in missing else pq.read_table(file, schema=schema(table))
            self._store(table, content)
        return Derived(run, key, missing if self._files["runs"] else ())

    def _store(self, table: str, content: pa.Table) -> None:
        self._connection.register("content", content)
        self._connection.execute(f"create table raw.{table} as from content")
        self._connection.unregister("content")

    def _check_run(self, run_id: str | None) -> None:
        if run_id in (None, ALL_RUNS):
            return
        found = self._connection.execute("select run_id from stg_runs order by requested_at desc").fetchall()
        known = [row[0] for row in found]
        if run_id not in known:
            expected = ", ".join([ALL_RUNS, *known])
            raise WarehouseError(f"no run {run_id!r}; expected one of: {expected} (latest first)")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Says which file is damaged when a reading fails; else passes on what DuckDB says."""
        try:
            yield
        except duckdb.Error as error:
            if not isinstance(error, _QUERY_ERRORS):
                for file in (file for files in self._files.values() for file in files):
                    _check_footer(file)
            raise WarehouseError(str(error)) from error


def read_views() -> dict[str, View]:
    """Every file of ``sql/`` by name, each after all that it reads.

    Raises:
        WarehouseError: a file reads a view of a later layer, or files read each other in a circle.
    """
    views = {
        path.stem: View(layer, path.stem, path.read_text(encoding="utf-8"))
        for layer in LAYERS
        for path in sorted((_sql_folder() / layer).glob("*.sql"))
    }
    reads = {view.name: [views[name] for name in view.reads if name in views] for view in views.values()}
    for name, sources in reads.items():
        for source in sources:
            if LAYERS.index(source.layer) > LAYERS.index(views[name].layer):
                raise WarehouseError(
                    f"{name} in {views[name].layer} reads {source.name} of the later layer {source.layer}; "
                    f"layers go {', '.join(LAYERS)}, and none reads a later one"
                )
    graph = {name: [source.name for source in sources] for name, sources in reads.items()}
    try:
        return {name: views[name] for name in graphlib.TopologicalSorter(graph).static_order()}
    except graphlib.CycleError as error:
        circle = " -> ".join(error.args[1])
        raise WarehouseError(f"views read each other in a circle: {circle}; cut one of these links") from None


def dictionary() -> str:
    """The data dictionary, ``sql/README.md``, from the headers of the files."""
    parts = [
        "# Data dictionary",
        "Made from the headers of the SQL files; change them, then write this page anew:",
        f"```sh\n{_WRITE_DICTIONARY}\n```",
        "A file is a comment and one `select`; `s3gym/warehouse.py` makes a view of it, named like the file. "
        "`raw.<table>` holds the rows as they were written, see `s3gym/records.py`.",
    ]
    views = _by_layer(read_views())
    for layer in LAYERS:
        parts.append(f"## {layer}")
        parts += [f"### {view.name}\n\n```text\n{view.header}\n```" for view in views if view.layer == layer]
    return "\n\n".join(parts) + "\n"


def _by_layer(views: dict[str, View]) -> list[View]:
    return sorted(views.values(), key=lambda view: (LAYERS.index(view.layer), view.name))


def _sql_folder() -> Path:
    """``s3gym/_sql`` in an installed wheel, ``sql`` beside the package in a checkout."""
    packaged = Path(__file__).with_name("_sql")
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "sql"


def _snapshot(data: Path) -> dict[str, list[Path]]:
    """Visible files by table; what a run in progress adds during the listing is left out of every table."""
    done = {*parts_of(data, ""), *(file.stem for file in visible_files(data, "runs"))}
    return {table: [file for file in visible_files(data, table) if file.stem in done] for table in TABLES}


def _read_shipped(file: Path, expected: pa.Schema) -> pa.Table:
    if not file.exists():
        return expected.empty_table()
    options = pyarrow.csv.ConvertOptions(
        column_types={field.name: field.type for field in expected}, include_columns=expected.names
    )
    try:
        return pyarrow.csv.read_csv(file, convert_options=options).cast(expected)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise WarehouseError(f"{file} cannot be read ({error}); restore it from the package") from None


def _check_footer(file: Path) -> None:
    try:
        pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise WarehouseError(f"{file} cannot be read ({error}); delete it and run again") from None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
