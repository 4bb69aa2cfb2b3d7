"""s3gym: does an LLM agent get better from its own experience, and if not, which link breaks?"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

__version__ = "0.1.0"


def load(data: str | Path = "data", run_id: str | None = None) -> "Warehouse":
    """The warehouse of a data folder: ``s3gym.load("data").sql("select * from improvement")`` is a Polars frame."""
    from s3gym.warehouse import Warehouse

    return Warehouse(Path(data), run_id)
