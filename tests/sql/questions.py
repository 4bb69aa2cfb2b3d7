"""The worked questions of ``sql/questions``: the run they are asked of, and their answers.

``python -m tests.sql.questions`` writes the answers anew; read the difference, then write ``sql/README.md`` anew.
"""

import contextlib
import tempfile
import tomllib
from pathlib import Path

from s3gym.resampling import refresh
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly

FOLDER = Path(__file__).parents[2] / "sql" / "questions"


def measured(data: Path) -> Warehouse:
    """The folder of the run."""
    with contextlib.chdir(FOLDER):  # where its agent is
        measure_directly(data, **tomllib.loads((FOLDER / "run.toml").read_text()))
    warehouse = Warehouse(data, materialize=True)
    refresh(warehouse)
    return warehouse


def answer(warehouse: Warehouse, question: Path) -> str:
    """The answer as CSV."""
    return warehouse.sql(question.read_text(encoding="utf-8")).write_csv()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        opened = measured(Path(folder) / "data")
        for path in sorted(FOLDER.glob("*.sql")):
            path.with_suffix(".csv").write_text(answer(opened, path))
