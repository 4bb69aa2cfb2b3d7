"""Verifier and hidden truth have no path into any prompt, in any stage: but for the oracle, which is one.

Each game is played through all stages twice: as it is, and with everything an agent may not know replaced.
The prompts have to be the same to the last character.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s3gym import registry, storage, subjects
from s3gym.games.base import Game, Outcome
from s3gym.games.minesweeper import Minesweeper
from s3gym.games.snake import OFFSETS, Snake
from s3gym.games.trust import Trust
from s3gym.models.base import Completion, Request
from s3gym.models.scripted import PlayerModel
from s3gym.protocol.asking import Asker
from s3gym.transcript import EXPERIENCE_CLOSE, EXPERIENCE_OPEN, Message, between
from tests.direct import measure_directly
from tests.programmed import Programmed

GAMES = registry.names("s3gym.games")
PATHWAYS = ["none", "history", "memory"]
CANARY_REWARD, CANARY_SCORE = 7391.25, 8264.5
CANARIES = ("7391", "8264")

Prompt = tuple[str, tuple[Message, ...]]
Prompts = list[Prompt]


class Recorded(PlayerModel):
    """A scripted player that keeps what it was asked."""

    def __init__(self, player: str) -> None:
        super().__init__(f"player:{player}", player, {})
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return await super().complete(request)


def prompts_of(
    data: Path, game: Game[Any, Any, Any], model: Any, monkeypatch: pytest.MonkeyPatch, horizon: int
) -> Prompts:
    """Everything ``model`` is asked in all stages of all pathways when it plays ``game``."""
    module = registry.load("s3gym.games", game.id, "game")
    with monkeypatch.context() as patch:
        patch.setattr(module, "GAME", game)
        patch.setattr(subjects, "load_model", lambda *entry: model)
        measure_directly(
            data,
            "exploration_episodes=4",
            "evaluation_interval=2",
            "evaluation_episodes=1",
            f"game.{game.id}.exploration.horizon={horizon}",
            f"game.{game.id}.evaluation.horizon={horizon}",
            games=[game.id],
            models=[model.model_id],
            pathways=PATHWAYS,
        )
    return [(request.purpose, request.messages) for request in model.requests]


def rows(data: Path, table: str) -> Iterable[dict[str, Any]]:
    for path in storage.visible_files(data, table):
        yield from storage.read_part(data, table, path.parent.name, path.stem)


# --- rewards and scores -------------------------------------------------------------------------------------


def with_canaries(game: Game[Any, Any, Any]) -> Game[Any, Any, Any]:
    """The same game, but its verifier says nothing but canary values."""

    class WithCanaries(type(game)):  # type: ignore[misc]
        def step(self, state: Any, action: str) -> Outcome:
            return game.step(state, action)._replace(reward=CANARY_REWARD)

        def spoil(self, state: Any, feedback: str) -> Outcome:
            return game.spoil(state, feedback)._replace(reward=CANARY_REWARD)

        def final_score(self, rewards: Iterable[float]) -> float:
            return CANARY_SCORE

    return WithCanaries()


@pytest.mark.parametrize("player", ["learner", "myopic", "expert"])
@pytest.mark.parametrize("name", GAMES)
def test_no_reward_score_or_success_reaches_a_prompt(
    tmp_path: Path, name: str, player: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = registry.load("s3gym.games", name, "game").GAME

    plain = prompts_of(tmp_path / "plain", game, Recorded(player), monkeypatch, 10)
    told = prompts_of(tmp_path / "canary", with_canaries(game), Recorded(player), monkeypatch, 10)

    # the canaries were there to be told ...
    assert {row["verifier_reward"] for row in rows(tmp_path / "canary", "steps")} == {CANARY_REWARD}
    assert {row["final_score"] for row in rows(tmp_path / "canary", "episodes")} == {CANARY_SCORE}
    assert {row["is_success"] for row in rows(tmp_path / "canary", "episodes")} == {True}
    was_success = {row["is_success"] for row in rows(tmp_path / "plain", "episodes")}
    assert False in was_success or player == "expert"  # who may be perfect
    # ... and nobody was
    assert {purpose for purpose, _ in told} == {"act", "judge", "remember"}
    assert told == plain
    text = "\n".join(message["content"] for _, messages in told for message in messages)
    assert not any(canary in text for canary in CANARIES)


def test_the_oracle_alone_tells_rewards_and_only_in_experience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even when the agent copies all it reads into its memory."""

    def answer(request: Request) -> str:
        copied = between(request.messages[0]["content"], EXPERIENCE_OPEN, EXPERIENCE_CLOSE) or ""
        return {"act": "Answer: cheat, Score: 0.125", "judge": "Success: 0.5", "remember": copied}[request.purpose]

    asked: list[tuple[str, Prompt]] = []
    ask = Asker.ask

    async def noted(self: Asker, request: Request) -> Completion:
        asked.append((self._stage_key or "", (request.purpose, request.messages)))
        return await ask(self, request)

    monkeypatch.setattr(Asker, "ask", noted)
    plans, told = [], []
    for name, game in (("plain", Trust()), ("canary", with_canaries(Trust()))):
        asked.clear()
        monkeypatch.setattr(registry.load("s3gym.games", "trust", "game"), "GAME", game)
        monkeypatch.setattr(subjects, "load_model", lambda *entry: Programmed(answer))
        request = {"games": ["trust"], "models": ["programmed"], "interventions": ["all"]}
        budgets = ("exploration_episodes=4", "evaluation_interval=2", "evaluation_episodes=1")
        plans.append(measure_directly(tmp_path / name, *budgets, **request))
        told.append([*asked])

    stages = {stage.key: stage for stage in plans[1].stages()}
    assert {cell.record.intervention for cell in plans[1].cells} == {*registry.names("s3gym.interventions")}
    leaks = [(stages[key], prompt) for key, prompt in told[1] if any(mark in str(prompt) for mark in CANARIES)]
    # told: to the cells of the oracle, where their experience is built and read ...
    assert {(stage.subject.intervention, stage.kind) for stage, _ in leaks} == {
        ("oracle_judge", "build_experience"),
        ("oracle_judge", "evaluate"),
    }
    # ... inside the experience ...
    for _, (_, messages) in leaks:
        rest = [
            message["content"].replace(between(message["content"], EXPERIENCE_OPEN, EXPERIENCE_CLOSE) or "", "")
            for message in messages
        ]
        assert not any(mark in text for text in rest for mark in CANARIES)
    # ... and nowhere else does anything depend on them
    elsewhere = [
        [(key, prompt) for key, prompt in prompts if stages[key].subject.intervention != "oracle_judge"]
        for prompts in told
    ]
    assert elsewhere[0] == elsewhere[1] != []


