"""The section that compares models and pathways across games."""

import html
import re
from dataclasses import replace
from pathlib import Path

from s3gym.report.sections import game_ranks
from tests.sql.lab import Lab
from tests.sql.test_improvement_verdict import FLOOR


def words(text: str) -> str:
    told = html.unescape(re.sub("<.*?>", " ", text)).replace("−", "-").replace("\xa0", " ")
    return re.sub(r"\s+", " ", told)


def test_without_a_pathway_it_says_what_to_run(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(curve={0: [1.0]}, pathway="none")

    assert "s3gym run --pathway history" in words(game_ranks.build(lab.open()))


def test_ranks_have_the_number_of_rivals_and_verdicts_their_denominators(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    for model, end in (("<a>", 5.0), ("b", 3.0), ("c", 3.0)):
        lab.add(model, {0: [1.0], 3: [end]}, model_id=model)
    lab.add("<a> in trust", {0: [1.0], 3: [1.0]}, model_id="<a>", game="trust")
    warehouse = lab.open(materialize=True)
    warehouse.fill("noise_floors", [replace(FLOOR, cell_id="<a>"), replace(FLOOR, cell_id="<a> in trust", p_above=0.5)])

    text = game_ranks.build(warehouse)

    # one game of two improves; first of three in the one game with others: gain 4, area 3 * 4 / 2
    assert "<a> history 1/2 0/2 0/2 100 % 1.00 1 100 % 1.00 1" in words(text)
    assert "<a> history +4.00 1/3 6.000 1/3 1 1/1" in words(text)
    # second and third share 2.5, and each is above half of one of two others
    assert "b history – (no verdict) – (no verdict) – (no verdict) 25 % 2.50 1" in words(text)
    assert "<a>" not in text


def test_what_could_have_been_shown_is_told_beside_what_was_found(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.anchors(random=0.0, expert=5.0)
    lab.add("cell", {0: [0.0], 3: [4.0, 5.0, 6.0]}, start="y0")
    lab.add("control", {0: [0.0], 3: [0.0, 0.0, 0.0]}, start="y0", pathway="none", exploration_episode_count=0)

    # error 0.57735 at two degrees of freedom: 5.363 times that is 3.10, of 5 it is 0.62
    assert "m history 0 +5.00 3.10 0.62 3" in words(game_ranks.build(lab.open()))
