"""The other forms of the report: its text, its charts as images, its tables as CSV."""

import csv
import re
import struct
from pathlib import Path

import pytest
from markupsafe import Markup

from s3gym.report import charts, fragments, images, markdown, render, tables
from s3gym.report.fragments import Column
from s3gym.warehouse import Warehouse
from tests.report import folder
from tests.report.test_training import words


def text_of(html: str, images: tuple[str, ...] = ()) -> str:
    section = render.Section("name", "Title", ("improvement",), Markup(html))
    text = markdown.markdown(render.Page((), (section,)), images)
    return text.split("## Title\n\n")[1].removesuffix("\n\n*Reads `improvement`.*\n")


# --- Markdown --------------------------------------------------------------------------------------------------


def test_a_table_becomes_one_of_github_with_its_groups() -> None:
    columns = [Column("Game", lambda r: r["game"], is_text=True), Column("Score", lambda r: r["score"])]
    rows = [{"model": "a", "game": "snake", "score": "1"}, {"model": "b", "game": "trust", "score": "2"}]

    assert text_of(fragments.table("Scores", rows, columns, "model")).splitlines() == [
        "**Scores**",
        "",
        "| Game | Score |",
        "| --- | --- |",
        "| **a** |  |",
        "| snake | 1 |",
        "| **b** |  |",
        "| trust | 2 |",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("<b>*x*</b>", r"\<b\>\*x\*\</b\>"),
        ("[x](http://y)", r"[x\](http://y)"),
        ("latent_chess", "latent_chess"),
        ("_x_ a&b", r"\_x\_ a\&b"),
        ("+1.00 [0.50, 1.50]", "+1.00 [0.50, 1.50]"),
    ],
)
def test_no_text_is_read_as_markdown(text: str, shown: str) -> None:
    assert text_of(fragments.lead(text)) == shown


def test_sentences_code_and_lists_keep_their_form() -> None:
    html = fragments.notice("Ask `s3gym run` for more.") + fragments.bullets(["one", "two"])

    assert text_of(html) == "Ask `s3gym run` for more.\n\n- one\n- two"
    assert text_of(fragments.tiles([("3", "cells")])) == "- **3** cells"


def test_a_chart_is_a_link_to_its_image_or_its_caption() -> None:
    html = charts.figure({}, {}, "snake", "Gain in snake.", 100)

    assert text_of(html) == "*Chart: snake*"
    assert text_of(html, ("charts/a b.svg",)) == "![Gain in snake.](<charts/a b.svg>)\nsnake"


def test_the_text_says_what_the_page_says(built: render.Page) -> None:
    text = markdown.markdown(built)

    assert re.findall(r"^## (.*)", text, re.M) == [section.title for section in built.sections]
    assert "player:myopic" in text and "- **trust** ●" in text
    # every number of the summary, in its order
    numbers = re.compile(r"[+-]?\d+\.\d+")
    summary = text.split("## Improvement")[0].split("## Summary")[1].replace("−", "-")
    assert numbers.findall(summary) == numbers.findall(words(built.sections[0].html))
    assert folder.HOSTILE not in text and "<script" not in text


# --- images ----------------------------------------------------------------------------------------------------


def test_every_chart_becomes_an_image_that_needs_no_page(built: render.Page, tmp_path: Path) -> None:
    written = images.write(built, tmp_path, "svg")

    assert len(written) == sum(section.html.count('<figure class="chart">') for section in built.sections) > 5
    gains = (tmp_path / "summary-01-gain-in-trust-with-95-intervals.svg").read_text()
    assert "var(" not in gains
    assert "#0072b2" in gains and "#ffffff" in gains, "the page's light colours"
    assert "history" in gains and "memory" in gains, "a key to them"
    assert re.sub(r"\s", " ", gains).count("openai/gpt-4.1") >= 1


def test_a_png_has_twice_the_pixels(built: render.Page, tmp_path: Path) -> None:
    one = built._replace(sections=built.sections[:1])

    (path,) = images.write(one, tmp_path, "png")

    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">I", content[16:20])[0] >= images.WIDTH * images.SCALE


def test_a_caption_is_given_back_without_its_markup() -> None:
    figure = charts.figure({"mark": "bar"}, {}, Markup("a <b>b</b> &amp; c"), 'said "so"', 100)

    ((caption, description, specification),) = charts.figures_in(figure + figure[:50])

    assert (caption, description) == ("a b & c", 'said "so"')
    assert specification.startswith('{"mark":"bar"')


# --- tables ----------------------------------------------------------------------------------------------------


def test_every_mart_becomes_a_file_with_all_its_rows(warehouse: Warehouse, tmp_path: Path) -> None:
    written = tables.write(warehouse, tmp_path)

    marts = [name for layer, name in warehouse.views() if layer == "marts"]
    assert [path.stem for path in written] == marts
    with (tmp_path / "improvement.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = warehouse.sql("from improvement order by all").to_dicts()
    assert [row["cell_id"] for row in rows] == [row["cell_id"] for row in expected]
    assert [float(row["avg_score"]) for row in rows] == pytest.approx([row["avg_score"] for row in expected])


def test_what_is_missing_is_an_empty_field(tmp_path: Path) -> None:
    folder.make(tmp_path / "data", models=["m"], pathways=["none"], cycles=1, episodes=1)

    tables.write(Warehouse(tmp_path / "data"), tmp_path / "csv")

    (row,) = csv.DictReader((tmp_path / "csv" / "verdict.csv").read_text().splitlines())
    assert (row["verdict"], row["over_claiming"], row["belief_count"]) == ("control_only", "", "0")