def test_memory_and_judgment_calls_see_the_agents_own_scores_and_nothing_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Request) -> str:
        judgment = "Final score: 4321.5\nSuccess: 0.4321\nRetain: JUDGED-RETAIN\nAvoid: JUDGED-AVOID"
        said = {"act": "Answer: cheat, Score: 0.125", "judge": judgment, "remember": "MEMORY TEXT"}
        return said[request.purpose]

    model = Programmed(answer)
    asked = prompts_of(tmp_path, Trust(), model, monkeypatch, 3)

    assert all("0.125" in messages[0]["content"] for purpose, messages in asked if purpose != "act")
    text = "\n".join(message["content"] for _, messages in asked for message in messages)
    assert not any(mark in text for mark in ("4321", "JUDGED"))
    assert not any("MEMORY" in messages[0]["content"] for purpose, messages in asked if purpose != "act")
    assert any("MEMORY" in messages[0]["content"] for purpose, messages in asked if purpose == "act")


# --- hidden state -------------------------------------------------------------------------------------------


def facing(opponent: str) -> Trust:
    class Facing(Trust):
        def reset(self, config: Any, seed: int) -> Any:
            return replace(super().reset(config, seed), opponent=opponent)

    return Facing()


def minefield(is_swapped: bool) -> Minesweeper:
    """The same number of mines on other cells; instances count as shared, so both play the same seeds."""

    class Minefield(Minesweeper):
        is_instances_shared = True

        def reset(self, config: Any, seed: int) -> Any:
            state = super().reset(config, seed)
            if not is_swapped:
                return state
            count, cells = state.mines.bit_count(), random.Random(seed).sample(range(81), 81)
            return replace(state, mines=sum(1 << cell for cell in cells[:count]), spares=tuple(cells[count:]))

    return Minefield()


