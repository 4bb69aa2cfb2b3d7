from pathlib import Path

import pytest

from tests.sql.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "data")
