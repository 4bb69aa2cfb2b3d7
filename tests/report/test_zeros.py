"""A data set of nothing but zeros: it is no proof of zero, and the report says so."""

import re
from dataclasses import replace
from typing import Any

import pytest

from s3gym import resampling
from s3gym.report import markdown, render
from tests.report.test_training import words
from tests.sql.lab import JUDGMENT, Lab, Turn

NO_EPISODE: dict[str, Any] = {"exploration_episode_count": 0}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> render.Page:
    lab = Lab(tmp_path_factory.mktemp("zeros") / "data")
    nothing = [[Turn(0.0, 0.0)] * 2] * 3
    lab.anchors(random=0.0, expert=1.0)
    for pathway in ("none", "history", "memory"):
        explored = {} if pathway == "none" else {0: nothing, 3: nothing}
        settings = NO_EPISODE if pathway == "none" else {}
        lab.add(pathway, dict.fromkeys((0, 3, 6), nothing), explored, start="y0", pathway=pathway, **settings)
    judged = [replace(JUDGMENT, episode_id=f"history-explore-0/{i}", success_belief=0.0) for i in range(3)]
    lab.part("judged", {"judgments": judged})
    lab.link("self_judge", "judged", 0, cell_id="history")
    for checkpoint in (0, 3):
        lab.transfer(checkpoint, "trust", [0.0] * 3, "memory")
    warehouse = lab.open(materialize=True)
    resampling.refresh(warehouse)
    return render.build(warehouse)


def test_no_interval_is_without_width(page: render.Page) -> None:
    for section in page.sections:
        text = words(section.html)
        for ends in re.findall(r"\[([^\[\]]*,[^\[\]]*)\]", text):
            low, high = (end.strip() for end in ends.split(","))
            assert low != high, f"{section.name}: [{ends}]"
        assert "±" not in text


def test_a_gain_of_zero_is_told_by_how_many_pairs_are_alike(page: render.Page) -> None:
    told = words(page.sections[0].html)

    # three instances at two later checkpoints
    assert "under history (0.00 (no spread in 6 pairs) ) and memory (0.00 (no spread in 6 pairs) )" in told
    assert "▲" not in told and "▼" not in told


def test_shares_of_zero_have_the_interval_that_their_number_allows(page: render.Page) -> None:
    by_name = {section.name: words(section.html).replace("\N{NO-BREAK SPACE}", " ") for section in page.sections}

    # none of 3 beliefs is wrong: Wilson's upper end is z^2 / (n + z^2) = 3.84 / 6.84
    assert "0 of 3 looks back, 0 % [0, 56]" in by_name["summary"]
    # all steps agree in 6 episodes: t(5) = 2.571 for z, episodes for trials: 6 / (6 + 6.61) is the lower end
    assert "100 % [48, 100]" in by_name["judge_reliability"]


def test_the_text_has_the_same_words(page: render.Page) -> None:
    assert "(no spread in 6 pairs)" in markdown.markdown(page)
