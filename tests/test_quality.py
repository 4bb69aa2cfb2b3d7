"""The linters, as tests: one command proves all."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
CHECKS = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "mypy": ["mypy"],
    "sqlfluff": ["sqlfluff", "lint", "--processes", "2", "sql", "s3gym/report/sections"],
    "layers": ["lint-imports", "--no-cache"],
}


@pytest.mark.parametrize("name", CHECKS)
def test_clean(name: str) -> None:
    program, *arguments = CHECKS[name]

    checked = subprocess.run([BIN / program, *arguments], cwd=ROOT, capture_output=True, text=True)

    assert checked.returncode == 0, checked.stdout + checked.stderr
