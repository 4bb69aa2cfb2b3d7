"""Numbers as people read them, and text that stays text."""

import html
import json

import pytest

from s3gym.report import fragments


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (17.456, "17.46"),
        (-0.5, "−0.50"),
        (0.0, "0.00"),
        (-0.0, "0.00"),
        (0.004, "&lt;0.01"),
        (-0.004, "&gt;−0.01"),
    ],
)
def test_a_number_has_fixed_decimals_and_is_never_zero_when_it_is_not(value: float, shown: str) -> None:
    assert fragments.number(value, "absent") == shown


def test_the_order_of_a_sum_does_not_show() -> None:
    # 0.1 + 0.2 + 0.3 is 0.6000000000000001 from the left and 0.6 from the right
    left, right = (0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3)

    assert left != right
    assert fragments.embedded_json([left]) == fragments.embedded_json([right]) == "[0.6]"
    # what is left of 0.3 - (0.1 + 0.2) is no difference
    assert fragments.number(0.3 - (0.1 + 0.2), "absent", signed=True) == "0.00"
    # 1.125 rounds to even, a little more would round up
    assert fragments.number(1.125, "absent") == fragments.number(1.1250000000000002, "absent") == "1.12"


def test_a_missing_number_is_a_dash_that_tells_why() -> None:
    shown = fragments.number(None, "no valid checkpoint")

    assert shown.striptags() == "– (no valid checkpoint)"
    assert 'title="no valid checkpoint"' in shown


def test_a_narrow_interval_gets_the_decimals_it_needs() -> None:
    # the width 0.004 begins at the third decimal
    shown = fragments.estimate(0.0021, 0.0001, 0.0041, "absent")

    assert html.unescape(shown.striptags()) == "0.002 [<0.001, 0.004]"


def test_an_interval_without_width_is_not_shown_as_one() -> None:
    assert fragments.estimate(3.0, 3.0, 3.0, "absent", signed=True).striptags() == "+3.00 (no interval)"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0 %"), (0.001, "<1 %"), (0.514, "51 %"), (0.999, ">99 %"), (1.0, "100 %")]
)
def test_a_rate_is_whole_percent_and_extreme_only_when_it_is(value: float, shown: str) -> None:
    assert html.unescape(fragments.percent(value, "absent")).replace("\xa0", " ") == shown


def test_embedded_json_holds_no_character_that_html_reads() -> None:
    hostile = "</script><!-- & \u2028\u2029"

    text = fragments.embedded_json({"reply": hostile})

    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"reply": hostile}


def test_text_in_a_table_is_escaped() -> None:
    column = fragments.Column("Model", lambda row: row["model_id"], is_text=True)

    assert '<td class="text">&lt;b&gt;</td>' in fragments.table("Models", [{"model_id": "<b>"}], [column])


def test_a_column_that_all_rows_agree_in_is_left_out() -> None:
    rows = [
        {"game": "trust", "pathway": "none", "intervention": "main", "replicate": replicate} for replicate in (0, 1)
    ]

    assert [column.label for column in fragments.who(rows)] == ["Game", "Pathway", "Replicate"]
