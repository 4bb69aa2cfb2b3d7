"""Play as text, and the text read back."""

import pytest

from s3gym.transcript import (
    AGENT,
    ENV,
    PastEpisode,
    PastStep,
    Turn,
    answer_line,
    between,
    blocks,
    env_text,
    experience_block,
    read_answer_line,
    turns,
)

EPISODE = PastEpisode(
    "snake:exploration:0:0:abc",
    (
        PastStep("Step 1.", "Answer: UP, Score: 0"),
        PastStep("Feedback: You moved.\nStep 2.", "Answer: LEFT, Score: 1"),
    ),
    "Feedback: You ate an apple.\nStep 3.",
)


@pytest.mark.parametrize(
    ("action", "score", "line"),
    [
        ("UP", 1.0, "Answer: UP, Score: 1"),
        ("uncover (3,4)", -0.0625, "Answer: uncover (3,4), Score: -0.0625"),
        ("UP", None, "Answer: UP, Score: none"),
        ("UP", 1e-7, "Answer: UP, Score: 1e-07"),
        ("UP", 2.5e30, "Answer: UP, Score: 2.5e+30"),
        ("a, Score: 3", 4.0, "Answer: a, Score: 3, Score: 4"),
    ],
)
def test_an_answer_line_reads_back(action: str, score: float | None, line: str) -> None:
    assert answer_line(action, score) == line
    assert read_answer_line(line) == (action, score)


@pytest.mark.parametrize("action", [None, ""])
def test_an_answer_without_an_action_says_so(action: str | None) -> None:
    assert answer_line(action, None) == "Answer: (no readable action), Score: none"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "UP",
        "Answer: UP",
        "Answer: UP, Score:",
        "Answer: UP, Score: high",
        "Answer: UP, Score: 1 2",
        "1.5",
    ],
)
def test_what_is_no_answer_line_is_none(line: str) -> None:
    assert read_answer_line(line) is None


def test_feedback_stands_above_the_state_and_only_where_there_is_some() -> None:
    assert env_text("You moved.", "Step 2.") == "Feedback: You moved.\nStep 2."
    assert env_text(None, "Step 1.") == env_text("", "Step 1.") == "Step 1."


def test_segments_are_one_a_step_and_the_last_carries_the_end() -> None:
    assert EPISODE.segments() == [
        "Env: Step 1.\nLLM: Answer: UP, Score: 0\n",
        "Env: Feedback: You moved.\nStep 2.\nLLM: Answer: LEFT, Score: 1\n"
        "Env: Feedback: You ate an apple.\nStep 3.\n(end of episode)\n",
    ]


def test_an_episode_without_steps_has_no_segments() -> None:
    assert PastEpisode("x", (), "Step 1.").segments() == []


def test_blocks_split_a_transcript_at_its_marks() -> None:
    assert list(blocks("".join(EPISODE.segments()))) == [
        (ENV, "Step 1."),
        (AGENT, "Answer: UP, Score: 0"),
        (ENV, "Feedback: You moved.\nStep 2."),
        (AGENT, "Answer: LEFT, Score: 1"),
        (ENV, "Feedback: You ate an apple.\nStep 3.\n(end of episode)"),
    ]


def test_a_mark_inside_a_line_is_text() -> None:
    assert list(blocks("Env: I said LLM: to Env: x\n")) == [(ENV, "I said LLM: to Env: x")]
    assert list(blocks("no marks")) == []


def test_turns_are_the_transitions_of_the_blocks() -> None:
    assert list(turns(list(blocks("".join(EPISODE.segments()))))) == [
        Turn("Step 1.", "UP", 0.0, "Feedback: You moved.\nStep 2."),
        Turn(
            "Feedback: You moved.\nStep 2.",
            "LEFT",
            1.0,
            "Feedback: You ate an apple.\nStep 3.\n(end of episode)",
        ),
    ]


def test_no_turn_leads_from_one_episode_into_the_next() -> None:
    both = list(turns(list(blocks("".join([*EPISODE.segments(), *EPISODE.segments()])))))

    assert len(both) == 4
    assert [turn.before for turn in both] == [step.env for step in EPISODE.steps] * 2


def test_an_answer_without_a_state_on_both_sides_is_no_turn() -> None:
    answer = (AGENT, "Answer: UP, Score: 0")

    assert list(turns([answer, (ENV, "s")])) == []
    assert list(turns([(ENV, "s"), answer])) == []
    assert list(turns([(ENV, "s"), (AGENT, "I think it over"), (ENV, "s")])) == []


def test_between_takes_what_stands_between_the_marks() -> None:
    text = f"rules\n\n{experience_block('tips')}\n\nquestion"

    assert between(text, "=== Experience from earlier episodes ===", "=== End of earlier experience ===") == "tips"
    assert between("rules", "===", "===") is None
