"""A stored episode is replayed from its seed and replies; whatever was changed is named."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from s3gym import registry
from s3gym.games.snake import GAME as SNAKE
from s3gym.games.trust import GAME as TRUST
from s3gym.models.base import ModelError
from s3gym.models.scripted import load
from s3gym.protocol.asking import Asker
from s3gym.protocol.rollout import play
from s3gym.protocol.verify import differences
from s3gym.records import Episode, Step
from tests.programmed import Programmed, part

Played = tuple[Episode, list[Step]]


def played(game: Any, phase: str, model: Any, seed: int = 3) -> Played:
    return asyncio.run(play(game, getattr(game, phase), Asker(model), part(phase=phase, seed=seed)))


@pytest.fixture(scope="module")
def snake() -> Played:
    return played(SNAKE, "evaluation", load("player:careful"))


@pytest.mark.parametrize("player", ["random", "expert"])
@pytest.mark.parametrize("phase", ["exploration", "evaluation"])
@pytest.mark.parametrize("name", registry.names("s3gym.games"))
def test_an_episode_as_it_was_played_passes(name: str, phase: str, player: str) -> None:
    game: Any = registry.load("s3gym.games", name, "game").GAME
    episode, steps = played(game, phase, load(f"player:{player}"))

    assert list(differences(game, episode, steps)) == []


@pytest.mark.parametrize(
    "answers",
    [("hm", "Answer: cheat"), ("Answer: END, Score: 0",), ("Answer: cheat", ModelError("server", "no"))],
)
def test_unusable_answers_and_failed_calls_pass_too(answers: tuple[Any, ...]) -> None:
    episode, steps = played(TRUST, "evaluation", Programmed(*answers))

    assert list(differences(TRUST, episode, steps)) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"verifier_reward": 0.5}, "step 1, reward: stored 0.5, replayed 1.0"),
        ({"verifier_reward": None}, "step 1, reward: stored None"),
        ({"action": "JUMP"}, "step 1, action: stored 'JUMP', replayed"),
        ({"action_status": "illegal"}, "step 1, action_status: stored 'illegal', replayed 'ok'"),
        ({"self_score": 0.25}, "step 1, self_score: stored 0.25, replayed None"),
        ({"observation": "an empty board"}, "step 1, observation: stored 'an empty board', replayed 'Step 2"),
        ({"feedback": "You won."}, "step 1, feedback: stored 'You won.', replayed 'You ate an apple.'"),
        ({"is_terminated": True}, "step 1, is_terminated: stored True, replayed False"),
        ({"is_truncated": True}, "step 1, is_truncated: stored True, replayed False"),
    ],
    ids=str,
)
def test_a_changed_value_of_a_step_is_named_and_it_alone(snake: Played, changes: dict[str, Any], told: str) -> None:
    episode, steps = snake

    (found,) = differences(SNAKE, episode, [steps[0], replace(steps[1], **changes), *steps[2:]])

    assert found.startswith(told)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"final_score": 40.0}, "episode, final_score: stored 40.0, replayed"),
        ({"final_score": None}, "episode, final_score: stored None, replayed"),
        ({"is_success": None}, "episode, is_success: stored None"),
        ({"end_reason": "boredom"}, "episode, end_reason: stored 'boredom', replayed"),
        ({"final_observation": "x"}, "episode, final_observation: stored 'x', replayed 'Step"),
        ({"status": "invalid"}, "episode, status: stored 'invalid', replayed 'valid'"),
        ({"seed": 4}, "seed: instance .* is stored, seed 4 gives"),
        ({"instance_id": "abc"}, "seed: instance abc is stored, seed 3 gives"),
        ({"step_count": 1}, "steps: .* stored, step_count is 1"),
        ({"game_version": 0}, f"game_version: stored 0, installed {SNAKE.VERSION}"),
    ],
    ids=str,
)
def test_a_changed_value_of_an_episode_is_named_and_it_alone(snake: Played, changes: dict[str, Any], told: str) -> None:
    episode, steps = snake

    found = list(differences(SNAKE, replace(episode, **changes), steps))

    assert len(found) == 1
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(found[0])


def test_a_changed_reply_shows_in_the_action(snake: Played) -> None:
    episode, steps = snake
    other = "LEFT" if steps[0].action != "LEFT" else "RIGHT"

    found = list(differences(SNAKE, episode, [replace(steps[0], reply=f"Answer: {other}, Score: none"), *steps[1:]]))

    assert found[0] == f"step 0, action: stored {steps[0].action!r}, replayed {other!r}"


def test_steps_that_are_missing_doubled_or_swapped_are_named(snake: Played) -> None:
    episode, steps = snake
    for wrong in ([], steps[:-1], [steps[0], *steps], [steps[1], steps[0], *steps[2:]]):
        (found,) = differences(SNAKE, episode, wrong)
        assert found.startswith(f"steps: {len(wrong)} stored, step_count is {len(steps)}")


def test_an_episode_cut_short_is_named() -> None:
    episode, steps = played(TRUST, "evaluation", Programmed("Answer: cheat"))

    found = list(differences(TRUST, replace(episode, step_count=9), steps[:9]))

    assert any(
        sentence.startswith("episode, end_reason: stored 'last_round', replayed 'horizon'") for sentence in found
    )


def test_a_step_after_the_end_is_named() -> None:
    episode, steps = played(TRUST, "evaluation", Programmed("Answer: cheat"))
    more = replace(steps[-1], step_index=10)

    found = list(differences(TRUST, replace(episode, step_count=11), [*steps, more]))

    assert "step 10: stored after the end" in found


def test_a_difference_of_rounding_is_none(snake: Played) -> None:
    episode, steps = snake
    assert episode.final_score is not None

    assert list(differences(SNAKE, replace(episode, final_score=episode.final_score + 1e-12), steps)) == []
