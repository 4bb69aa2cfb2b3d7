"""An agent of one's own for whole runs: it plays trust, and notes each call in the file that AGENT_CALLS names."""

import asyncio
import os
from typing import Any

from tests.flows.hosted import dollars, said, tokens


async def answer(messages: list[dict[str, str]], seed: int) -> dict[str, Any]:
    """The same messages, the same answer at the same cost, after a moment."""
    await asyncio.sleep(0.02)
    with open(os.environ["AGENT_CALLS"], "a") as calls:
        calls.write(f"{seed}\n")
    prompt, completion = tokens(messages)
    cost = dollars(prompt, completion)
    return {"text": said(messages), "prompt_tokens": prompt, "completion_tokens": completion, "cost_usd": cost}
