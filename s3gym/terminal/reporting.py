"""``report``: the page or its text, and on request every table and every chart as a file."""

import os
from datetime import datetime
from pathlib import Path

import click

from s3gym import storage
from s3gym.report import images, markdown, render
from s3gym.report.tables import write as write_tables
from s3gym.resampling import refresh
from s3gym.warehouse import WHOLE, Selection, Warehouse


def write_report(
    data: Path,
    out: Path | None,
    form: str | None,
    run_id: str | None,
    models: tuple[str, ...],
    games: tuple[str, ...],
    since: datetime | None,
    tables: Path | None,
    charts: Path | None,
    chart_format: str,
) -> None:
    """Writes what is asked for, and says where it is."""
    form = form or ("md" if out is not None and out.suffix == ".md" else "html")
    if form == "html":
        render.drawing_library()
    selection = Selection(models, games, since)
    out = out or data / f"{'report' if selection == WHOLE else 'report-part'}.{form}"  # a part replaces no whole
    warehouse = Warehouse(data, run_id, materialize=True, selection=selection)
    refresh(warehouse)
    page = render.build(warehouse)
    drawn = images.write(page, charts, chart_format) if charts else []
    linked = [Path(os.path.relpath(image, out.parent)).as_posix() for image in drawn]
    storage.write_text(out, markdown.markdown(page, linked) if form == "md" else render.html(page))
    click.echo(f"Report: {out}")
    if tables:
        click.echo(f"Tables: {len(write_tables(warehouse, tables))} files in {tables}")
    if charts:
        click.echo(f"Charts: {len(drawn)} files in {charts}")
