"""``export``: stored play written to one file."""

from collections.abc import Sequence
from pathlib import Path

from s3gym.export import sft, trajectories
from s3gym.export.files import check_name, write
from s3gym.terminal.console import prose
from s3gym.warehouse import Warehouse


def export_sft(data: Path, run_id: str | None, form: sft.Form, out: Path, is_forced: bool) -> None:
    """Writes what the updates of a run were trained on."""
    check_name(out, is_forced)
    rows = sft.rows(Warehouse(data, run_id), form)
    write(rows, sft.schema(form), out)
    prose(f"{len(rows)} rows of exploration episodes: {out}")


def export_trajectories(data: Path, run_id: str | None, phases: Sequence[str], out: Path, is_forced: bool) -> None:
    """Writes the episodes of a run."""
    check_name(out, is_forced)
    rows = trajectories.rows(Warehouse(data, run_id), phases)
    write(rows, trajectories.SCHEMA, out)
    prose(f"{len(rows)} episodes with the verifier's rewards, which no agent was told: {out}")
