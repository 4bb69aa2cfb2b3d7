"""How much of its prompts a run repeats, and so how much a provider's prefix cache can serve at best."""

import asyncio
import random
from bisect import bisect
from pathlib import Path
from typing import Any

import pytest

from s3gym.models.base import Request, estimate_tokens
from s3gym.models.scripted import load
from s3gym.protocol.asking import Asker
from s3gym.protocol.rollout import play
from s3gym.registry import GAMES
from s3gym.registry import load as load_game
from s3gym.transcript import EXPERIENCE_CLOSE, EXPERIENCE_OPEN, between
from tests.direct import measure_directly
from tests.programmed import Programmed, part

TARGET = 0.9


class PrefixCache:
    """Ideal: it keeps every prompt for ever and serves the longest beginning that any of them shares."""

    def __init__(self) -> None:
        self._known: list[str] = []  # sorted: the one that shares most stands beside

    def serve(self, prompt: str) -> int:
        """Characters that need not be read again."""
        place = bisect(self._known, prompt)
        served = max((_shared(prompt, near) for near in self._known[max(0, place - 1) : place + 1]), default=0)
        self._known.insert(place, prompt)
        return served


def _shared(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def written(request: Request) -> str:
    """A prompt as a chat template writes it, up to small differences between templates."""
    return "".join(f"<{message['role']}>{message['content']}" for message in request.messages)


def served_share(requests: list[Request]) -> tuple[float, int]:
    """Share of all prompt tokens that an ideal cache serves, and the tokens of the longest prompt."""
    cache, prompts = PrefixCache(), [written(request) for request in requests]
    share = sum(map(cache.serve, prompts)) / sum(map(len, prompts))
    return share, max(map(estimate_tokens, prompts))


def cell(game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> list[Request]:
    """All requests of a cell under history: a player that is quick to think and wanders about."""
    player = load("player:random")
    model = Programmed(lambda request: getattr(player, f"_{request.purpose}")(request, random.Random(request.seed)))
    monkeypatch.setattr("s3gym.subjects.load_model", lambda *arguments, **named: model)
    measure_directly(
        tmp_path / "data",
        f"history_token_limit={limit}",
        games=[game],
        models=["programmed"],
        pathways=["history"],
        exploration_episodes=12,
    )
    return model.requests


def test_the_cache_serves_the_longest_beginning_it_knows() -> None:
    cache = PrefixCache()
    # nothing known; "abc" of "abcd"; "abc" again, not "ab" of the nearer in time; nothing
    assert [cache.serve(prompt) for prompt in ("abcd", "abce", "abx", "abcf", "zz")] == [0, 3, 2, 3, 0]


@pytest.mark.parametrize(("game", "limit"), [("snake", 100_000), ("snake", 20_000), ("trust", 100_000)])
def test_nine_tenths_of_a_cell_under_history_are_repeated(
    game: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = cell(game, tmp_path, monkeypatch, limit)

    share, longest = served_share(requests)
    print(f"{game}, limit {limit}: {len(requests)} prompts of up to {longest} tokens, {share:.1%} served at best")
    assert share >= TARGET


@pytest.mark.parametrize("game", ["snake", "minesweeper"])
def test_nine_tenths_of_an_episode_that_reads_a_history_are_repeated(
    game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = cell(game, tmp_path, monkeypatch, 100_000)[-1]
    history = between(last.messages[0]["content"], EXPERIENCE_OPEN, EXPERIENCE_CLOSE)
    expert, rng = load("player:expert"), random.Random(1)
    model = Programmed(lambda request: expert._act(request, rng))
    played: Any = load_game(GAMES, game, "game").GAME

    asyncio.run(play(played, played.evaluation, Asker(model), part(experience=history)))

    share, longest = served_share(model.requests)  # nothing is known when it begins
    print(f"{game}: {len(model.requests)} steps with up to {longest} tokens, {share:.1%} served at best")
    assert share >= TARGET
