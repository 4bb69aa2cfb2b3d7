"""DuckDB over the data folder: ``raw.<table>`` from the Parquet files that count, then ``sql/`` as views.

The only place that knows where ``sql/`` is. Numbers are made by the SQL, not here. Nothing here writes to the
folder, and a query, whoever wrote it, reads the tables of the folder and nothing else.
"""

import difflib
import graphlib
import hashlib
import itertools
import os
import re
import secrets
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
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
    LOG_TABLES,
    REQUEST_TABLES,
    Rows,
    check_version,
    derived_file,
    done_names,
    manifest_path,
    schema,
    to_arrow,
    visible,
)

if TYPE_CHECKING:
    import polars as pl

LAYERS = ("staging", "intermediate", "marts", "checks")
"""Folders of ``sql/``; a file reads its own layer and those before it, never a later one."""

ALL_RUNS = "all"

_WRITE_DICTIONARY = "python -c \"from s3gym.warehouse import dictionary; print(dictionary(), end='')\" > sql/README.md"
_READS = re.compile(r"\b(?:from|join)\s+([a-z]\w*)")
_BY_STEP = ("stg_steps", "int_cell_steps")
"""Views with a row a step, too large to keep."""
_FEW_STEPS = 2**26
"""Bytes of Parquet: the steps themselves are kept where they are no more, as in a run of the published scale."""
_QUERY_ERRORS = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.PermissionException,
)
"""Errors of a query as such, whatever the files hold."""
_READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
"""What DuckDB's parser calls the queries that only read; a WITH may also hold a COPY, an INSERT, ..."""
_LISTINGS = ("show", "information_schema", "duckdb_", "pg_", "sqlite_")
"""Beginnings of the words that a query over the views as such is told by."""


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
        """Whether it is read by many views and small: what has a row a step is not."""
        is_shared = self.layer in ("staging", "intermediate") and self.name not in _BY_STEP
        # derived tables are in memory already, and may be filled when all views are made
        return is_shared and not any(f"raw.{table}" in self.text for table in derived.DERIVED)

    @property
    def header(self) -> str:
        """The comment at the top: purpose, grain, key, columns, formula, source, what is left out."""
        lines = itertools.takewhile(lambda line: line.startswith("--"), self.text.splitlines())
        return "\n".join(line.removeprefix("--").removeprefix(" ") for line in lines)

    @property
    def reads(self) -> list[str]:
        """What stands after ``from`` or ``join``, as often: names of views, of steps inside the file, and ``raw``."""
        return _names_read(self.text)

    @property
    def columns(self) -> list[str]:
        """Names of the columns in their order, as the header documents them."""
        _, _, listed = self.header.partition("\ncolumns:\n")
        lines = itertools.takewhile(lambda line: line.startswith("  "), listed.splitlines())
        return [line.split()[0] for line in lines if not line.startswith("   ")]


class Selection(NamedTuple):
    """Which cells the marts show, beside those of one run; empty is all."""

    models: tuple[str, ...] = ()
    games: tuple[str, ...] = ()
    since: datetime | None = None
    """Runs requested at that time or later."""


WHOLE = Selection()


class Derived(NamedTuple):
    """Which derived tables belong to the rows that there are."""

    run_id: str
    """Whose they are: the selected run, or ``all``; and which of its cells, where not all are selected."""
    key: str
    """Hash of all that they are made of."""
    missing: tuple[str, ...]
    """Tables that have not been made of it; they are empty."""


