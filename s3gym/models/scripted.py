"""Scripted players as models: instant, offline, deterministic. ``player:<name>?<option>=<value>``.

``player:random``, ``player:expert`` and a game's other reference players act on the public view.
``player:learner`` is the positive control and ``player:myopic`` the negative one: both read *only their prompt*.
The learner knows how to read a board and what an event is worth, but not what an action leads to: that it counts in
the transitions it is shown and looks ahead with the counts; where a game's reader has no facts it says that it has
nothing to learn with and acts at random. Of earlier episodes it trusts only steps it scored
itself, so its gain needs every link: testing, judging, and carrying on.

Options: ``confidence=over|under|honest`` makes self-scores always the highest possible, or never positive, or what the
game's reader can expect of the action from the state alone;
``hints=shuffled|unscored`` spoils what the learner or the myopic player reads of earlier episodes;
``broken=testing|judging|consolidation|execution|nothing`` makes the learner one that goes by the scores it reads, with
that one link broken, see ``_links``.
"""

import random
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from s3gym.models import _links
from s3gym.models._reading import (
    Facts,
    combined,
    counted,
    current_blocks,
    current_env,
    experience,
    noted,
    recalled,
)
from s3gym.models.base import Completion, Request, estimate_tokens
from s3gym.registry import UnknownName
from s3gym.transcript import AGENT, ENV, answer_line, blocks, read_answer_line, turns

PREFIX = "player:"
READERS = ("learner", "myopic")
"""Players that every game has: they read prompts, not views."""
OPTIONS = {"confidence": ("over", "under", "honest"), "hints": ("shuffled", "unscored"), "broken": _links.BROKEN}
VERSION = 1
"""Raised when a reader's behaviour changes; a game's own players are covered by the game's VERSION."""

UNKNOWN = "Final score: unknown\nSuccess: unknown"

_HABIT = re.compile(r"^- best action \| (?P<action>[^|\n]*) \| self-score (?P<score>\S+)$", re.M)


class PlayerModel:
    """One scripted player."""

    revision: str | None = None
    endpoint = "player"
    is_free = True

    def __init__(self, model_id: str, player: str, options: Mapping[str, str]) -> None:
        self.model_id = model_id
        self.player = player
        self.options = dict(options)

    def identity(self) -> dict[str, Any]:
        """Name, options and version."""
        links = {"links": _links.VERSION} if "broken" in self.options else {}
        return {"player": self.player, "options": self.options, "version": VERSION, **links}

    def check(self) -> None:
        """Nothing to check: which players a game has is seen when a run is planned."""

    def count_tokens(self, text: str) -> int:
        """The stated estimate."""
        return estimate_tokens(text)

    async def complete(self, request: Request) -> Completion:
        """Answers at once."""
        rng = random.Random(request.seed)
        answer = {"act": self._act, "judge": self._judge, "remember": self._remember}[request.purpose]
        return Completion(text=answer(request, rng))

    def _act(self, request: Request, rng: random.Random) -> str:
        scene = request.scene
        if "broken" in self.options:
            action, score = _links.act(request, self.options["broken"], rng)
        elif self.player == "learner":
            action, score = self._learn(request, rng)
        elif self.player == "myopic":
            action, score = self._repeat(request, rng)
        else:
            action, score = scene.players[self.player](scene.view, rng)
        match self.options.get("confidence"):
            case "over":
                score = scene.reward_range[1]
            case "under":
                score = min(0.0, scene.reward_range[0])
            case "honest":
                score = scene.reader.expect(current_env(request), action)
        return answer_line(action, score)

    def _learn(self, request: Request, rng: random.Random) -> tuple[str, float | None]:
        reader = request.scene.reader
        facts = combined(self._earlier_facts(request), counted(turns(current_blocks(request)), reader))
        action, score = reader.choose(current_env(request), facts, rng)
        return action, score

    def _earlier_facts(self, request: Request) -> Facts:
        text = experience(request)
        if not text:
            return {}
        return _facts_of_experience(text, request.scene.reader, self.options.get("hints"))

    def _repeat(self, request: Request, rng: random.Random) -> tuple[str, float | None]:
        text = experience(request)
        best = _best_habit(text, self.options.get("hints"))
        if best is not None:
            return best
        env = current_env(request)
        action = rng.choice(request.scene.reader.actions(env))
        return action, request.scene.reader.glance(env, action)

    def _judge(self, request: Request, rng: random.Random) -> str:
        text = experience(request)
        scores = [turn.self_score for turn in turns(list(blocks(text))) if turn.self_score is not None]
        if not scores:
            return UNKNOWN
        expected = sum(scores) / (len(scores) if request.scene.score_aggregation == "mean" else 1)
        belief = 1 if expected >= request.scene.success_score - 1e-9 else 0
        return f"Final score: {expected:g}\nSuccess: {belief}\nRetain: what scored\nAvoid: what did not"

    def _remember(self, request: Request, rng: random.Random) -> str:
        if "broken" in self.options:
            return _links.remember(request, self.options["broken"])
        if self.player == "learner" and not request.scene.reader.is_learnable:
            return _links.UNLEARNABLE
        if self.player == "learner":
            return noted(self._earlier_facts(request))
        if self.player == "myopic":
            text = experience(request)
            best = _best_habit(text, self.options.get("hints"))
            if best is not None:
                return f"- best action | {best[0]} | self-score {best[1]:g}"
        return _links.NOTHING


