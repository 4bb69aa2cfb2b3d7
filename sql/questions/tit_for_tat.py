"""Tit for tat in trust, by an agent that names a price: what a hosted model would be in the worked questions."""

import re

__version__ = "1"


def answer(messages: list[dict[str, str]], *, purpose: str) -> dict[str, object]:
    """Collaborates first, then does what the other side did last; believes in each episode alike."""
    if purpose == "judge":
        text = "Final score: 15\nSuccess: 0.8\nRetain: answer in kind\nAvoid: cheating first"
    elif purpose == "remember":
        text = "Answer in kind."
    else:
        state = messages[-1]["content"].split("=== Current state ===")[1]
        others = re.findall(r"(?:collaborate|cheat)/(collaborate|cheat)", state)
        action = others[-1] if others else "collaborate"
        text = f"Answer: {action}, Score: {2 if action == 'collaborate' else 0}"
    read, written = sum(len(message["content"]) for message in messages) // 4, len(text) // 4
    return {
        "text": text,
        "prompt_tokens": read,
        "completion_tokens": written,
        "cost_usd": (read + 4 * written) / 1_000_000,  # a dollar a million tokens read, four written
    }