class Warehouse:
    """The tables of a data folder as they are now, and the views on them.

    Args:
        data: The data folder.
        run_id: Whose cells the marts show: a run's id, ``all``, or None for the latest run.
        materialize: Works out at once, and keeps in memory, what several marts read: worth it where all of them are
            wanted. Without it that is done for each query: what it reads more than once.
        selection: Narrows the cells down; with a time in it, to those of all runs since then and not of one.

    Raises:
        StorageError: ``data`` is no data folder of this version.
        WarehouseError: there is no such run, or a file cannot be read.
        UnknownName: no cell is of a model or game that is selected.
    """

    def __init__(
        self, data: Path, run_id: str | None = None, *, materialize: bool = False, selection: Selection = WHOLE
    ) -> None:
        check_version(data)
        folder = os.path.abspath(data)
        self.data = Path(folder)
        self.selection = selection
        self.rows = _snapshot(self.data)
        """What counts of each table, by Parquet file."""
        self._has_few_steps = False
        self.files = {table: [rows.path for rows in found] for table, found in self.rows.items()}
        with suppress(FileNotFoundError):  # packed meanwhile
            self._has_few_steps = sum(file.stat().st_size for file in self.files["steps"]) <= _FEW_STEPS
        self._views = read_views()
        self._made: set[str] = set()
        self._kept: set[str] = set()
        self._connection = duckdb.connect(":memory:")
        with self._explained():
            self._connection.execute("set TimeZone = 'UTC'")
            self._connection.execute("set python_enable_replacements = false")
            self._connection.execute("set parquet_metadata_cache = true")
            if selection.since and run_id is None:
                run_id = ALL_RUNS
            for name, value in {"run_id": run_id, **selection._asdict()}.items():
                self._connection.execute(f"set variable {name} = $1", [value or None])
            self._make_raw()
            self.derived = self._make_derived(run_id, selection)
            self._check_run(run_id)
            self._check_names(selection)
            self._close_off()
            if materialize:
                self._keep([view.name for view in self._views.values() if view.layer == "marts"])
                self._make(self._views)
        if selection != WHOLE and not self.sql("select count(*) from int_selected_cells").item():
            raise WarehouseError(
                "no cell of the runs that are looked at is of a model, a game and a time that are selected; "
                "leave one of these out, or look at all runs"
            )

    def sql(self, query: str) -> "pl.DataFrame":
        """The result of one SELECT statement (also FROM, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE).

        Raises:
            WarehouseError: it is another kind of statement, or fails; the message holds DuckDB's.
        """
        words = set(re.findall(r"\w+", query.lower()))
        with self._explained(words):
            self._check_reads_only(query)
            self._keep(_names_read(query.lower()))
            self._make(self._views if any(word.startswith(_LISTINGS) for word in words) else words)
            try:
                return self._select(query)
            except duckdb.CatalogException:  # a name that is computed, or near to that of a view
                if len(self._made) == len(self._views):
                    raise
                self._make(self._views)
                return self._select(query)

    def cancel(self) -> None:
        """Ends the query that is running, which raises KeyboardInterrupt; may be called from another thread."""
        self._connection.interrupt()

    def views(self) -> list[tuple[str, str]]:
        """(layer, name) of every view, in the order of ``LAYERS``, then by name."""
        return [(view.layer, view.name) for view in _by_layer(self._views)]

    def columns(self) -> dict[str, list[str]]:
        """Columns of every view, by its name, and of every raw table, by ``raw.`` and its name."""
        listed = "select table_name, list(column_name order by column_index) from duckdb_columns()"
        raw = self._connection.execute(f"{listed} where schema_name = 'raw' group by all order by all").fetchall()
        views = {view.name: view.columns for view in _by_layer(self._views)}
        return {**views, **{f"raw.{table}": columns for table, columns in raw}}

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
        with self._explained():
            self._keep(names)
        return {name: self.sql(f"select count(*) as offending from {name}").item() for name in names}

    def _close_off(self) -> None:
        """Leaves DuckDB the files of the tables, and nothing that a query could change that by."""
        # it spills there what memory does not hold; its own choice, .tmp, would be open to queries
        spill = os.path.join(tempfile.gettempdir(), f"s3gym-{secrets.token_hex(8)}")
        for setting, value in {
            "temp_directory": quoted(spill),
            "allowed_directories": f"[{quoted(str(self.data / 'tables'))}]",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "enable_external_access": "false",
            "lock_configuration": "true",
        }.items():
            self._connection.execute(f"set {setting} = {value}")

    def _make(self, names: Collection[str]) -> None:
        """Makes those of the views named, with all that they read; those made before once more, see ``make_views``."""
        wanted = set(names)
        for view in reversed(self._views.values()):  # each before all that it reads
            if view.name in wanted:
                wanted.update(view.reads)
        if self._views.keys() & wanted <= self._made:
            return
        views = [view for view in self._views.values() if view.name in wanted - self._kept]
        make_views(self._connection, views)
        self._made.update(view.name for view in views)

    def _check_reads_only(self, query: str) -> None:
        try:
            kinds = [statement.type.name for statement in self._connection.extract_statements(query)]
        except ValueError:  # a kind without a name
            kinds = ["another"]
        if kinds == ["SELECT"]:
            (tree,) = self._connection.execute("select json_serialize_sql($1)", [query]).fetchall()[0]
            nodes = set(re.findall(r'"type":"(\w+_NODE)"', tree))
            if nodes and nodes <= _READING_NODES:
                return
            kinds = [f"SELECT with {node.split('_')[0]}" for node in sorted(nodes - _READING_NODES)]
        more = "; a PIVOT names its values: on game in ('snake')" if kinds == ["MULTI"] else ""
        raise WarehouseError(
            f"expected one SELECT statement, got {', '.join(kinds) or 'none'}: data is only read here{more}"
        )

    def _select(self, query: str) -> "pl.DataFrame":
        import polars as pl

        self._connection.execute("begin transaction read only")
        try:
            frame: pl.DataFrame = self._connection.sql(query).pl()
            return frame
        except pl.exceptions.PolarsError as error:
            raise WarehouseError(f"a column of the result cannot be shown, cast it: {error}") from None
        except (duckdb.BinderException, duckdb.CatalogException):
            self._connection.execute(query)  # fails alike, and says in which line
            raise
        finally:
            self._connection.execute("rollback")

    def _make_raw(self) -> None:
        self._connection.execute("create schema raw")
        self._store("shipped_anchors", _read_shipped(SHIPPED_ANCHORS, schema("anchors")))
        for table, (file, columns) in PUBLISHED.items():
            self._store(table, _read_shipped(file, columns))
        for table, rows in self.rows.items():
            if not rows:
                self._store(table, schema(table).empty_table())
                continue
            # what was asked for is small and read by every view, often several times
            kind = "table" if table in (*REQUEST_TABLES, *LOG_TABLES) else "view"
            self._connection.execute(f"create {kind} raw.{table} as {reading(rows)}")

    def _make_derived(self, run_id: str | None, selection: Selection) -> Derived:
        query = "select run_id from raw.runs order by requested_at desc, run_id desc limit 1"
        latest = self._connection.execute(query).fetchall()
        run = run_id or (latest[0][0] if latest else "none")
        chosen = [file.stem for file in self.files["runs"]] if run == ALL_RUNS else [run]
        read = hashlib.sha256(repr((derived.VERSION, derived.RESAMPLES, derived.PERMUTATIONS, derived.SEED)).encode())
        read.update(repr(chosen).encode())
        if selection != WHOLE:  # beside those of the whole run, and not in their place
            run = f"{run}-{hashlib.sha256(repr(selection).encode()).hexdigest()[:8]}"
        for part in sorted({name for rows in self.rows["episodes"] for name in rows.names}):
            # its bytes and not its name alone: a part with a failed call is made again under the same name
            with suppress(FileNotFoundError):
                read.update(manifest_path(self.data, part).read_bytes())
        key = read.hexdigest()[:16]
        files = {table: derived_file(self.data, table, run, key) for table in derived.DERIVED}
        missing = tuple(table for table, file in files.items() if not file.exists())
        for table, file in files.items():
            content = schema(table).empty_table() if table in missing else pq.read_table(file, schema=schema(table))
            self._store(table, content)
        return Derived(run, key, missing if self.files["runs"] else ())

    def _store(self, table: str, content: pa.Table) -> None:
        self._connection.register("content", content)
        self._connection.execute(f"create table raw.{table} as from content")
        self._connection.unregister("content")

    def _keep(self, wanted: Sequence[str]) -> None:
        """Turns into tables what would be worked out more than once for those ``wanted``: each reading opens its files.

        Views are gone through from those that read to those that are read; a table reads but once.
        """
        times = Counter(wanted)
        kept: list[View] = []
        for view in reversed(self._views.values()):
            if not times[view.name] or view.name in self._kept:
                continue
            is_worth_keeping = view.is_worth_keeping or (view.name == "stg_steps" and self._has_few_steps)
            if times[view.name] > 1 and is_worth_keeping:
                kept.append(view)
                times[view.name] = 1
            for name in view.reads:
                times[name] += times[view.name]
        for view in reversed(kept):
            self._make(view.reads)
            self._connection.execute("begin transaction")
            try:
                self._connection.execute(f"drop view if exists {view.name}")
                self._connection.execute(f"create table {view.name} as {view.text}")
            except duckdb.Error:
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")
            self._kept.add(view.name)
            self._made.add(view.name)

    def _check_run(self, run_id: str | None) -> None:
        if run_id in (None, ALL_RUNS):
            return
        found = self._connection.execute("select run_id from raw.runs order by requested_at desc").fetchall()
        known = [row[0] for row in found]
        if run_id not in known:
            expected = ", ".join([ALL_RUNS, *known])
            raise WarehouseError(f"no run {run_id!r}; expected one of: {expected} (latest first)")

    def _check_names(self, selection: Selection) -> None:
        for kind, names in {"model": selection.models, "game": selection.games}.items():
            column = "model_id" if kind == "model" else "game"
            known = [row[0] for row in self._connection.execute(f"select distinct {column} from raw.cells").fetchall()]
            for name in names:
                if name not in known:
                    raise UnknownName(kind, name, known)
        if selection.since:
            latest = self._connection.execute("select max(requested_at) from raw.runs").fetchall()[0][0]
            if latest is None or latest < selection.since:
                told = f"the latest was requested at {latest:%Y-%m-%d %H:%M} UTC" if latest else "there is none at all"
                raise WarehouseError(f"no run since {selection.since:%Y-%m-%d}: {told}; give an earlier date")

    @contextmanager
    def _explained(self, words: Collection[str] = ()) -> Iterator[None]:
        """Says which file is damaged when a reading fails; else passes on what DuckDB says of the query's words."""
        try:
            yield
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.PermissionException as error:
            raise WarehouseError(f"{error}; a query reads the tables here by their names, and no other file") from error
        except duckdb.Error as error:
            if not isinstance(error, _QUERY_ERRORS):
                for file in (file for files in self.files.values() for file in files):
                    _check_footer(file)
            said = str(error).partition("\n\nPlease try installing")[0]  # here nothing can be installed
            raise WarehouseError(f"{said}{self._near(said, words)}") from error

    def _near(self, message: str, words: Collection[str]) -> str:
        """The columns of the query's views that are like the one not found, where DuckDB names none."""
        found = re.search(r'does not have a column named "(\w+)"', message)
        if found is None:
            return ""
        known = {column for name, columns in self.columns().items() if name in words for column in columns}
        near = difflib.get_close_matches(found[1], sorted(known), cutoff=0.5)
        return f"\nCandidate columns: {', '.join(near)}" if near else ""


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
    reads = {view.name: [views[name] for name in {*view.reads} if name in views] for view in views.values()}
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


