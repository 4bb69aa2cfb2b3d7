"""Stored steps as they were asked, and the states between them: what training and exports are made of.

Everything comes from the rows; nothing here reads a verifier's reward or score.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from s3gym.games.base import Config, Game
from s3gym.models.base import TRUNCATED, Completion
from s3gym.protocol.answers import parse_answer
from s3gym.protocol.prompts import past_step, step_messages
from s3gym.protocol.rollout import shown
from s3gym.records import Step
from s3gym.transcript import Message, env_text


def prompts(game: Game[Any, Any, Any], config: Config, steps: Sequence[Step]) -> Iterator[tuple[Message, ...]]:
    """The messages that each step of an episode was asked with, where nothing was carried from earlier episodes.

    Args:
        game: in the VERSION that played it.
        config: the configuration played.
        steps: of one episode, from the first, in order.
    """
    rules = game.rules(config)
    earlier: list[Message] = []
    feedback: str | None = None
    for step in steps:
        env = env_text(feedback, step.observation)
        yield step_messages(None, earlier, rules, env)
        earlier += past_step(None, shown(step, env))
        feedback = step.feedback


def states(game: Game[Any, Any, Any], config: Config, seed: int, steps: Sequence[Step]) -> Iterator[Any]:
    """The state each step of an episode decided on, from its seed and its replies."""
    state = game.reset(config, seed)
    for step in steps:
        yield state
        if step.reply is not None:
            state = game.take(state, parse_answer(step.reply).action).outcome.state


def usable_action(game: Game[Any, Any, Any], state: Any, completion: Completion) -> str | None:
    """The action that another answer gives in a state; None when it gives none that can be trained on."""
    if completion.facts.finish_reason == TRUNCATED:
        return None
    return game.take(state, parse_answer(completion.text).action).action
