import re
from pathlib import Path

import pytest
from markupsafe import Markup

from s3gym.report.render import Page, Section, html
from s3gym.report.sections import break_location
from tests.report.chromium import Chromium
from tests.sql.lab import Lab
from tests.sql.test_break_location import HELPS, NOT, NOTHING_HELPS, OPEN, chain, with_p

LINK = re.compile(r'<li class="[\w-]+"><span aria-hidden="true">(.)</span> ([\w ]+) <strong>([\w ]+)</strong></li>')
GUIDED = NOTHING_HELPS | {"reference_memory": HELPS, "placebo_memory": NOT}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path / "data")
    lab.anchors(random=0.0, expert=10.0)
    return lab


def built(lab: Lab) -> str:
    return break_location.build(with_p(lab.open(materialize=True)))


def test_without_an_intervention_there_is_no_section(lab: Lab) -> None:
    chain(lab, {"own": HELPS})
    assert built(lab) == ""


def test_the_broken_link_is_marked_by_sign_and_word_with_the_differences_beneath(lab: Lab) -> None:
    chain(lab, GUIDED)
    shown = built(lab)
    assert LINK.findall(shown) == [
        ("?", "testing", "not told"),
        ("?", "judging", "not told"),
        ("✗", "consolidation", "breaks"),
        ("✓", "execution and transfer", "works"),
    ]
    # 7 -+ 4.303 * 0.57735
    assert re.search(r"<dt>Our guide</dt><dd>\+7\.00 <span.*?>\[\+4\.52, \+9\.48\]</span> <span.*?</span> helps", shown)
    assert "<dt>Relaxed rules</dt>" not in shown  # it was not run
    assert '<a href="#episode=m%20reference_memory-evaluate-3%2F1&amp;step=1">with (our guide)</a>' in shown
    assert '<a href="#episode=m%20main-evaluate-3%2F1&amp;step=1">without</a>' in shown
    assert "replaced exactly one link" in shown and "the only ones whose prompts held rewards" in shown


def test_what_is_not_decided_says_what_would_decide(lab: Lab) -> None:
    chain(lab, {"own": NOT, "oracle_judge": NOT}, model="unasked")
    chain(lab, NOTHING_HELPS | {"own": OPEN}, model="<b>open")
    shown = built(lab)
    assert "<b>" not in shown
    assert "Not asked: expert_exploration would decide next." in shown
    assert "Undecided: own experience. Some 30 held-out episodes a checkpoint would decide." in shown
    assert {state for _, _, state in LINK.findall(shown)} == {"not told"}


def test_a_model_and_game_has_one_card_for_its_text_pathways_and_all_in_the_table(lab: Lab) -> None:
    for pathway in ("history", "memory"):
        lab.add(f"{pathway} main", {3: NOT}, pathway=pathway)
        lab.add(f"{pathway} oracle", {3: HELPS}, pathway=pathway, intervention="oracle_judge")
    shown = built(lab)
    assert shown.count('<article class="broken">') == 1
    assert all(f">{whose}</td>" in shown for whose in ("snake", "snake, history", "snake, memory"))


def test_a_card_fits_a_phone(lab: Lab, tmp_path: Path, browser: Chromium) -> None:
    chain(lab, GUIDED)
    section = Section("break_location", break_location.TITLE, break_location.MARTS, Markup(built(lab)))
    page = tmp_path / "report.html"
    page.write_text(html(Page((), (section,))), encoding="utf-8")
    browser.open(page, width=390)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    widest = (
        "Math.max(...[...document.querySelectorAll('.chain li')].map((link) => link.getBoundingClientRect().right))"
    )
    assert 0 < browser.run(widest) <= 390
