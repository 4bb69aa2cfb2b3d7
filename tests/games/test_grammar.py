"""What all grammars tolerate around an action, and what they do not."""

import pytest

from s3gym.games._grammar import tidy, whole, word


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (" \t`go  (1,2)`.\n", "go (1,2)"),
        ("[go (1,2)]", "go (1,2)"),
        ("**( go )**", "go"),
        ("(1,2)", "1,2"),
        ("(1,2), (3,4)", "(1,2), (3,4)"),  # the first bracket is not closed by the last
        ("((go))", "(go)"),  # one pair, not any number
        ("(go", "(go"),
        ("go)", "go)"),
        ("()", ""),
        ("", ""),
        ("\u00a0go\u3000\u2028", "go"),
    ],
)
def test_marks_and_one_pair_of_brackets_are_taken_off(text: str, left: str) -> None:
    assert tidy(text) == left


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("UP", "UP"),
        ("up", "UP"),
        ("[Up].", "UP"),
        ("UPP", None),
        ("ＵＰ", None),
        ("DıVE", None),  # a dotless i, whose capital is that of an i
        ("di\u0307ve", None),
        ("", None),
    ],
)
def test_a_word_is_known_in_any_case_and_in_ascii_alone(text: str, found: str | None) -> None:
    assert word(text, ("UP", "DIVE")) == found


@pytest.mark.parametrize(("digits", "number"), [("5", 5), ("5.0", 5), ("05.", 5), ("-0", 0), ("-3.00", -3)])
def test_an_integral_decimal_is_a_whole_number(digits: str, number: int) -> None:
    assert whole(digits) == number
