"""Every mart as a CSV file, as the warehouse gives it: all columns, all rows, no words."""

from pathlib import Path
from typing import TYPE_CHECKING

from s3gym import storage
from s3gym.report.fragments import SETTLED_DIGITS

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse


def write(warehouse: "Warehouse", folder: Path) -> list[Path]:
    """Writes ``<mart>.csv`` for every mart into ``folder``; what is missing is an empty field."""
    import polars as pl

    written = []
    for layer, name in warehouse.views():
        if layer == "marts":
            rows = warehouse.sql(f"from {name} order by all")
            # further digits depend on the order in which a sum was made
            settled = rows.with_columns(pl.selectors.float().round_sig_figs(SETTLED_DIGITS))
            path = folder / f"{name}.csv"
            storage.write_text(path, settled.write_csv())
            written.append(path)
    return written
