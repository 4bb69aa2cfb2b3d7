import pytest

from tests.sql.lab import Lab, Turn, row


def test_statuses_are_counted_and_failed_calls_are_not_in_the_rate(lab: Lab) -> None:
    statuses = ["ok", "ok", "ok", "repaired", "unparsable", "invalid", "illegal", "ambiguous", None]
    lab.add(explored={0: [[Turn(None, None if status is None else 0.0, status) for status in statuses]]})
    actions = row(lab.open(), "action_validity")
    names = ("step", "ok", "repaired", "unparsable", "invalid", "illegal", "ambiguous", "failed_call")
    assert [actions[f"{name}_count"] for name in names] == [9, 3, 1, 1, 1, 1, 1, 1]
    # 4 of 8: Wilson around 1/2, half-width z sqrt(1/32 + z^2/256) / (1 + z^2/8) = 0.28478
    assert actions["usable_rate"] == 0.5
    assert actions["usable_rate_low"] == pytest.approx(0.21522, abs=1e-5)
    assert actions["usable_rate_high"] == pytest.approx(0.78478, abs=1e-5)


def test_no_rate_when_every_call_failed(lab: Lab) -> None:
    lab.add(curve={0: [None]})
    actions = row(lab.open(), "action_validity")
    assert (actions["step_count"], actions["failed_call_count"]) == (1, 1)
    assert (actions["usable_rate"], actions["usable_rate_low"], actions["usable_rate_high"]) == (
        None,
        None,
        None,
    )
