"""Prompts and states from stored rows: what the model was really asked, to the letter."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from s3gym.games.snake import GAME as SNAKE
from s3gym.games.trust import GAME as TRUST
from s3gym.models.base import Completion, ModelError
from s3gym.protocol.asking import Asker
from s3gym.protocol.rollout import play
from s3gym.protocol.trajectories import prompts, states, usable_action
from s3gym.records import CallFacts, Episode, Step
from tests.programmed import Answer, Programmed, part

TRUST_REPLIES: list[Answer] = [
    "I think.\nAnswer: cheat, Score: 3",
    "Let me think.",
    "Answer: **collaborate**",
    "Answer: both, or neither; whatever pays more in the long run of things, because I do not know who plays, Score: 2",
    "Answer: collaborate, Score: 1/3",
]
SNAKE_REPLIES: list[Answer] = ["Answer: UP, Score: 0", "Answer: LEFT, Score: 1e-7", "Answer: down, Score: none"]
PLAYS: dict[str, tuple[Any, list[Answer]]] = {
    "trust": (TRUST, TRUST_REPLIES),
    "trust, a failed call": (TRUST, [*TRUST_REPLIES, ModelError("server", "out of order")]),
    "trust, nothing but a failed call": (TRUST, [ModelError("server", "out of order")]),
    "snake": (SNAKE, SNAKE_REPLIES),
    "snake, an unusable answer that ends it": (SNAKE, [*SNAKE_REPLIES[:1], "Answer: nowhere, Score: 0"]),
}


def played(game: Any, answers: list[Answer]) -> tuple[Programmed, Episode, list[Step]]:
    model = Programmed(*answers)
    episode, steps = asyncio.run(play(game, game.exploration, Asker(model), part()))
    return model, episode, steps


@pytest.mark.parametrize("name", PLAYS)
def test_stored_steps_give_the_messages_they_were_asked_with(name: str) -> None:
    game, answers = PLAYS[name]
    model, episode, steps = played(game, answers)

    made = list(prompts(game, game.read_config(episode.config), steps))

    assert made == [request.messages for request in model.requests]
    assert len(made) == len(steps)


def test_the_plays_of_this_page_have_every_kind_of_answer() -> None:
    steps = [step for game, answers in PLAYS.values() for step in played(game, answers)[2]]

    assert {step.action_status for step in steps} >= {"ok", "repaired", "unparsable", None}
    assert max(step.step_index for step in steps) >= 5
    assert any(step.action is not None and step.self_score is None for step in steps)


def test_no_reward_can_be_in_a_prompt() -> None:
    _, _, steps = played(TRUST, TRUST_REPLIES)
    rewarded = [replace(step, verifier_reward=777.0) for step in steps]

    assert list(prompts(TRUST, TRUST.exploration, rewarded)) == list(prompts(TRUST, TRUST.exploration, steps))


@pytest.mark.parametrize("name", PLAYS)
def test_stored_steps_give_the_states_they_decided_on(name: str) -> None:
    game, answers = PLAYS[name]
    _, episode, steps = played(game, answers)

    seen = list(states(game, game.exploration, episode.seed, steps))

    assert [game.render(game.view(state)) for state in seen] == [step.observation for step in steps]


def test_another_answer_is_read_as_the_game_reads_it() -> None:
    state = TRUST.reset(TRUST.exploration, 3)

    def action(text: str, finish_reason: str = "stop") -> str | None:
        completion = Completion(text=text, facts=CallFacts(finish_reason=finish_reason))
        return usable_action(TRUST, state, completion)

    assert action("Answer: cheat, Score: 3") == action("Answer: *CHEAT*.") == "cheat"
    assert action("Answer: both, Score: 3") is None
    assert action("cheat") is None
    assert action("Answer: cheat, Score: 3", "length") is None
