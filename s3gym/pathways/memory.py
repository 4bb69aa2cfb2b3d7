"""Summary memory: one compression call turns the history so far into tips, and only the tips are carried.

The same call serves the evaluation at a checkpoint and the exploration episode that starts there. It reads episodes
with their numbers, from 1 in the order they were played, so that a rule can say where it comes from; none has to.
"""

from collections.abc import Sequence
from dataclasses import replace

from s3gym.pathways.base import Built, Workshop
from s3gym.pathways.history import serialise
from s3gym.transcript import Message, PastEpisode, experience_block

VERSION = 2
"""Covers the wording below as well."""
IS_CONTROL = False
IS_MODEL_ASKED = True
IS_TRAINED = False

QUESTION = """\
Above are the rules of a game and what happened in your earlier episodes of it, with your own scores for your actions. \
A stricter version of the same game will follow, on instances you have not seen.
Write tips for your future self, in three short lists headed Retain, Avoid and Next: what worked and should be kept, \
what failed and should not be repeated, and what to try next. Write general rules rather than single positions, each \
on a line of its own that begins with "- ". You may end a rule with the episodes it comes from, by the numbers that \
stand at their ends, as here: - <rule> [episodes 1, 3]
Only your text will be kept; the episodes will not be shown again."""


async def build(episodes: Sequence[PastEpisode], workshop: Workshop) -> Built:
    """The tips the model writes from rules and history (or from its last tips and what is new)."""
    is_recursive = workshop.memory_source == "recursive" and workshop.previous is not None
    read = episodes[-1:] if is_recursive else episodes
    source = serialise(read, workshop, len(episodes) - len(read) + 1)
    content = f"{workshop.previous}\n\n{source.content}" if is_recursive else source.content
    completion = await workshop.ask(memory_messages(workshop.rules, content))
    return replace(
        source,
        kind="memory",
        content=completion.text,
        stored_text=completion.text,
        token_count=workshop.count_tokens(completion.text),
        facts=completion.facts,
    )


def memory_messages(rules: str, content: str) -> tuple[Message, ...]:
    """The compression call: the rules, what there is so far, and what to write."""
    return ({"role": "user", "content": f"{rules}\n\n{experience_block(content)}\n\n{QUESTION}"},)
