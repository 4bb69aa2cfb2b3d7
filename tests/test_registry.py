"""Names are file names; nothing is imported before it is asked for."""

import subprocess
import sys

import pytest

from s3gym.registry import UnknownName, load, names


def test_every_module_of_a_package_is_an_entry_but_base_and_private_ones() -> None:
    found = names("s3gym.games")

    assert {"minesweeper", "snake", "trust"} <= set(found)
    assert not {"base", "_mines", "__init__"} & set(found)
    assert found == sorted(found)


def test_pathways_are_found_the_same_way() -> None:
    assert {"none", "history", "memory"} <= set(names("s3gym.pathways"))


def test_naming_imports_none_and_loading_imports_the_one() -> None:
    code = (
        "import sys; from s3gym.registry import load, names; names('s3gym.games');"
        "before = {m for m in sys.modules if m.startswith('s3gym.games.')};"
        "load('s3gym.games', 'trust', 'game');"
        "print(sorted(before), 's3gym.games.trust' in sys.modules, 's3gym.games.snake' in sys.modules)"
    )

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert told.strip() == "[] True False"


def test_load_gives_the_module() -> None:
    assert load("s3gym.games", "trust", "game").GAME.id == "trust"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sanke", r"unknown game 'sanke'\. Did you mean snake"),
        ("minesweper", "Did you mean minesweeper"),
        ("base", "unknown game 'base'"),
        ("_mines", "unknown game '_mines'"),
        ("", "unknown game ''. Valid: .*snake.*trust"),
        ("os.path", r"unknown game 'os\.path'"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_or_all(name: str, hint: str) -> None:
    with pytest.raises(UnknownName, match=hint):
        load("s3gym.games", name, "game")
