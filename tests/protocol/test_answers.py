import random

import pytest

from s3gym.protocol.answers import NO_ANSWER, Answer, parse_answer
from s3gym.transcript import answer_line


@pytest.mark.parametrize(
    ("reply", "action", "score"),
    [
        ("Answer: LEFT, Score: 0.5", "LEFT", 0.5),
        ("Answer: LEFT, Score: -1", "LEFT", -1.0),
        ("Answer: LEFT, Score: none", "LEFT", None),
        ("Answer: uncover (3,4), Score: 0.0625", "uncover (3,4)", 0.0625),
        ("Answer: A:(1,2), b:(3,4), Score: 2", "A:(1,2), b:(3,4)", 2.0),
        ("Answer: X 1 2; W 0 0, Score: 1", "X 1 2; W 0 0", 1.0),
        ("Answer: 5 90, Score: 0", "5 90", 0.0),
        ("Answer: END, Score: 0", "END", 0.0),
        ("The wall is near, so the answer is plain.\n\nAnswer: LEFT, Score: 0.5\n", "LEFT", 0.5),
        ("Answer: LEFT, Score: 0.5\nThat is my answer.", "LEFT", 0.5),
        ("Answer: LEFT, Score: 1\nOnce more:\nAnswer: LEFT, Score: 1", "LEFT", 1.0),
    ],
)
def test_an_answer_as_asked_is_not_repaired(reply: str, action: str, score: float | None) -> None:
    assert parse_answer(reply) == Answer(action, score, False)


@pytest.mark.parametrize("score", [0.5, -2.0, 0.0, 1e-05, 1 / 3, 12345678.0, None])
def test_the_line_that_earlier_answers_are_shown_as_is_an_answer_as_asked(score: float | None) -> None:
    answer = parse_answer(answer_line("LEFT", score))
    assert (answer.action, answer.is_repaired) == ("LEFT", False)
    assert answer.self_score == (None if score is None else pytest.approx(score, rel=1e-5))


@pytest.mark.parametrize(
    "reply",
    [
        "**Answer:** LEFT, **Score:** 0.5",
        "**Answer: LEFT, Score: 0.5**",
        "__Answer:__ LEFT, __Score:__ 0.5",
        "*Answer*: *LEFT*, *Score*: *0.5*",
        "### Answer: LEFT, Score: 0.5",
        "> Answer: LEFT, Score: 0.5",
        "- Answer: LEFT, Score: 0.5",
        "`Answer: LEFT, Score: 0.5`",
        "Answer: `LEFT`, Score: `0.5`",
        "```\nLLM: Answer: LEFT, Score: 0.5\n```",
        "Answer: ```LEFT```, Score: 0.5",
        '"Answer: LEFT, Score: 0.5"',
        "'Answer: LEFT, Score: 0.5'",
        "Answer: 'LEFT', Score: 0.5",
        "Answer: “LEFT”, Score: 0.5",
        "Answer: LEFT', Score: 0.5",  # a closing quote copied from a format example
        "Answer: <LEFT>, Score: <0.5>",
        "Answer: LEFT, Score: 0.5.",
        "Answer: LEFT., Score: .5",
        "Answer: LEFT. Score: 0.50",
        "Answer: LEFT Score: 0.5",
        "Answer: LEFT; Score = 0.5",
        "Answer: LEFT, Self-Score: 0.5",
        "ANSWER: LEFT, SCORE: 0.5",
        "answer : LEFT , score : 0.5",
        "Final Answer: LEFT, Score: 0.5",
        "LLM: Answer: LEFT, Score: 0.5",
        "Answer：LEFT，Score：0.5",
        "\ufeffAnswer: LEFT, Score:\u00a00.5",
        "Answer: LEFT, Score: +0.5",
        "Answer: LEFT, Score: 1/2",
        "Answer: LEFT, Score: (0.5)",
        "Answer: LEFT, Score: 5E-1",
        r"\boxed{Answer: LEFT, Score: 0.5}",
        r"$\boxed{\text{Answer: LEFT, Score: 0.5}}$",
        r"\[ \boxed{\text{Answer: LEFT}, \text{Score: } 0.5} \]",
        r"Answer: \boxed{LEFT}, Score: \boxed{0.5}",
        r"Answer: \text{LEFT}, Score: \frac{1}{2}",
        "Answer:\nLEFT, Score: 0.5",
        "Answer:\n\n```\nLEFT\n```\nScore: 0.5",
        "**Answer:**\n\n**LEFT**\n\n**Score:** 0.5",
        "Answer: LEFT\nScore: 0.5",
        "Answer: RIGHT, Score: 1\nNo, wait.\nAnswer: LEFT, Score: 0.5",  # answers disagree: the last counts
        "Answer: LEFT, Score: 1\nAnswer: LEFT, Score: 0.5",
    ],
)
def test_a_readable_answer_is_repaired_and_says_so(reply: str) -> None:
    assert parse_answer(reply) == Answer("LEFT", 0.5, True)


