"""The agent that the README writes in one file is checked, measured, journaled and found again like any other model."""

import re
import sqlite3
import sys
from pathlib import Path

import pytest

from s3gym.games.trust import GAME
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.test_checking import check, row

README = Path(__file__).parents[2] / "README.md"
MARKER = re.compile(r"^<!-- agent: (\w+)\.py -->\n```python\n(.*?)^```$", re.M | re.S)
LONGEST = 25
"""Lines that are not blank; what is longer is no example."""


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The README's agent, in the working directory; its model id."""
    found = MARKER.findall(README.read_text())
    if len(found) != 1:
        pytest.fail(
            f"README.md has {len(found)} agents to write, expected one: a line `<!-- agent: <name>.py -->` "
            "and a python code block right under it"
        )
    ((name, code),) = found
    assert sum(bool(line.strip()) for line in code.splitlines()) <= LONGEST
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, name, raising=False)
    return f"python:{name}:answer"


def test_the_readmes_agent_is_checked(agent: str) -> None:
    code, output = check(agent)

    assert code == 0, output
    assert row(output, "answer contract") == "yes: 2 of 2 answers are usable"


def test_the_readmes_agent_is_measured_like_any_other_and_asked_once(agent: str, tmp_path: Path) -> None:
    data = tmp_path / "data"

    def measured() -> list[tuple[object, ...]]:
        measure_directly(data, scale="smoke", games=["trust"], models=[agent], pathways=["none", "history", "memory"])
        query = """
            select phase, count(*), avg(final_score), count(*) filter (status = 'invalid')
            from stg_episodes group by phase
        """
        return sorted(Warehouse(data).sql(query).rows())

    def calls() -> int:
        with sqlite3.connect(data / "journal.sqlite") as journal:
            return int(journal.execute("select count(*) from calls").fetchone()[0])

    evaluation, exploration = measured()

    exact = GAME.exact_anchor(GAME.evaluation, "tit_for_tat")  # the agent is tit for tat, written again
    assert exact is not None
    # held out: seven at 0 for all and seven at 3 for each pathway; explored: three for each of two pathways
    assert evaluation == ("evaluation", 28, pytest.approx(exact[0]), 0)
    assert exploration[1:] == (6, exploration[2], 0)
    # ten rounds each, a judgment of each explored episode; memory is asked for one each and at the checkpoint
    asked = (28 + 6) * 10 + 6 + 3
    assert calls() == asked

    for manifest in (data / "manifests").iterdir():
        manifest.unlink()  # everything is made again, from the journal
    assert measured() == [evaluation, exploration]
    assert calls() == asked
