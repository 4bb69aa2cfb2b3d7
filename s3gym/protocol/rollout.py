"""Plays one episode: the only place where a game and a model meet.

What reaches the model is made from the game's view; rewards go into the rows and nowhere else.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from s3gym.games.base import Config, Game, Taken
from s3gym.models.base import Decoding, ModelError, Request, Scene
from s3gym.protocol.answers import parse_answer
from s3gym.protocol.asking import Asker
from s3gym.protocol.prompts import past_step, step_messages
from s3gym.records import Episode, Step
from s3gym.transcript import Message, PastEpisode, PastStep, answer_line, env_text

WRITTEN_LIMIT = 120
"""Characters of an unusable action that later prompts still show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Which episode of which stage is played, and with what."""

    stage_key: str
    phase: str
    checkpoint: int
    episode_index: int
    seed: int
    experience: str | None
    history_tokens_dropped: int
    decoding: Decoding
    decoding_seed: Callable[[int], int]
    """Step index to the seed of that step's answer."""

    def episode_id(self, game_id: str) -> str:
        """Made of what it names."""
        return f"{game_id}:{self.phase}:{self.checkpoint}:{self.episode_index}:{self.stage_key[:12]}"


async def play(game: Game[Any, Any, Any], config: Config, asker: Asker, part: Part) -> tuple[Episode, list[Step]]:
    """Plays one episode to its end, its horizon, or a failed call.

    A failed call is a row with its error: it is not played, and the episode is invalid.
    """
    state = game.reset(config, part.seed)
    instance_id = game.instance_id(state)
    rules = game.rules(config)
    steps: list[Step] = []
    earlier: list[Message] = []
    feedback: str | None = None
    end_reason: str | None = None
    is_valid = True
    for index in range(config.horizon):
        view = game.view(state)
        observation = game.render(view)
        env = env_text(feedback, observation)
        request = Request(
            messages=step_messages(part.experience, earlier, rules, env),
            purpose="act",
            seed=part.decoding_seed(index),
            decoding=part.decoding,
            scene=scene_of(game, config, view),
        )
        common: dict[str, Any] = {
            "stage_key": part.stage_key,
            "game": game.id,
            "phase": part.phase,
            "checkpoint": part.checkpoint,
            "episode_id": part.episode_id(game.id),
            "step_index": index,
            "observation": observation,
            "history_tokens_dropped": part.history_tokens_dropped,
        }
        try:
            completion = await asker.ask(request)
        except ModelError as error:
            steps.append(Step(**common, is_terminated=False, is_truncated=False, **asdict(error.facts)))
            end_reason, is_valid = error.kind, False
            break
        answer = parse_answer(completion.text)
        taken = game.take(state, answer.action)
        state, end_reason, feedback = taken.outcome.state, taken.outcome.end_reason, taken.outcome.feedback
        steps.append(
            Step(
                **common,
                reply=completion.text,
                reasoning=completion.reasoning,
                action=taken.action,
                action_status=recorded_status(taken, answer.is_repaired),
                self_score=answer.self_score,
                feedback=feedback,
                verifier_reward=taken.outcome.reward,
                is_terminated=end_reason is not None,
                is_truncated=end_reason is None and index + 1 == config.horizon,
                **asdict(completion.facts),
            )
        )
        if end_reason is not None:
            break
        earlier += past_step(part.experience if not earlier else None, shown(steps[-1], env))
        await asyncio.sleep(0)  # scripted players never wait; let hosted ones have their turn
    score = game.final_score(step.verifier_reward or 0.0 for step in steps) if is_valid else None
    episode = Episode(
        stage_key=part.stage_key,
        game=game.id,
        phase=part.phase,
        checkpoint=part.checkpoint,
        episode_id=part.episode_id(game.id),
        episode_index=part.episode_index,
        seed=part.seed,
        instance_id=instance_id,
        config=config.to_json(),
        game_version=game.VERSION,
        final_score=score,
        is_success=None if score is None else score >= game.success_score,
        step_count=len(steps),
        end_reason=end_reason or "horizon",
        final_observation=game.render(game.view(state)),
        status="valid" if is_valid else "invalid",
    )
    return episode, steps


def scene_of(game: Game[Any, Any, Any], config: Config, view: Any = None) -> Scene:
    """The public side of a game, for scripted players."""
    reward_range = game.reward_range(config)
    return Scene(game.players, game.reader, reward_range, game.success_score, game.score_aggregation, view)


def past_episode(episode: Episode, steps: list[Step], scores: Sequence[float | None] | None = None) -> PastEpisode:
    """A stored episode as later prompts show it; made from what the agent saw and answered, nothing else.

    Args:
        episode: as it was played.
        steps: all of it, in order.
        scores: what an intervention shows in place of the agent's own scores; the only way for anything else in.
    """
    past, feedback = [], None
    given = [step.self_score for step in steps] if scores is None else scores
    for step, score in zip(steps, given, strict=True):
        past.append(shown(replace(step, self_score=score), env_text(feedback, step.observation)))
        feedback = step.feedback
    return PastEpisode(episode.episode_id, tuple(past), env_text(feedback, episode.final_observation))


def shown(step: Step, env: str) -> PastStep:
    """A finished step as later prompts show it, below ``env``: the feedback before it, if any, and the state."""
    return PastStep(env, answer_line(step.action or _written(step.reply), step.self_score))


def recorded_status(taken: Taken, is_repaired: bool) -> str:
    """The action's status in the rows: what the game's grammar says, or that the answer line needed cleaning."""
    return "repaired" if taken.status == "ok" and is_repaired else taken.status


def _written(reply: str | None) -> str | None:
    """The beginning of what a reply has in place of an action that can be used."""
    return " ".join((parse_answer(reply or "").action or "").split())[:WRITTEN_LIMIT] or None
