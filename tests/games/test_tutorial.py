"""The game that the README writes in one file keeps every promise of a game, and runs with everything else."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import s3gym.games
from s3gym import registry
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.games.hidden import HIDDEN, Hidden
from tests.games.test_contract import *  # noqa: F403  all its tests, here on the fixture ``game`` below

README = Path(__file__).parents[2] / "README.md"
MARKER = re.compile(r"^<!-- tutorial: s3gym/games/(\w+)\.py -->\n```python\n(.*?)^```$", re.M | re.S)
LONGEST = 80
"""Lines that are not blank; what is longer is no tutorial."""


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The README's game, in the package for as long as this file is tested."""
    found = MARKER.findall(README.read_text())
    if len(found) != 1:
        pytest.fail(
            f"README.md has {len(found)} games to write, expected one: a line `<!-- tutorial: s3gym/games/<id>.py -->` "
            "and a python code block right under it"
        )
    ((name, code),) = found
    assert sum(bool(line.strip()) for line in code.splitlines()) <= LONGEST
    folder = tmp_path_factory.mktemp("games")
    (folder / f"{name}.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(s3gym.games, "__path__", [*s3gym.games.__path__, str(folder)])
        patch.setitem(HIDDEN, name, Hidden(other_number, guess_below_both))
        yield registry.load(registry.GAMES, name, "game").GAME
        del sys.modules[f"s3gym.games.{name}"]
        delattr(s3gym.games, name)


def other_number(state: Any) -> Any:
    """One above the middle, so that there is room below."""
    return replace(state, number=600 + state.number % 400)


def guess_below_both(state: Any, other: Any) -> str | None:
    """Both are higher."""
    return str(state.low) if state.low < min(state.number, other.number) else None


@pytest.fixture(scope="module", name="games")
def only_the_tutorials(tutorial: Any) -> list[Any]:
    return [tutorial]


@pytest.fixture(name="game")
def the_tutorials(tutorial: Any) -> Any:
    return tutorial


def test_the_tutorials_game_is_measured_like_any_other(tutorial: Any, tmp_path: Path) -> None:
    measure_directly(
        tmp_path / "data",
        scale="smoke",
        games=[tutorial.id],
        models=["player:random", "player:learner", "player:expert"],
        pathways=["none", "history", "memory"],
    )

    warehouse = Warehouse(tmp_path / "data")
    scores = dict(
        warehouse.sql(
            "select model_id, avg(final_score) from stg_episodes inner join stg_cell_stages using (stage_key) "
            "inner join stg_cells using (cell_id) where phase = 'evaluation' group by model_id"
        ).rows()
    )
    assert scores["player:expert"] == 1.0  # ten guesses halve 1000 numbers to one
    assert scores["player:random"] < scores["player:expert"]
    assert "player:learner" in scores
