"""One episode of a game and a model: what is played, what is stored, what is told."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from s3gym import storage
from s3gym.games.snake import GAME as SNAKE
from s3gym.games.trust import GAME as TRUST
from s3gym.games.trust import OPPONENTS
from s3gym.models.base import Decoding, ModelError
from s3gym.protocol.asking import Asker
from s3gym.protocol.rollout import WRITTEN_LIMIT, past_episode, play, scene_of
from s3gym.records import CallFacts, Episode, Step
from tests.programmed import Programmed, part

PINK = OPPONENTS.index("pink")
"""Seed of the opponent that always collaborates."""
CHEAT, COLLABORATE = "Answer: cheat, Score: 3", "Answer: collaborate, Score: 2"


def played(model: Programmed, game: Any = TRUST, config: Any = None, **changes: Any) -> tuple[Episode, list[Step]]:
    """By default a held-out match against pink."""
    frame = part(
        seed=changes.pop("seed", PINK),
        checkpoint=3,
        episode_index=4,
        decoding=Decoding(temperature=0.5),
        decoding_seed=lambda step: 1000 + step,
        **changes,
    )
    return asyncio.run(play(game, config or game.evaluation, Asker(model), frame))


# --- scores and ends ----------------------------------------------------------------------------------------


def test_the_final_score_is_the_sum_of_the_verifiers_rewards() -> None:
    episode, steps = played(Programmed(CHEAT, COLLABORATE, CHEAT))

    # against pink: 3, 2, then eight times 3
    assert [step.verifier_reward for step in steps] == [3, 2, *[3] * 8]
    assert (episode.final_score, episode.is_success, episode.status) == (29.0, True, "valid")
    assert [step.self_score for step in steps] == [3, 2, *[3] * 8]


def test_an_episode_below_the_success_score_is_none() -> None:
    episode, _ = played(Programmed(CHEAT), seed=OPPONENTS.index("copycat"))

    assert (episode.final_score, episode.is_success) == (3.0, False)  # 3 once, then both cheat


def test_an_episode_that_its_rules_end_is_terminated_not_truncated() -> None:
    episode, steps = played(Programmed(CHEAT))

    assert (episode.end_reason, episode.step_count) == ("last_round", 10)
    assert [step.is_terminated for step in steps] == [False] * 9 + [True]
    assert not any(step.is_truncated for step in steps)


def test_an_episode_that_its_horizon_ends_is_truncated_not_terminated() -> None:
    model = Programmed("Answer: UP, Score: 0")
    episode, steps = played(model, SNAKE, replace(SNAKE.exploration, horizon=3))

    assert (episode.end_reason, episode.step_count, len(model.requests)) == ("horizon", 3, 3)
    assert [step.is_truncated for step in steps] == [False, False, True]
    assert not any(step.is_terminated for step in steps)
    assert episode.status == "valid" and episode.final_score is not None


def test_nothing_is_asked_after_the_end() -> None:
    model = Programmed("Answer: nowhere, Score: 0")
    episode, steps = played(model, SNAKE)

    assert (episode.end_reason, len(steps), len(model.requests)) == ("unusable_answer", 1, 1)


# --- failed calls -------------------------------------------------------------------------------------------


def test_a_failed_call_is_a_row_with_its_error_and_is_not_played() -> None:
    model = Programmed(CHEAT, CHEAT, ModelError("timeout", "no answer within 1 s"))
    episode, steps = played(model)

    assert len(model.requests) == len(steps) == episode.step_count == 3
    failed = steps[2]
    assert (failed.error_kind, failed.error_message) == ("timeout", "no answer within 1 s")
    facts = (failed.reply, failed.action, failed.action_status, failed.self_score, failed.verifier_reward)
    assert facts == (None,) * 5
    assert not failed.is_terminated and not failed.is_truncated
    assert failed.observation == episode.final_observation  # the state the call was to decide on


def test_an_episode_with_a_failed_call_is_invalid_and_has_no_score() -> None:
    episode, _ = played(Programmed(CHEAT, ModelError("server", "out of order")))

    assert (episode.status, episode.final_score, episode.is_success) == ("invalid", None, None)
    assert episode.end_reason == "server"


def test_a_first_call_that_fails_plays_nothing() -> None:
    episode, steps = played(Programmed(ModelError("authentication", "no key")))

    assert (episode.step_count, [step.error_kind for step in steps]) == (1, ["authentication"])
    assert episode.final_observation == TRUST.render(TRUST.view(TRUST.reset(TRUST.evaluation, PINK)))


# --- bad answers are data -----------------------------------------------------------------------------------


def test_a_reply_without_an_answer_is_unparsable_and_uses_the_round() -> None:
    model = Programmed("Let me think.", CHEAT)
    _, steps = played(model)

    first = steps[0]
    assert (first.reply, first.action, first.action_status) == ("Let me think.", None, "unparsable")
    assert (first.self_score, first.verifier_reward, first.feedback) == (
        None,
        0.0,
        "The answer could not be read.",
    )
    assert len(steps) == 10
    assert model.requests[1].messages[1]["content"] == "Answer: (no readable action), Score: none"


def test_end_before_the_end_is_invalid_and_shown_as_it_was_written() -> None:
    model = Programmed("Answer: END, Score: 0", CHEAT)
    episode, steps = played(model)

    assert (steps[0].action, steps[0].action_status, steps[0].verifier_reward) == (None, "invalid", 0.0)
    assert steps[0].feedback == "The episode is not over."
    assert model.requests[1].messages[1]["content"] == "Answer: END, Score: 0"
    assert episode.final_score == 27.0  # nine rounds of 3


@pytest.mark.parametrize(
    ("reply", "status", "action"),
    [
        ("", "unparsable", None),
        ("\x00\x01\x02 Answer", "unparsable", None),
        ("Answer: , Score: 1", "unparsable", None),
        ("Answer: steal, Score: 1", "unparsable", None),
        ("Answer: cheat, Score: 1\nAnswer: collaborate, Score: 2", "repaired", "collaborate"),
        ("**Answer: Cheat.**", "repaired", "cheat"),
        ("x" * 1_000_000 + "\nAnswer: cheat, Score: 3", "ok", "cheat"),
        ("Answer: " + "(" * 1_000_000, "unparsable", None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_any_reply_is_played_and_can_be_stored(reply: str, status: str, action: str | None) -> None:
    episode, steps = played(Programmed(reply, CHEAT))

    assert (steps[0].action_status, steps[0].action, steps[0].reply) == (status, action, reply)
    assert episode.status == "valid" and len(steps) == 10
    assert storage.to_arrow("steps", steps).num_rows == 10


def test_of_a_long_unusable_action_later_prompts_show_the_beginning() -> None:
    model = Programmed("Answer: " + "steal \t" * 1000 + ", Score: 1", CHEAT)
    _, steps = played(model)

    shown = model.requests[1].messages[1]["content"]
    assert shown == f"Answer: {('steal ' * 1000)[:WRITTEN_LIMIT]}, Score: 1"
    assert steps[0].reply is not None and len(steps[0].reply) > 5000  # the row keeps it all


# --- what the model is given --------------------------------------------------------------------------------


def test_a_request_says_what_for_with_which_seed_and_decoding_and_view() -> None:
    model = Programmed(CHEAT)
    played(model)

    assert {request.purpose for request in model.requests} == {"act"}
    assert [request.seed for request in model.requests] == list(range(1000, 1010))
    assert {request.decoding for request in model.requests} == {Decoding(temperature=0.5)}
    assert [request.scene.view.step_index for request in model.requests] == list(range(10))


def test_experience_opens_the_first_message_and_no_other() -> None:
    model = Programmed(CHEAT)
    played(model, experience="Retain: cheat.")

    for request in model.requests:
        assert ["Retain: cheat." in message["content"] for message in request.messages].count(True) == 1
        assert "Retain: cheat." in request.messages[0]["content"]


def test_what_did_not_fit_is_noted_at_every_step() -> None:
    _, steps = played(Programmed(CHEAT), history_tokens_dropped=17)

    assert {step.history_tokens_dropped for step in steps} == {17}


def test_what_a_call_took_is_in_its_row() -> None:
    facts = CallFacts(prompt_tokens=11, completion_tokens=7, cost_usd=0.25, latency_seconds=1.5, finish_reason="stop")
    _, steps = played(Programmed(CHEAT, facts=facts))

    for step in steps:
        told = CallFacts(**{name: getattr(step, name) for name in CallFacts.__dataclass_fields__})
        assert told == facts


def test_rows_name_their_stage_episode_and_instance() -> None:
    episode, steps = played(Programmed(CHEAT))

    assert episode.episode_id == "trust:evaluation:3:4:0123456789ab"
    assert [step.step_index for step in steps] == list(range(10))
    rows: list[Episode | Step] = [episode, *steps]
    for row in rows:
        assert (row.stage_key, row.game, row.phase, row.checkpoint) == (
            "0123456789abcdef",
            "trust",
            "evaluation",
            3,
        )
    assert (episode.seed, episode.episode_index) == (PINK, 4)
    assert episode.instance_id == TRUST.instance_id(TRUST.reset(TRUST.evaluation, PINK))
    assert TRUST.read_config(episode.config) == TRUST.evaluation


def test_outside_a_step_a_scene_has_no_view() -> None:
    scene = scene_of(TRUST, TRUST.evaluation)

    assert (scene.view, scene.success_score, scene.reward_range) == (None, 15.0, (-1.0, 3.0))


# --- read back ----------------------------------------------------------------------------------------------


def test_a_stored_episode_reads_as_it_was_shown_while_it_was_played() -> None:
    model = Programmed(CHEAT, "hm", "Answer: steal, Score: 1", COLLABORATE)
    episode, steps = played(model)

    past = past_episode(episode, steps)

    shown = model.requests[-1].messages[:-1]  # the first nine steps, as told at the tenth
    assert [f"Env: {step.env}" for step in past.steps[:-1]] == [m["content"] for m in shown[::2]]
    assert [step.answer for step in past.steps[:-1]] == [m["content"] for m in shown[1::2]]
    assert past.final_env == f"Feedback: {steps[-1].feedback}\n{episode.final_observation}"
    assert past.episode_id == episode.episode_id
