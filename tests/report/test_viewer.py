"""The viewer at small scale: steps walked, episodes chosen and linked to, nothing of a reply run."""

from pathlib import Path

import pytest

from s3gym.report.render import render
from s3gym.warehouse import Warehouse
from tests.report import folder
from tests.report.chromium import Chromium
from tests.report.viewing import Viewer, link

MEMORY = "evaluate-openai-gpt-4.1-trust-memory-4/1"
FIELDS = ("model", "game", "pathway", "phase", "checkpoint")
ODD = "a=b é&x %41+y's"
COLOURED = "</script><script>window.hacked = true</script>\x1b[31mred\x1b[0m\u2028"


@pytest.fixture
def viewer(browser: Chromium) -> Viewer:
    return Viewer(browser)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """One cell with a model of an odd name, whose replies end in codes: four episodes of three steps."""
    data = tmp_path_factory.mktemp("odd") / "data"
    folder.make(data, models=[ODD], pathways=("memory",), cycles=1, episodes=1, reply=COLOURED)
    return Warehouse(data, materialize=True)


@pytest.fixture(scope="module")
def odd_page(odd: Warehouse) -> Path:
    return render(odd, odd.data.with_name("report.html"))


def test_nothing_in_a_reply_or_a_memory_becomes_part_of_the_page(page: Path, viewer: Viewer) -> None:
    viewer.open(page, link(MEMORY, 1))

    assert folder.HOSTILE in viewer.text("reply")
    assert folder.HOSTILE in viewer.text("experience-text")
    assert viewer.browser.run("document.querySelectorAll('img').length") == 0
    assert viewer.browser.run("typeof window.hacked") == "undefined"


def test_codes_for_a_terminal_and_the_end_of_a_script_are_shown_as_text(odd_page: Path, viewer: Viewer) -> None:
    viewer.open(odd_page)

    assert viewer.text("reply").endswith(COLOURED)
    assert viewer.browser.run("typeof window.hacked") == "undefined"
    assert viewer.browser.complaints == []


def test_a_link_opens_an_episode_whatever_its_id_is_made_of(odd_page: Path, viewer: Viewer) -> None:
    episode = f"evaluate-{ODD}-trust-memory-2/0"

    viewer.open(odd_page, link(episode, 2))

    assert viewer.facts("episode")["id"] == episode
    assert viewer.text("position") == "Step 2 of 3"
    viewer.press_button("next")
    viewer.wait_for_address(link(episode, 3))


def test_a_link_opens_its_episode_at_its_step_and_keys_walk_on(page: Path, viewer: Viewer) -> None:
    viewer.open(page, link(MEMORY, 2))
    assert viewer.text("position") == "Step 2 of 3"

    viewer.press("ArrowRight")
    assert viewer.text("position") == "Step 3 of 3"
    viewer.press("ArrowRight")
    assert viewer.text("position") == "Step 3 of 3"
    viewer.wait_for_address(link(MEMORY, 3))
    viewer.press("Home")
    assert viewer.text("position") == "Step 1 of 3"
    viewer.press("End")
    viewer.press("ArrowLeft")
    assert viewer.text("position") == "Step 2 of 3"


def test_an_episode_that_is_not_there_is_named_with_the_command_for_it(page: Path, viewer: Viewer) -> None:
    viewer.open(page, "#episode=elsewhere")

    assert viewer.is_hidden("absent") is False
    assert viewer.text("absent-id") == "s3gym replay 'elsewhere'"
    assert viewer.text("position") == "Step 1 of 3"


def test_choosing_another_pathway_keeps_what_is_shown_otherwise(page: Path, viewer: Viewer) -> None:
    viewer.open(page, link(MEMORY, 2))

    viewer.choose("pathway", "history")

    assert viewer.facts("episode")["id"] == "evaluate-openai-gpt-4.1-trust-history-4/1"
    assert viewer.is_hidden("experience") is True


def test_a_choice_narrows_the_episodes_and_the_other_choices(page: Path, viewer: Viewer) -> None:
    viewer.open(page)
    # 4 held-out ones before, 4 after each of 2 cycles in 3 pathways, 4 exploration episodes in 2: 36 a model
    assert viewer.text("count") == "Episode, of 72"

    viewer.choose("phase", "exploration")
    assert viewer.text("count") == "Episode, of 16"
    assert viewer.options("pathway") == ["all", "history", "memory"]
    viewer.choose("model", "player:myopic")
    viewer.choose("pathway", "memory")
    assert viewer.text("count") == "Episode, of 4"
    assert viewer.facts("episode")["model"] == "player:myopic"


