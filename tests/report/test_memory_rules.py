"""The section on which rules were in force when a score moved."""

from pathlib import Path

import pytest

from s3gym.report.sections import memory_rules
from tests.report.test_game_ranks import words
from tests.sql.lab import Lab
from tests.sql.test_memory_rules import remember


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "data")


def test_rules_stand_under_the_rise_and_the_fall_they_were_in_force_at(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [4.0], 6: [2.0], 9: [2.5]}, pathway="memory")
    remember(lab, 3, "Retain\n- Eat <b> [episodes 1, 2]\n- Sleep [episode 7]")
    remember(lab, 6, "Retain\n- Eat <b>\nAvoid\n- Walls")
    remember(lab, 9, "- Neither the largest rise nor a fall")

    text = memory_rules.build(lab.open())
    told = words(text)

    assert "Of 5 rules in all memories 1 name an episode; 1 name one that there was not." in told
    assert "m · snake · checkpoint 3 ▲ +3.00 to 4.00 2 rules, 2 new Eat <b> Retain 1, 2 3 Sleep Retain" in told
    # what is new comes first
    assert "checkpoint 6 ▼ -2.00 to 2.00 2 rules, 1 new Walls Avoid – (it names no episode) 6 Eat <b> Retain" in told
    assert "largest rise nor" not in told
    assert "<b>" not in text


def test_of_many_rules_the_first_are_shown_and_all_are_counted(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [4.0]}, pathway="memory")
    remember(lab, 3, "\n".join(f"- rule {number} {'x' * 400}" for number in range(9)))

    told = words(memory_rules.build(lab.open()))

    assert "9 rules, 9 new" in told
    assert told.count("xxx…") == memory_rules.SHOWN == 5


def test_a_score_that_never_moves_is_said(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [1.0]}, pathway="memory")
    remember(lab, 3, "- Eat")

    assert "No held-out score moved" in words(memory_rules.build(lab.open()))