def load(spec: str) -> PlayerModel:
    """The player of ``player:<name>?<options>``; whether a game has it is for the caller to check.

    Raises:
        UnknownName: an option or its value is not one of ``OPTIONS``, or a player but the learner is to be broken.
    """
    name, _, query = spec.removeprefix(PREFIX).partition("?")
    options: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        option, _, value = pair.partition("=")
        if option not in OPTIONS:
            raise UnknownName("player option", option, OPTIONS)
        if value not in OPTIONS[option]:
            raise UnknownName(f"value of player option {option!r}", value, OPTIONS[option])
        options[option] = value
    if "broken" in options and name != "learner":
        raise UnknownName("player that can be broken", name, ["learner"])
    return PlayerModel(spec, name, options)


def names_for(game_players: Mapping[str, Any]) -> list[str]:
    """All player names a game can be played by."""
    return sorted({*game_players, *READERS})


@lru_cache(maxsize=128)
def _facts_of_experience(text: str, reader: Any, spoiled: str | None) -> Facts:
    """Facts of earlier episodes: counted from transcripts, or read back from a memory text."""
    scored = [turn for turn in turns(_spoil(text, spoiled)) if turn.self_score is not None]
    return combined(counted(scored, reader), recalled(text))


@lru_cache(maxsize=128)  # the experience is the same at every step of an episode
def _best_habit(text: str, spoiled: str | None) -> tuple[str, float] | None:
    """The action with the highest immediate self-score; the earliest of equals."""
    noted = _HABIT.search(text)
    if noted:
        return noted["action"], float(noted["score"])
    best: tuple[str, float] | None = None
    for turn in turns(_spoil(text, spoiled)):
        if turn.self_score is not None and (best is None or turn.self_score > best[1]):
            best = (turn.action, turn.self_score)
    return best


def _spoil(text: str, spoiled: str | None) -> list[tuple[str, str]]:
    """The blocks of a transcript; unscored, no answer was judged.

    Shuffled, answers are in any order and states run backwards, so that none follows from the one before: in any
    order some still would, and where boards only fill up, a late one after an early one tells much.
    """
    marked = list(blocks(text))
    if spoiled == "shuffled":
        states = [body for mark, body in marked if mark == ENV]
        answers = [body for mark, body in marked if mark == AGENT]
        random.Random(len(text)).shuffle(answers)
        marked = [(mark, states.pop() if mark == ENV else answers.pop()) for mark, _ in marked]
    if spoiled == "unscored":
        marked = [(mark, _without_score(body) if mark == AGENT else body) for mark, body in marked]
    return marked


def _without_score(answer: str) -> str:
    read = read_answer_line(answer)
    return answer if read is None else answer_line(read[0], None)
