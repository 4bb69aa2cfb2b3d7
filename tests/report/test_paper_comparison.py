"""The section that puts published numbers beside ours."""

import html
import re
from pathlib import Path

from s3gym.report.sections import paper_comparison
from tests.sql.lab import Lab, Turn


def words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub("<.*?>", " ", text))).replace("−", "-")


def test_without_a_published_game_it_says_what_is_published(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(curve={0: [1.0]}, game="chess")

    assert "s3gym run --suite paper --scale paper" in words(paper_comparison.build(lab.open()))


def test_numbers_stand_beside_the_published_ones_with_what_differs(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    explored = {0: [[Turn(1.0, 1.0), Turn(1.0, 0.0)]]}
    lab.add("listed", {0: [1.0], 3: [2.0]}, explored, model_id="gpt-4o", start="a")
    lab.add("other", {0: [None], 3: [2.0]}, model_id="<other>", start="b")
    lab.add("player", {0: [9.0], 3: [9.0]}, model_id="player:learner", start="c")

    told = words(paper_comparison.build(lab.open()))

    # mean 1.5, best 2, area 3 * 1 / 2
    assert "GPT-4o 1.500 (published: 0.212) 2.000 (published: 0.667) 1.500 (published: 0.000)" in told
    assert "0.500 (published: 0.879)" in told
    assert "best of 7: GPT-5.5" in told and "median of 7" in told
    assert "<other>, not GPT-5.5; 6 exploration episodes, not 30; 2 checkpoints, not 11; 1 of them not" in told
    assert "– (too few valid checkpoints) (published: 0.163)" in told
    assert "arXiv 2608.31100, CC BY 4.0" in told
    # a program is not put beside language models
    assert "player:learner" not in told and "Only scripted players" not in told


def test_players_are_shown_where_there_is_nobody_else_and_are_called_programs(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add(curve={0: [1.0], 3: [2.0]}, model_id="player:learner")

    told = words(paper_comparison.build(lab.open()))

    assert "player:learner" in told
    assert "Only scripted players have been measured: programs that know a game's rules, no language models" in told
