"""The page as Chromium shows it: charts drawn, nothing fetched, nothing run that is not its own."""

from pathlib import Path

from s3gym.report.render import render
from s3gym.warehouse import Warehouse
from tests.report.chromium import Chromium

STATES = "[...document.querySelectorAll('figure.chart')].map((figure) => figure.dataset.state)"


def test_every_chart_is_drawn_without_a_complaint_or_a_request(page: Path, browser: Chromium) -> None:
    browser.open(page)
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.wait(lambda: set(browser.run(STATES)) == {"drawn"}, "all charts")

    # gains and floors a game, a curve a model, shares and tenths a phase, coupling, memory against history a model
    assert browser.run("document.querySelectorAll('figure.chart svg').length") == 2 + 2 + 2 * 2 + 1 + 2
    assert browser.run("document.querySelectorAll('#improvement svg .mark-line path').length") == 2 * 3
    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("file:", "about:"))] == []


def test_charts_of_training_and_transfer_are_drawn(trained: Warehouse, tmp_path: Path, browser: Chromium) -> None:
    browser.open(render(trained, tmp_path / "report.html"))
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.wait(lambda: set(browser.run(STATES)) == {"drawn"}, "all charts")

    # curves and losses of two models in two games; a map a model with two sources and two targets
    assert browser.run("document.querySelectorAll('#training figure.chart svg').length") == 4 + 4
    assert browser.run("document.querySelectorAll('#transfer figure.chart svg').length") == 2
    assert browser.run("document.querySelectorAll('#transfer svg .mark-rect path').length") == 2 * 2 * 2
    assert browser.complaints == []


def test_a_chart_out_of_sight_waits(page: Path, browser: Chromium) -> None:
    browser.open(page, height=300)
    browser.run("document.querySelector('figure.chart').scrollIntoView()")
    browser.wait(lambda: browser.run(STATES)[0] == "drawn", "the first chart")

    assert browser.run(STATES)[-1] is None


def test_the_page_would_not_run_a_handler_even_if_one_got_in(page: Path, browser: Chromium) -> None:
    browser.open(page)

    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"window.hacked = 1\">')")
    browser.wait(lambda: any("Content Security Policy" in text for text in browser.complaints), "a violation")

    assert browser.run("typeof window.hacked") == "undefined"


def test_a_narrow_window_scrolls_tables_and_not_the_page(page: Path, browser: Chromium) -> None:
    browser.open(page, width=390)

    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert browser.run("document.querySelector('.scroll').scrollWidth") > 390
