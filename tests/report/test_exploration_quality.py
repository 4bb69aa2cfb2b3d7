"""The section on how an agent tested itself."""

from pathlib import Path

from s3gym.report.sections import exploration_quality
from tests.report.test_game_ranks import words
from tests.sql.lab import Lab, Turn


def test_a_row_has_the_numbers_of_the_mart_with_their_intervals(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.anchors(random=0.0, expert=4.0, config_id="relaxed")
    steps = [Turn(0.0, 0.0, observation="A", action="left"), Turn(2.0, 2.0, observation="B", action="up")]
    lab.add(model_id="<m>", explored={0: [steps, steps]})

    text = exploration_quality.build(lab.open())

    # two states of four steps, two of them repeated, two of them rewarded; scores of 2 on a scale from 0 to 4
    assert "<m> snake history 2 50 % [" in words(text)
    assert "0.50 0.50 2 4" in words(text)
    assert "<m>" not in text


def test_an_exploration_is_shown_once_with_who_explored(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add("own", explored={0: [1.0]})
    lab.add("oracle", intervention="oracle_judge")
    lab.link("explore", "own-explore-0", 0, cell_id="oracle")
    lab.add("expert", explored={0: [3.0]}, intervention="expert_exploration", explorer_id="player:expert")

    told = words(exploration_quality.build(lab.open()))

    assert "oracle_judge" not in told
    assert "snake history main itself" in told and "snake history expert_exploration player:expert" in told