def test_a_shared_evaluation_is_found_under_each_pathway_and_listed_once(page: Path, viewer: Viewer) -> None:
    viewer.open(page, link("evaluate-openai-gpt-4.1-trust-0/0", 1))
    assert viewer.facts("episode")["pathway"] == "history; memory; none"

    for pathway in ("history", "memory", "none"):
        viewer.choose("pathway", pathway)
        assert viewer.facts("episode")["id"] == "evaluate-openai-gpt-4.1-trust-0/0"


def test_a_link_to_an_episode_left_out_by_the_choice_takes_the_choice_back(page: Path, viewer: Viewer) -> None:
    viewer.open(page)
    viewer.choose("pathway", "history")

    viewer.browser.run(f"location.hash = {link(MEMORY, 1)!r}")
    viewer.browser.wait(lambda: viewer.facts("episode")["id"] == MEMORY, "the episode")

    assert [viewer.chosen(name) for name in FIELDS] == [""] * 5


def test_surprises_come_from_the_largest_gap_down_and_begin_again(
    odd: Warehouse, odd_page: Path, viewer: Viewer
) -> None:
    # the declared range of a step's reward is from -10 to 10, and a gap is shown in percent of it
    gaps = odd.sql("""
        select cast(round(100 * abs(self_score - verifier_reward) / 20) as bigint) as gap
        from int_cell_steps
        where self_score != verifier_reward
        order by gap desc
    """)["gap"].to_list()
    viewer.open(odd_page)

    viewer.choose("order", "surprise")
    shown = [viewer.facts("facts")["surprise, of the range"]]
    for _ in gaps:
        viewer.press_button("surprise")
        shown.append(viewer.facts("facts")["surprise, of the range"])

    assert gaps[0] > gaps[-1] > 0
    assert shown == [f"{gap} %" for gap in [*gaps, gaps[0]]]
    assert viewer.text("rank") == f"surprise 1 of {len(gaps)}"


def test_the_viewer_is_used_with_keys_alone_and_shows_where_they_go(page: Path, viewer: Viewer) -> None:
    viewer.open(page)
    focused = "document.activeElement.name || document.activeElement.dataset.part || ''"
    viewer.browser.run("document.querySelector('#viewer select[name=episode]').focus()")

    viewer.press("Tab")
    assert viewer.browser.run(focused) == "stage"
    assert viewer.browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    viewer.press("ArrowRight")
    assert viewer.text("position") == "Step 2 of 3"
    viewer.press("s")
    assert viewer.text("rank").startswith("surprise ")
    viewer.press("End")
    viewer.press("Tab")
    assert viewer.browser.run(focused) == "previous"
    # the list of steps is one stop, at the step shown
    stops = viewer.browser.run("[...document.querySelectorAll('.steps button')].map((b) => b.tabIndex)")
    assert stops == [-1, -1, 0]  # of three


def test_every_control_has_a_name_for_those_who_do_not_see_it(page: Path, viewer: Viewer) -> None:
    viewer.open(page)

    unnamed = viewer.browser.run("""
        [...document.querySelectorAll('#viewer select, #viewer button')]
            .filter((c) => !(c.ariaLabel || c.textContent.trim() && c.tagName === 'BUTTON' || c.labels?.length)).length
    """)

    assert unnamed == 0


def test_paper_gets_the_episode_shown_and_no_controls(page: Path, viewer: Viewer) -> None:
    viewer.browser.emulate(media="print", scheme="dark")
    try:
        viewer.open(page, link(MEMORY, 1))
        look = "getComputedStyle(document.querySelector('{}')).{}"

        assert viewer.browser.run(look.format("#viewer .choices", "display")) == "none"
        assert viewer.browser.run(look.format("#viewer .walk button", "display")) == "none"
        assert viewer.browser.run(look.format("[data-part=reply]", "maxHeight")) == "none"
        # ink on paper, whatever the screen is like
        assert viewer.browser.run(look.format("body", "color")) == "rgb(29, 33, 37)"
    finally:
        viewer.browser.emulate()


def test_a_narrow_window_holds_the_viewer(odd_page: Path, viewer: Viewer) -> None:
    viewer.open(odd_page, width=390)

    assert viewer.browser.run("document.documentElement.scrollWidth") <= 390
