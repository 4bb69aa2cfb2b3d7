"""Rules of memory texts, as models write them and as they do not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.sql.lab import EXPERIENCE, Lab

TEXT = """\
**Retain:**
- Open kindly. [episodes 1, 3]
- Look ahead [Episode 2].

## Avoid
1. Walls [episodes 2-3, 9, 1]
Never turn back [sic]

Next
• Try the left side [episodes]
"""


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "data")


def remember(lab: Lab, checkpoint: int, text: str | None, kind: str = "memory") -> None:
    key = f"built-{checkpoint}"
    row = replace(EXPERIENCE, stage_key=key, checkpoint=checkpoint, kind=kind, text=text, pathway="memory")
    lab.part(key, {"experiences": [row]})
    lab.link("build_experience", key, checkpoint)


def rules(lab: Lab, columns: str) -> list[tuple[Any, ...]]:
    return lab.open().sql(f"select {columns} from memory_rules order by checkpoint, line_number").rows()


def test_a_rule_is_read_with_its_heading_and_its_episodes(lab: Lab) -> None:
    lab.add(pathway="memory")
    remember(lab, 3, TEXT)

    assert rules(lab, "line_number, heading, rule_text, named_episodes, named_count, unknown_count") == [
        (2, "Retain", "Open kindly.", "1, 3", 2, 0),
        (3, "Retain", "Look ahead", "2", 1, 0),
        (6, "Avoid", "Walls", "1, 2, 3", 3, 1),  # 2 to 3, and 1; there is no ninth episode behind three
        (7, "Avoid", "Never turn back [sic]", None, 0, 0),
        (10, "Next", "Try the left side", None, 0, 0),
    ]


def test_a_text_in_another_form_is_kept_whole(lab: Lab) -> None:
    lab.add(pathway="memory")
    remember(lab, 3, "Retain: kind openings. Avoid: walls.\r\n-5 is the lowest score")

    assert rules(lab, "heading, rule_text, named_episodes") == [
        (None, "Retain: kind openings. Avoid: walls.", None),
        (None, "-5 is the lowest score", None),
    ]


@pytest.mark.parametrize("named", ["0", "4", "1000000-2000000", "99999999999999999999999", "3-1"])
def test_numbers_that_no_episode_has_are_counted_and_never_shown(lab: Lab, named: str) -> None:
    lab.add(pathway="memory")
    remember(lab, 3, f"- Beware [episodes {named}]")

    ((episodes, count, unknown),) = rules(lab, "named_episodes, named_count, unknown_count")
    # a span that runs backwards names nothing; a long one is cut, a number that is none counts as one that is not there
    assert (episodes, count) == (None, 0)
    assert unknown == {"3-1": 0, "1000000-2000000": 4}.get(named, 1)


def test_a_rule_that_stays_keeps_its_first_checkpoint_beside_the_change_of_the_score(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [4.0], 6: [2.0], 9: [2.0]}, pathway="memory")
    remember(lab, 3, "- Keep left.\n- Eat")
    remember(lab, 6, "- keep  LEFT [episode 5]")
    remember(lab, 9, "- Eat\n- Keep left")

    assert rules(lab, "checkpoint, rule_text, first_checkpoint, is_new, score, previous_score, score_change") == [
        (3, "Keep left.", 3, True, 4.0, 1.0, 3.0),
        (3, "Eat", 3, True, 4.0, 1.0, 3.0),
        (6, "keep  LEFT", 3, False, 2.0, 4.0, -2.0),
        (9, "Eat", 3, True, 2.0, 2.0, 0.0),  # it was not there at 6
        (9, "Keep left", 3, False, 2.0, 2.0, 0.0),
    ]


def test_only_memories_have_rules(lab: Lab) -> None:
    lab.add(pathway="memory")
    remember(lab, 3, "- Placed here by us", kind="reference guide")
    remember(lab, 6, None)
    remember(lab, 9, "- Mine", kind="memory, oracle scores")

    assert rules(lab, "checkpoint, rule_text") == [(9, "Mine")]


def test_an_invalid_checkpoint_has_no_score(lab: Lab) -> None:
    lab.add(curve={0: [1.0], 3: [None]}, pathway="memory")
    remember(lab, 3, "- Eat")

    assert rules(lab, "score, previous_score, score_change") == [(None, 1.0, None)]
