"""The SQL shell, as a person meets it: at a terminal."""

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3gym.terminal import shell
from s3gym.terminal.shell import Shell
from tests.sql.lab import Lab, Turn

SLOW = b"select sum(a.range * b.range) from range(1000000) as a, range(3000000) as b;"
PATIENCE_SECONDS = 60


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, command: list[str], home: Path) -> None:
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.environ.update(XDG_STATE_HOME=str(home), COLUMNS="120", TERM="dumb")
            os.execv(command[0], command)

    def says(self, text: bytes, typed: bytes | None = None) -> bytes:
        """Types, and waits until the text has come; gives back all that came."""
        if typed is not None:
            os.write(self._end, typed)
        came, end = b"", time.monotonic() + PATIENCE_SECONDS
        while text not in came:
            assert time.monotonic() < end, f"{text!r} did not come, but {came!r}"
            if select.select([self._end], [], [], 0.1)[0]:
                came += os.read(self._end, 65_536)
        return came

    def code(self, typed: bytes) -> int:
        """Types something that ends the program; its exit code."""
        os.write(self._end, typed)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = Lab(tmp_path_factory.mktemp("shell") / "data")
    lab.add("cell", {0: [1.0], 3: [2.0]}, {0: [[Turn(1.0, 2.0)]]})
    lab.open()
    return lab.data


@pytest.fixture
def terminal(folder: Path, tmp_path: Path) -> Iterator[Terminal]:
    code = "from s3gym.cli import main; main()"
    opened = Terminal([sys.executable, "-c", code, "sql", "--data", str(folder)], tmp_path)
    yield opened
    try:
        os.kill(opened.pid, signal.SIGKILL)
        os.waitpid(opened.pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def test_statements_commands_and_a_cancelled_query(terminal: Terminal, tmp_path: Path) -> None:
    terminal.says(b"s3gym> ")
    terminal.says(b"...> ", b"select 40 + 2 as sum,\n")
    assert b"42" in terminal.says(b"1 row, ", b"';' as mark -- ;\n;\n")
    terminal.says(b"improvement_curve", b"from improvement_c\t")
    assert b"2 rows, " in terminal.says(b"s3gym> ", b";\n")
    assert b"Did you mean improvement" in terminal.says(b"s3gym> ", b".describe improvment\n")
    told = terminal.says(b"s3gym> ", b"from improvment;\n")
    assert b"Error: " in told and b"^^^^" in told

    terminal.says(SLOW, SLOW + b"\n")
    time.sleep(0.5)
    terminal.says(b"Cancelled.", b"\x03")
    assert b"7" in terminal.says(b"1 row, ", b"select 3 + 4;\n")

    assert terminal.code(b".exit\n") == 0
    history = (tmp_path / "s3gym" / "sql_history").read_text().splitlines()
    assert history[:3] == ["select 40 + 2 as sum,", "';' as mark -- ;", ";"]
    assert history[3:5] == ["from improvement_curve;", ".describe improvment"]


def test_the_end_of_input_leaves_the_shell(terminal: Terminal) -> None:
    terminal.says(b"s3gym> ")
    assert terminal.code(b"\x04") == 0


def answer(opened: Shell, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    opened.answer(text)
    return capsys.readouterr().out


def test_commands_do_what_help_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = Shell(folder, None, "table")
    assert "improvement_curve" in answer(opened, ".tables", capsys)
    assert answer(opened, ".describe improvement", capsys).startswith("Improvement of a cell")
    assert "no command '.tabels'" in answer(opened, ".tabels", capsys)
    assert "no command '.format xml'" in answer(opened, ".format xml", capsys)
    assert answer(opened, ".format csv", capsys) == ""
    assert answer(opened, "select 1 as a, null as b;", capsys) == "a,b\n1,\n"
    opened.answer(".exit")
    assert not opened.is_open


def test_a_long_table_is_cut_and_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "MOST_ROWS", 3)
    told = answer(Shell(folder, None, "table"), "from range(5);", capsys)
    assert re.findall(r"│ (\d) ", told) == ["0", "1", "2"]
    assert "5 rows of which 3 are shown" in told
    assert answer(Shell(folder, None, "csv"), "from range(5);", capsys).splitlines()[1:] == list("01234")


def test_refresh_reads_what_was_written_since(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lab = Lab(tmp_path / "data")
    lab.add("a", {0: [1.0]})
    lab.open()
    opened = Shell(lab.data, None, "csv")
    lab.add("b", {0: [1.0]})
    lab.open()
    count = "select count(*) as n from improvement;"
    assert answer(opened, count, capsys) == "n\n1\n"
    opened.answer(".refresh")
    assert answer(opened, count, capsys) == "n\n2\n"


@pytest.mark.parametrize(
    ("before", "word", "expected"),
    [
        ("", ".de", [".describe"]),
        (".describe ", "improvement_v", ["improvement_verdict"]),
        (".format ", "", ["table", "csv", "json"]),
        ("select * from ", "raw.st", ["raw.steps"]),
        ("select last_score from improvement ", "final_s", []),
        ("from improvement_curve select ", "score_h", ["score_high"]),
        ("from improvement_curve as i where ", "i.score_h", ["i.score_high"]),
        ("from raw.episodes select ", "final_", ["final_observation", "final_score"]),
        ("select ", "retrospective_r", ["retrospective_reliability"]),
    ],
)
def test_names_are_completed_where_they_are_due(folder: Path, before: str, word: str, expected: list[str]) -> None:
    assert Shell(folder, None, "table").completions(before, word) == expected