def _names_read(query: str) -> list[str]:
    return _READS.findall(re.sub(r"--.*", "", query))


def make_views(connection: duckdb.DuckDBPyConnection, views: Sequence[View]) -> None:
    """Makes views, each given after all that it reads, or none of them.

    DuckDB looks through a view that it makes down to the files, through each on the way as often as it is read. So
    every view begins as an empty table, and becomes a view when all that read it are made.
    """
    connection.execute("begin transaction")
    try:
        for view in views:
            connection.execute(f"drop view if exists {view.name}")
            connection.execute(f"create table {view.name} as {view.text} with no data")
        for view in reversed(views):
            connection.execute(f"drop table {view.name}; create view {view.name} as {view.text}")
    except BaseException:
        connection.execute("rollback")
        raise
    connection.execute("commit")


def dictionary() -> str:
    """The data dictionary, ``sql/README.md``, from the worked questions and the headers of the files."""
    parts = [
        "# Data dictionary",
        "Made from the headers of the SQL files; change them, then write this page anew:",
        f"```sh\n{_WRITE_DICTIONARY}\n```",
        "A file is a comment and one `select`; `s3gym/warehouse.py` makes a view of it, named like the file. "
        "`raw.<table>` holds the rows as they were written, see `s3gym/records.py`.",
        "## Ten questions",
        "Their answers come from the run that `questions/run.toml` asks for: in that folder, `s3gym run run.toml`, "
        "then `s3gym sql 01_pathway_gains.sql`. `--data DIR` asks the same of your own data.",
        *map(_worked, sorted((_sql_folder() / "questions").glob("*.sql"))),
    ]
    views = _by_layer(read_views())
    for layer in LAYERS:
        parts.append(f"## {layer}")
        parts += [f"### {view.name}\n\n```text\n{view.header}\n```" for view in views if view.layer == layer]
    return "\n\n".join(parts) + "\n"