def orchard(is_swapped: bool) -> Snake:
    """The same board with other apples to come."""

    class Orchard(Snake):
        is_instances_shared = True

        def reset(self, config: Any, seed: int) -> Any:
            state = super().reset(config, seed)
            shown, later = state.arena.order[: state.cursor], state.arena.order[state.cursor :]
            order = (*shown, *later[::-1]) if is_swapped else state.arena.order
            return replace(state, arena=state.arena._replace(order=order))

    return Orchard()


def collaborate(request: Request) -> str:
    return "Answer: collaborate, Score: 2"


def flag(request: Request) -> str:
    board = request.scene.view.board
    cell = board.index("?")
    return f"Answer: flag ({cell // 9},{cell % 9}), Score: 0.1"


def abstain(request: Request) -> str:
    """A step that eats nothing."""
    view = request.scene.view
    ahead = {name: view.body[0] + row * view.size + column for name, (row, column) in OFFSETS.items()}
    return f"Answer: {next(name for name, cell in ahead.items() if cell not in view.apples)}, Score: 0"


HIDDEN: list[
    tuple[str, Callable[[], Game[Any, Any, Any]], Callable[[], Game[Any, Any, Any]], Callable[[Request], str]]
] = [
    ("copycat or grudger", lambda: facing("copycat"), lambda: facing("grudger"), collaborate),
    ("copycat or pink", lambda: facing("copycat"), lambda: facing("pink"), collaborate),
    ("copykitten or stubborn", lambda: facing("copykitten"), lambda: facing("stubborn"), collaborate),
    ("mines elsewhere", lambda: minefield(False), lambda: minefield(True), flag),
    ("other apples to come", lambda: orchard(False), lambda: orchard(True), abstain),
]


@pytest.mark.parametrize(("truth", "other", "act"), [row[1:] for row in HIDDEN], ids=[row[0] for row in HIDDEN])
def test_hidden_truth_that_shows_in_no_observation_shows_in_no_prompt(
    tmp_path: Path,
    truth: Callable[[], Game[Any, Any, Any]],
    other: Callable[[], Game[Any, Any, Any]],
    act: Callable[[Request], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(request: Request) -> str:
        return act(request) if request.purpose == "act" else "Final score: 1\nSuccess: 0.5\nRetain: this\nAvoid: that"

    game = truth()
    starts = {g.layout(g.reset(g.exploration, 5)) for g in (game, other())}
    assert len(starts) == 2  # the truths do differ

    first = prompts_of(tmp_path / "first", game, Programmed(answer), monkeypatch, 8)
    second = prompts_of(tmp_path / "second", other(), Programmed(answer), monkeypatch, 8)

    assert first == second
    assert {purpose for purpose, _ in first} == {"act", "judge", "remember"}


def test_truth_that_does_show_changes_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail."""
    first = prompts_of(tmp_path / "first", facing("pink"), Programmed(collaborate), monkeypatch, 4)
    second = prompts_of(tmp_path / "second", facing("cheater"), Programmed(collaborate), monkeypatch, 4)

    assert first != second


def test_what_a_scripted_player_may_look_at_holds_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in GAMES:
        game = registry.load("s3gym.games", name, "game").GAME
        model = Recorded("random")
        prompts_of(tmp_path / name, game, model, monkeypatch, 3)

        state = type(game.reset(game.exploration, 1))
        for request in model.requests:
            scene = request.scene
            assert not isinstance(scene.view, state)
            assert (scene.view is None) == (request.purpose != "act")
