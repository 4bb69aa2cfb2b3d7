"""The report of a run as large as the published one: what it holds, what it weighs, and that it never freezes."""

import base64
import json
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s3gym.report.render import render
from s3gym.warehouse import Warehouse
from tests.report import big
from tests.report.chromium import Chromium
from tests.report.viewing import Viewer, link

pytestmark = pytest.mark.long

STEPS = (
    len(big.GAMES)
    * len(big.MODELS)
    * (
        # the evaluation before any experience, which both pathways share, then 10 more and 30 of exploration in each
        big.EVALUATED + len(big.PATHWAYS) * (10 * big.EVALUATED + big.EXPLORED)
    )
    * big.STEPS
)
LOAD_SECONDS = 5
BLOCKED_SECONDS = 0.5
"""Longest time for which the page may not answer, from the first step on."""
EPISODE = "snake:explore-15-memory-27:é=& %#/29"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    data = tmp_path_factory.mktemp("big") / "data"
    big.make(data)
    return Warehouse(data, materialize=True)


@pytest.fixture(scope="module")
def page(warehouse: Warehouse) -> Path:
    return render(warehouse, warehouse.data.with_name("report.html"))


@pytest.fixture
def viewer(browser: Chromium) -> Viewer:
    return Viewer(browser)


@pytest.fixture(scope="module")
def pieces(page: Path) -> dict[str, str]:
    """What is packed in the page, by name."""
    return dict(re.findall(r'id="trajectories-([\w-]+)">([^<]+)<', page.read_text()))


def _seconds(do: Callable[[], object]) -> float:
    start = time.monotonic()
    do()
    return time.monotonic() - start


def _unpacked(piece: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(piece)))


def test_it_stays_below_fifteen_megabytes_and_says_what_it_holds(page: Path) -> None:
    text = page.read_text()

    assert STEPS == 120_540
    assert page.stat().st_size < 15_000_000
    assert f"Of {STEPS:,} steps this page holds" in text
    assert text.count('id="trajectories-whole-') > 500


def test_every_step_is_there_with_its_scores_and_its_answer(warehouse: Warehouse, pieces: dict[str, str]) -> None:
    index = _unpacked(pieces["index"])
    cells = {number: _unpacked(pieces[f"cell-{number}"])["episodes"] for number in range(len(index["cells"]))}
    held = {e["id"]: cells[e["cells"][0]][e["place"]] for e in index["episodes"]}
    stored = warehouse.sql("""
        select episode_id, list(verifier_reward order by step_index) as rewards,
            list(self_score order by step_index) as scores, list(action order by step_index) as actions,
            list(reply[-30:] order by step_index) as ends
        from stg_steps
        group by episode_id
    """).to_dicts()

    assert sum(len(episode["action"]) for episode in held.values()) == STEPS
    for row in stored:
        episode = held.pop(row["episode_id"])
        facts = (episode["verifier_reward"], episode["self_score"], episode["action"])
        assert facts == (row["rewards"], row["scores"], row["actions"])
        assert all(end.endswith(answer) for end, answer in zip(row["ends"], episode["answer"], strict=True))
    assert held == {}


def test_every_cell_has_whole_episodes_of_each_kind_and_its_most_surprising_one(pieces: dict[str, str]) -> None:
    index = _unpacked(pieces["index"])
    for number in range(len(index["cells"])):
        own = [e for e in index["episodes"] if number in e["cells"]]
        whole = [e for e in own if e["whole"]]
        gap = {e["id"]: max(gap or 0 for gap in e["gaps"]) for e in own}

        assert {0, 30} <= {e["checkpoint"] for e in whole if e["phase"] == "evaluation"}
        assert {0, 29} <= {e["episode"] for e in whole if e["phase"] == "exploration"}
        assert max(gap[e["id"]] for e in whole) == max(gap.values())


def test_the_page_is_soon_ready_and_answers_at_once(page: Path, viewer: Viewer) -> None:
    ready = min(_seconds(lambda: viewer.open(page, link(EPISODE, 20))) for _ in range(3))
    viewer.browser.run(
        "window.blocked = []; new PerformanceObserver((seen) => seen.getEntries()"
        ".forEach((task) => blocked.push(task.duration))).observe({type: 'longtask'})"
    )

    assert viewer.facts("episode")["id"] == EPISODE
    assert viewer.text("position") == "Step 20 of 20"
    viewer.press("ArrowLeft", times=19)
    assert viewer.text("position") == "Step 1 of 20"
    viewer.press("s", times=20)
    viewer.choose("order", "surprise")
    viewer.choose("model", "7")
    viewer.choose("game", "snake")
    viewer.choose("phase", "exploration")

    # 30 in each pathway
    assert viewer.text("count") == "Episode, of 60"
    assert ready < LOAD_SECONDS
    assert max(viewer.browser.run("blocked"), default=0) < 1000 * BLOCKED_SECONDS
    assert viewer.browser.complaints == []


def test_an_episode_in_brief_shows_its_answer_and_how_to_see_the_rest(
    page: Path, viewer: Viewer, pieces: dict[str, str]
) -> None:
    brief = next(e for e in _unpacked(pieces["index"])["episodes"] if not e["whole"])

    viewer.open(page, link(brief["id"], 3))

    assert viewer.is_hidden("brief") is False
    assert viewer.text("replay") == f"s3gym replay '{brief['id']}'"
    assert viewer.text("reply").startswith("Answer: ")
    assert viewer.is_hidden("seen") is True


@pytest.mark.parametrize("text", [big.HOSTILE, big.COLOURED])
def test_no_text_of_a_model_runs_or_breaks_out(page: Path, viewer: Viewer, text: str, pieces: dict[str, str]) -> None:
    whole = [(number, e["id"]) for number, e in enumerate(_unpacked(pieces["index"])["episodes"]) if e["whole"]]
    episode, step = next(
        (name, at)
        for number, name in whole
        for at, texts in enumerate(_unpacked(pieces[f"whole-{number}"])["steps"])
        if text in texts["reply"]
    )

    viewer.open(page, link(episode, step + 1))

    assert text in viewer.text("reply")
    assert viewer.browser.run("typeof window.hacked") == "undefined"
    assert viewer.browser.run("document.querySelectorAll('img').length") == 0


def test_all_charts_are_drawn_without_a_complaint(page: Path, browser: Chromium) -> None:
    states = "[...document.querySelectorAll('figure.chart')].map((figure) => figure.dataset.state)"
    browser.open(page, width=390)
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.wait(lambda: set(browser.run(states)) == {"drawn"}, "all charts")

    assert browser.complaints == []
    assert browser.run("document.documentElement.scrollWidth") <= 390