def _worked(path: Path) -> str:
    """A question with its query and answer; the comment at its top is the question, and what more there is to say."""
    view = View("questions", path.stem, path.read_text(encoding="utf-8"))
    question, _, more = view.header.partition("\n")
    query = "".join(line for line in view.text.splitlines(keepends=True) if not line.startswith("--"))
    answer = path.with_suffix(".csv").read_text(encoding="utf-8")
    told = "\n\n".join(part for part in (f"### {question}", more.strip()) if part)
    return f"{told}\n\n```sql\n{query}```\n```csv\n{answer}```"


def _by_layer(views: dict[str, View]) -> list[View]:
    return sorted(views.values(), key=lambda view: (LAYERS.index(view.layer), view.name))


def _sql_folder() -> Path:
    """``s3gym/_sql`` in an installed wheel, ``sql`` beside the package in a checkout."""
    packaged = Path(__file__).with_name("_sql")
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "sql"


def _snapshot(data: Path) -> dict[str, list[Rows]]:
    """What counts, by table; what a run in progress adds during the listing is left out of every table."""
    done = done_names(data)
    return {table: visible(data, table, done) for table in TABLES}


def reading(found: Sequence[Rows], within: Path | None = None) -> str:
    """A query for the rows that count, without those that are hidden; with paths relative to ``within``, if given."""
    options = "hive_partitioning = false, union_by_name = false"

    def name(rows: Rows) -> str:
        return quoted(rows.path.relative_to(within).as_posix() if within else str(rows.path))

    whole = ", ".join(name(rows) for rows in found if not rows.hidden)
    queries = [f"from read_parquet([{whole}], {options})"] if whole else []
    for rows in found:
        if rows.hidden:
            skipped = " or ".join(f"file_row_number between {first} and {end - 1}" for first, end in rows.hidden)
            content = f"from read_parquet([{name(rows)}], {options}, file_row_number = true) where not ({skipped})"
            queries.append(f"select * exclude (file_row_number) {content}")
    return " union all ".join(queries)


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
    if not file.exists():  # it was there when the folder was looked at
        raise WarehouseError(f"{file} is gone: the folder was changed, as `s3gym data compact` does; try again")
    try:
        pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise WarehouseError(f"{file} cannot be read ({error}); delete it and run again") from None


def quoted(text: str) -> str:
    """The text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