@pytest.mark.parametrize(
    "score",
    [
        "nan",
        "inf",
        "-inf",
        "1e999",
        "50%",
        "n.a.",
        "N/A",
        "high",
        "0.5 or 1",
        "1-2",
        "1/0",
        "0,5",
        "",
        "9" * 41,
        "0x10",
    ],
)
def test_an_unreadable_score_is_null_and_the_action_stays(score: str) -> None:
    assert parse_answer(f"Answer: LEFT, Score: {score}")[:2] == ("LEFT", None)


def test_a_missing_score_is_null() -> None:
    assert parse_answer("Answer: LEFT") == Answer("LEFT", None, True)


def test_an_answer_line_without_an_action_is_none() -> None:
    assert parse_answer("Answer: LEFT, Score: 0.5\nAnswer:") == Answer("LEFT", 0.5, False)


def test_the_last_score_splits() -> None:
    assert parse_answer("Answer: Score: 3, Score: 1") == Answer("Score: 3", 1.0, False)


def test_what_is_not_an_action_is_left_to_the_game() -> None:
    assert parse_answer("Answer: LEFT because of the wall, Score: 1").action == "LEFT because of the wall"
    assert parse_answer("Answer: A, Score: 1 Answer: B, Score: 2").action == "A, Score: 1 Answer: B"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "LEFT",
        "The answer is LEFT",
        "I go left. Answer: LEFT, Score: 0.5",
        "Answer LEFT",
        "Answers: LEFT",
        "Score: 0.5",
        "Answer:",
        "Answer: , Score: 0.5",
        "Answer:\nScore: 0.5",
        "Answer: **",
    ],
)
def test_no_answer_line_is_no_answer(reply: str) -> None:
    assert parse_answer(reply) == NO_ANSWER


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "\x00",
        "Answer: ",
        "Answer:\n",
        "answer",
        "Score: ",
        "score ",
        "LLM: ",
        "\\boxed{",
        "{",
        "*",
        "_",
        "1",
        "\n",
        "self-",
    ],
)
@pytest.mark.parametrize("start", ["", "Answer: LEFT, Score: ", "Answer: "])
def test_a_megabyte_of_anything_is_read_at_once(unit: str, start: str) -> None:
    # a quadratic step would take minutes here, and the suite's time limit would end it
    answer = parse_answer(start + unit * (1_000_000 // len(unit)))
    assert answer.self_score is None


def test_any_text_is_safe() -> None:
    rng = random.Random(0)
    pieces = [
        "Answer:",
        "Score:",
        "\n",
        "\\frac{1}{0}",
        "\\",
        "{",
        "}",
        "1",
        "/",
        "0",
        "-",
        "e9",
        ",",
        "LLM:",
        "\ud800",
        "٣",
        "²",
    ]
    for _ in range(3_000):
        answer = parse_answer("".join(rng.choices(pieces, k=rng.randrange(12))))
        assert answer.action != ""
        assert answer.self_score is None or abs(answer.self_score) < 1e300
