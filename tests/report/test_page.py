"""The page as Chromium shows it: charts drawn, steps walked, nothing fetched, nothing of a reply run."""

from pathlib import Path

from s3gym.report.render import render
from s3gym.warehouse import Warehouse
from tests.report import folder
from tests.report.chromium import Chromium

STATES = "[...document.querySelectorAll('figure.chart')].map((figure) => figure.dataset.state)"
POSITION = "document.querySelector('[data-part=position]').textContent"
MEMORY = "evaluate-openai-gpt-4.1-trust-memory-4/1"


def _link(episode: str, step: int) -> str:
    return f"#episode={episode.replace('/', '%2F')}&step={step}"


def test_every_chart_is_drawn_without_a_complaint_or_a_request(page: Path, browser: Chromium) -> None:
    browser.open(page)
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.wait(lambda: set(browser.run(STATES)) == {"drawn"}, "all charts")

    # a gain a game, a curve a model, shares and tenths a phase, coupling, memory against history a model
    assert browser.run("document.querySelectorAll('figure.chart svg').length") == 1 + 2 + 2 * 2 + 1 + 2
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
    browser.wait(lambda: browser.run(STATES)[0] == "drawn", "the first chart")

    assert browser.run(STATES)[-1] is None


def test_nothing_in_a_reply_or_a_memory_becomes_part_of_the_page(page: Path, browser: Chromium) -> None:
    browser.open(page, _link(MEMORY, 1))

    reply = browser.run("document.querySelector('[data-part=reply]').textContent")
    memory = browser.run("document.querySelector('[data-part=experience-text]').textContent")
    assert folder.HOSTILE in reply
    assert folder.HOSTILE in memory
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("typeof window.hacked") == "undefined"


def test_the_page_would_not_run_a_handler_even_if_one_got_in(page: Path, browser: Chromium) -> None:
    browser.open(page)

    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"data:,\" onerror=\"window.hacked = 1\">')")
    browser.wait(lambda: any("Content Security Policy" in text for text in browser.complaints), "a violation")

    assert browser.run("typeof window.hacked") == "undefined"


def test_a_link_opens_its_episode_at_its_step_and_arrow_keys_walk_on(page: Path, browser: Chromium) -> None:
    browser.open(page, _link(MEMORY, 2))
    assert browser.run(POSITION) == "Step 2 of 3"

    browser.press("ArrowRight")
    assert browser.run(POSITION) == "Step 3 of 3"
    assert browser.run("location.hash") == _link(MEMORY, 3)
    browser.press("ArrowRight")
    assert browser.run(POSITION) == "Step 3 of 3"
    browser.press("Home")
    assert browser.run(POSITION) == "Step 1 of 3"
    chosen = browser.run("[...document.querySelectorAll('#viewer select')].map((s) => s.value)")
    assert chosen == ["openai/gpt-4.1", "trust", "memory", "evaluation", "4", "1"]


def test_choosing_another_pathway_keeps_the_other_choices(page: Path, browser: Chromium) -> None:
    browser.open(page, _link(MEMORY, 2))

    browser.run("""
        (() => {
            const pathway = document.querySelector('#viewer select[name=pathway]');
            pathway.value = 'history';
            pathway.dispatchEvent(new Event('change'));
        })()
    """)

    assert browser.run("location.hash") == _link("evaluate-openai-gpt-4.1-trust-history-4/1", 1)
    assert browser.run("document.querySelector('[data-part=experience]').hidden") is True


def test_an_episode_that_is_not_embedded_is_named_with_the_command_for_it(page: Path, browser: Chromium) -> None:
    browser.open(page, "#episode=elsewhere")

    assert browser.run("document.querySelector('[data-part=absent]').hidden") is False
    assert browser.run("document.querySelector('[data-part=absent-id]').textContent") == "s3gym replay elsewhere"


def test_a_narrow_window_scrolls_tables_and_not_the_page(page: Path, browser: Chromium) -> None:
    browser.open(page, width=390)

    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert browser.run("document.querySelector('.scroll').scrollWidth") > 390
