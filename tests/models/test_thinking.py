import pytest

from s3gym.models._thinking import strip_thinking


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("Answer: UP, Score: 0", "Answer: UP, Score: 0", None),
        ("<think>left?</think>\nAnswer: UP, Score: 0", "Answer: UP, Score: 0", "left?"),
        ("<THINKING>left?</THINKING>Answer: UP", "Answer: UP", "left?"),
        ("left?</think>Answer: UP", "Answer: UP", "left?"),  # the chat template had opened the block
        ("<think>Answer: LEFT, Score: 1", "", "Answer: LEFT, Score: 1"),  # cut off while thinking
        ("<think>a <think>b</think> c</think>Answer: UP", "Answer: UP", "a b c"),
        ("<think>a</think>Answer: UP<think>b</think>", "Answer: UP", "ab"),
        ("<think></think>Answer: UP", "Answer: UP", None),
        ("a < b and <thin> air", "a < b and <thin> air", None),
        ("", "", None),
    ],
)
def test_thinking_is_kept_apart_from_what_is_said(text: str, said: str, thought: str | None) -> None:
    assert strip_thinking(text) == (said, thought)
