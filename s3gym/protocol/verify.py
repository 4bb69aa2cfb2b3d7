"""Replays a stored episode from its seed and replies and names everything that differs from what is stored."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from s3gym.games.base import Game
from s3gym.protocol.answers import parse_answer
from s3gym.protocol.rollout import recorded_status
from s3gym.records import Episode, Step

TOLERANCE = 1e-9
"""Largest difference of a reward or score that counts as equal."""


def differences(game: Game[Any, Any, Any], episode: Episode, steps: Sequence[Step]) -> Iterator[str]:
    """One sentence for each stored value that the replay does not bear out; none when all is as it was.

    Args:
        game: the episode's game, in the VERSION that is installed.
        episode: the stored episode.
        steps: its stored steps, in order.
    """
    if episode.game_version != game.VERSION:
        yield f"game_version: stored {episode.game_version}, installed {game.VERSION}; verify with the one that made it"
        return
    config = game.read_config(episode.config)
    state = game.reset(config, episode.seed)
    if game.instance_id(state) != episode.instance_id:
        yield f"seed: instance {episode.instance_id} is stored, seed {episode.seed} gives {game.instance_id(state)}"
        return
    if len(steps) != episode.step_count or any(step.step_index != index for index, step in enumerate(steps)):
        yield f"steps: {len(steps)} stored, step_count is {episode.step_count}"
        return
    rewards: list[float] = []
    end_reason: str | None = None
    for step in steps:
        where = f"step {step.step_index}"
        if end_reason is not None:
            yield f"{where}: stored after the end"
            return
        yield from _compare(where, [("observation", step.observation, game.render(game.view(state)))])
        if step.error_kind is not None:
            end_reason = step.error_kind
            continue
        answer = parse_answer(step.reply or "")
        taken = game.take(state, answer.action)
        state, end_reason = taken.outcome.state, taken.outcome.end_reason
        rewards.append(taken.outcome.reward)
        is_cut = end_reason is None and step.step_index + 1 == config.horizon
        yield from _compare(
            where,
            [
                ("action", step.action, taken.action),
                ("action_status", step.action_status, recorded_status(taken, answer.is_repaired)),
                ("self_score", step.self_score, answer.self_score),
                ("feedback", step.feedback, taken.outcome.feedback),
                ("reward", step.verifier_reward, taken.outcome.reward),
                ("is_terminated", step.is_terminated, end_reason is not None),
                ("is_truncated", step.is_truncated, is_cut),
            ],
        )
    is_valid = all(step.error_kind is None for step in steps)
    score = game.final_score(rewards) if is_valid else None
    yield from _compare(
        "episode",
        [
            ("final_observation", episode.final_observation, game.render(game.view(state))),
            ("final_score", episode.final_score, score),
            ("is_success", episode.is_success, None if score is None else score >= game.success_score),
            ("end_reason", episode.end_reason, end_reason or "horizon"),
            ("status", episode.status, "valid" if is_valid else "invalid"),
        ],
    )


def _compare(where: str, triples: Iterable[tuple[str, Any, Any]]) -> Iterator[str]:
    for name, stored, replayed in triples:
        if isinstance(stored, float) and isinstance(replayed, float):
            if abs(stored - replayed) <= TOLERANCE:
                continue
        elif stored == replayed:
            continue
        yield f"{where}, {name}: stored {_short(stored)}, replayed {_short(replayed)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
