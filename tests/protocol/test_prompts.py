"""The order of a prompt, and that everything before its last message only grows."""

import asyncio
import random
from typing import Any

import pytest

from s3gym import registry
from s3gym.games.trust import GAME as TRUST
from s3gym.models.scripted import load
from s3gym.protocol.asking import Asker
from s3gym.protocol.prompts import STEP_QUESTION, judgment_messages, past_step, step_messages
from s3gym.protocol.rollout import play
from s3gym.transcript import Message, PastStep
from tests.programmed import Programmed, part

STEPS = [PastStep(f"state {index}", f"Answer: UP, Score: {index}") for index in range(3)]


def earlier(experience: str | None, steps: list[PastStep]) -> list[Message]:
    messages: list[Message] = []
    for step in steps:
        messages += past_step(experience if not messages else None, step)
    return messages


def text(messages: tuple[Message, ...]) -> str:
    return "\n".join(message["content"] for message in messages)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_prompt_is_experience_then_the_episode_so_far_then_rules_and_state(count: int) -> None:
    whole = text(step_messages("TIPS", earlier("TIPS", STEPS[:count]), "RULES", "NOW"))

    marks = ["TIPS", *[part for step in STEPS[:count] for part in (step.env, step.answer)], "RULES", "NOW"]
    places = [whole.index(mark) for mark in [*marks, "Choose your next action"]]
    assert places == sorted(places)
    assert all(whole.count(mark) == 1 for mark in marks)


def test_a_prompt_without_experience_has_no_mark_of_one() -> None:
    assert "earlier episodes" not in text(step_messages(None, earlier(None, STEPS), "RULES", "NOW"))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_roles_alternate_and_the_agent_is_asked_last(count: int) -> None:
    roles = [message["role"] for message in step_messages("TIPS", earlier("TIPS", STEPS[:count]), "RULES", "NOW")]

    assert roles == ["user", "assistant"] * count + ["user"]


@pytest.mark.parametrize("experience", [None, "what was learnt"])
@pytest.mark.parametrize("name", registry.names("s3gym.games"))
def test_everything_before_the_last_message_only_grows_within_an_episode(name: str, experience: str | None) -> None:
    game: Any = registry.load("s3gym.games", name, "game").GAME
    player, rng = load("player:expert"), random.Random(1)
    model = Programmed(lambda request: player._act(request, rng))
    asyncio.run(play(game, game.evaluation, Asker(model), part(experience=experience)))

    prompts = model.prompts("act")
    assert len(prompts) > 2
    for index, (before, after) in enumerate(zip(prompts, prompts[1:], strict=False)):
        assert len(before) == 2 * index + 1
        assert after[: 2 * index] == before[:-1]  # message by message
        assert text(after).startswith(text(before[:-1]))  # and as one text
    if experience:
        opening = prompts[0][0]["content"].split(game.rules(game.evaluation))[0]
        assert all(prompt[0]["content"].startswith(opening) for prompt in prompts)


def test_the_question_states_the_unit_of_the_self_score_and_the_form_of_the_answer() -> None:
    assert "Answer: <ACTION>, Score: <SELF-SCORE>" in STEP_QUESTION
    assert "reward this very action earns at once" in STEP_QUESTION


def test_the_judgment_states_rules_transcript_and_the_success_score() -> None:
    (message,) = judgment_messages("RULES", "Env: state\nLLM: Answer: UP, Score: 0\n", TRUST.success_score)

    assert message["role"] == "user"
    places = [message["content"].index(part) for part in ("RULES", "Env: state", "Final score:", "at least 15")]
    assert places == sorted(places)
