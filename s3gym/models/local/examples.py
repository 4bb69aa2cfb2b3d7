"""Turns a call and its answer back into the tokens that were read and written."""

from collections.abc import Sequence
from typing import Any, cast

from s3gym.models._thinking import OPENING
from s3gym.models.base import Example
from s3gym.models.local.loading import UnusableModel
from s3gym.transcript import Message

_STAND_IN = "Answer"


def example_of(
    tokenizer: Any,
    stops: frozenset[int],
    messages: Sequence[Message],
    prompt: str,
    reply: str,
    reasoning: str | None,
) -> Example:
    """The tokens of a call.

    Where they are not those the model wrote (a text can be written in several ways, and an answer cut off by the limit
    had no end), their number mostly differs from the ``completion_tokens`` of the call.

    Args:
        tokenizer: the model's.
        stops: tokens that end an answer.
        messages: what was asked.
        prompt: the same as the template writes it.
        reply: the answer, thinking removed.
        reasoning: what was thought.

    Raises:
        UnusableModel: the template writes an answer in another way than it asks for one.
    """
    asked = _tokens(tokenizer, prompt)
    answer = _answer_tokens(tokenizer, prompt, asked, _written(prompt, reply, reasoning))
    end = _end(tokenizer, stops, messages, prompt)
    return Example(tokens=[*asked, *answer, end], prompt_count=len(asked))


def _written(prompt: str, reply: str, reasoning: str | None) -> str:
    """The answer with its thought, as models write it that think in tags: what ``strip_thinking`` took apart."""
    is_open = prompt.rstrip().endswith(OPENING)  # by the template
    if reasoning is None and not is_open:
        return reply
    opened = "" if is_open else OPENING
    begun = "" if prompt.endswith("\n") and is_open else "\n"
    return f"{opened}{begun}{reasoning or ''}\n</think>\n\n{reply}"


def _answer_tokens(tokenizer: Any, prompt: str, asked: list[int], written: str) -> list[int]:
    """Read on from the prompt, as some tokenizers begin a text with a space; alone where that moves the border.

    Marks of the template in a text were not written as marks.
    """
    whole = _tokens(tokenizer, prompt + written)
    answer = whole[len(asked) :]
    if whole[: len(asked)] == asked and not set(answer) & set(tokenizer.all_special_ids):
        return answer
    return _tokens(tokenizer, written, split_special_tokens=True)


def _end(tokenizer: Any, stops: frozenset[int], messages: Sequence[Message], prompt: str) -> int:
    """The token that ends an answer, by the template."""
    chat = [*messages, {"role": "assistant", "content": _STAND_IN}]
    written: str = tokenizer.apply_chat_template(chat, tokenize=False)
    opening = prompt.rstrip().removesuffix(OPENING).rstrip()
    if not written.startswith(opening):
        raise UnusableModel(
            "the chat template writes a conversation with its answer in another way than without, so training would "
            "show the model what it never reads; take a model with a plain template"
        )
    rest = written[len(opening) :].rpartition(_STAND_IN)[2]
    for token in _tokens(tokenizer, rest):
        if token in stops:
            return token
    raise UnusableModel(
        f"the chat template ends an answer with {rest!r}, which does not end one in generation_config.json; "
        "add that token to eos_token_id there"
    )


def _tokens(tokenizer: Any, text: str, **settings: Any) -> list[int]:
    return cast(list[int], tokenizer(text, add_special_tokens=False, **settings).input_ids)
