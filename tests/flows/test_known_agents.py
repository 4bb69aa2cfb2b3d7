"""Agents with exactly one broken link: the verdict names it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from s3gym.models._links import BROKEN
from tests.flows.simulated import answers, learner

VERDICTS = """
    select model_id, verdict
    from break_location
    where cell_count = (select max(cell_count) from break_location)
"""
EXPECTED = {
    learner("nothing"): "none",
    learner("testing"): "testing",
    learner("judging"): "judging",
    learner("consolidation"): "consolidation",
    learner("execution"): "transfer",
}


def named(seeds: Sequence[int], **values: Any) -> Counter[tuple[Any, ...]]:
    """How often each (model, verdict) came up in snake."""
    rows = answers(seeds, VERDICTS, is_refreshed=True, games=("snake",), **values)
    return Counter(row for found in rows for row in found)


def test_one_run_tells_who_misjudges_from_who_is_healthy() -> None:
    found = named([11], broken=("judging", "nothing"), pathways=("none", "memory"))
    assert found == {(learner("judging"), "judging"): 1, (learner("nothing"), "none"): 1}


@pytest.mark.long
def test_every_broken_link_is_named_run_after_run() -> None:
    assert set(EXPECTED) == {learner(name) for name in BROKEN}
    assert named(range(200, 203)) == {pair: 3 for pair in EXPECTED.items()}
