"""The SQL shell: statements end in ``;``, commands begin with a dot.

It shows the folder as it was when it was opened, or when ``.refresh`` was typed last, whatever runs beside it.
"""

import os
import re
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from s3gym.errors import Explained
from s3gym.terminal.answering import cancelled_by_signal, list_views, note_outdated, show_frame
from s3gym.terminal.console import console, verbatim
from s3gym.warehouse import Warehouse

FORMATS = ("table", "csv", "json")
MOST_ROWS = 200
"""Rows of a table on the screen; the other formats hold all."""
HISTORY_LINES = 2_000

_COMMANDS = {
    ".tables": "all views and tables by layer",
    ".describe VIEW": "what a view holds: its columns, formula and source",
    ".format table|csv|json": "how results are shown",
    ".refresh": "read the folder anew: what a run has written since",
    ".help": "this list",
    ".exit": "leave, as Ctrl-D does",
}
_NAMES = sorted(command.split()[0] for command in _COMMANDS)
_BEFORE_A_VIEW = ("from", "join", "describe", "summarize", ".describe")
_WORD_ENDS = " \t\n,()[]=<>+-*/|;'\""


def converse(data: Path, run_id: str | None, output: str) -> None:
    """Answers what a person types, until they leave."""
    shell = Shell(data, run_id, output)
    history = _history_file()
    _prepare(shell, history)
    verbatim(f"{data}: a statement ends in ;  Tab completes names, .help lists commands, Ctrl-C cancels a query")
    pending = ""
    while shell.is_open:
        try:
            line = input("   ...> " if pending else "s3gym> ")
        except KeyboardInterrupt:
            console.print()
            pending = ""
            continue
        except EOFError:
            console.print()
            break
        is_command = not pending and line.startswith(".")
        pending += f"{line}\n"
        # SQLite's lexis of strings and comments is near enough to DuckDB's to find the end of a statement
        if is_command or sqlite3.complete_statement(pending):
            _remember(pending, history)
            shell.answer(pending.strip())
            pending = ""
        elif not pending.strip():
            pending = ""
        shell.pending = pending


class Shell:
    """What a shell shows and knows between two lines."""

    def __init__(self, data: Path, run_id: str | None, output: str) -> None:
        self.data, self.run_id, self.output = data, run_id, output
        self.pending = ""
        """The lines so far of a statement that has not ended."""
        self.is_open = True
        self._read()

    def answer(self, text: str) -> None:
        """Does what a command says, or shows the result of a statement; an error is told and nothing more."""
        try:
            if text.startswith("."):
                self._obey(*text.split())
            else:
                self._ask(text)
        except KeyboardInterrupt:
            verbatim("Cancelled.")
        except Explained as error:
            verbatim(f"Error: {error}")

    def completions(self, before: str, word: str) -> list[str]:
        """Names that ``word`` may become: views where one is due, else columns of the views named so far."""
        if word.startswith("."):
            return [name for name in _NAMES if name.startswith(word)]
        known = self._columns
        last = before.split()[-1].lower() if before.split() else ""
        if last == ".format":
            names = list(FORMATS)
        elif last in _BEFORE_A_VIEW or word.startswith("raw."):
            names = list(known)
        else:
            said = set(re.findall(r"(?:raw\.)?\w+", f"{self.pending} {before}".lower()))
            alias = word[: word.rfind(".") + 1]
            columns = [columns for name, columns in known.items() if name in said] or list(known.values())
            names = [f"{alias}{column}" for column in sorted({column for each in columns for column in each})]
            names += [] if alias else list(known)
        return [name for name in names if name.startswith(word)]

    def _read(self) -> None:
        self.warehouse = Warehouse(self.data, self.run_id)
        self._columns = self.warehouse.columns()

    def _obey(self, command: str, *arguments: str) -> None:
        match (command, *arguments):
            case (".tables",):
                list_views(self.warehouse)
            case (".describe", view):
                verbatim(self.warehouse.describe(view.rstrip(";")))
            case (".format", output) if output in FORMATS:
                self.output = output
            case (".refresh",):
                self._read()
            case (".exit" | ".quit",):
                self.is_open = False
            case _:
                if command != ".help":
                    verbatim(f"Error: no command {' '.join((command, *arguments))!r}")
                for usage, what in _COMMANDS.items():
                    verbatim(f"{usage:24}{what}")

    def _ask(self, query: str) -> None:
        started = time.monotonic()
        with cancelled_by_signal(self.warehouse.cancel):
            frame = self.warehouse.sql(query)
        seconds = time.monotonic() - started
        note_outdated(self.warehouse, query)
        show_frame(frame, self.output, MOST_ROWS)
        if self.output == "table":
            cut = f" of which {MOST_ROWS} are shown" if frame.height > MOST_ROWS else ""
            verbatim(f"{frame.height} {'row' if frame.height == 1 else 'rows'}{cut}, {seconds:.2f} s", "dim")


def _prepare(shell: Shell, history: Path) -> None:
    """Editing, completion and history, where Python has readline."""
    try:
        import readline
    except ImportError:
        return
    found: list[str] = []

    def complete(word: str, state: int) -> str | None:
        if state == 0:
            before = readline.get_line_buffer()[: readline.get_begidx()]
            found[:] = shell.completions(before, word)
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(_WORD_ENDS)
    # macOS has libedit under the same name
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    readline.set_auto_history(False)
    with suppress(OSError):
        readline.read_history_file(history)


def _remember(text: str, history: Path) -> None:
    """Keeps a statement as one line, unless a comment would swallow what follows it."""
    with suppress(ImportError, OSError):  # a home that cannot be written to costs the history, nothing else
        import readline

        for line in text.splitlines() if "--" in text else [text.strip().replace("\n", " ")]:
            readline.add_history(line)
        history.parent.mkdir(parents=True, exist_ok=True)
        readline.set_history_length(HISTORY_LINES)
        readline.write_history_file(history)


def _history_file() -> Path:
    """Beside the histories of other programs, not in a data folder, which others may get a copy of."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "s3gym" / "sql_history"
