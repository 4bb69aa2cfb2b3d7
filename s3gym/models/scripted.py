"""Scripted players as models: instant, offline, deterministic. ``player:<name>?<option>=<value>``.

``player:random``, ``player:expert`` and a game's other reference players act on the public view.
``player:learner`` is the positive control and ``player:myopic`` the negative one: both read *only their prompt*.
The learner knows how to read a board and what an event is worth, but not what an action leads to: that it counts in
the transitions it is shown and looks ahead with the counts; where a game's reader has no facts it says that it has
nothing to learn with and acts at random. Of earlier episodes it trusts only steps it scored
itself, so its gain needs every link: testing, judging, and carrying on.

Options: ``confidence=over|under|honest`` makes self-scores always the highest possible, or never positive, or what the
game's reader can expect of the action from the state alone;
``hints=shuffled|unscored`` spoils what the learner or the myopic player reads of earlier episodes.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from s3gym.models.base import Completion, Request, estimate_tokens
from s3gym.registry import UnknownName
from s3gym.transcript import (
    AGENT,
    CURRENT_CLOSE,
    CURRENT_OPEN,
    ENV,
    EXPERIENCE_CLOSE,
    EXPERIENCE_OPEN,
    Turn,
    answer_line,
    between,
    blocks,
    read_answer_line,
    turns,
)

PREFIX = "player:"
READERS = ("learner", "myopic")
"""Players that every game has: they read prompts, not views."""
OPTIONS = {"confidence": ("over", "under", "honest"), "hints": ("shuffled", "unscored")}
VERSION = 1
"""Raised when a reader's behaviour changes; a game's own players are covered by the game's VERSION."""

UNKNOWN = "Final score: unknown\nSuccess: unknown"
NOTHING_TO_RETAIN = "Nothing to retain."
NOTHING_TO_LEARN_WITH = "Nothing to retain: there is nothing to learn this game with."

Facts = dict[tuple[str, str], Counter[str]]

_FACT = re.compile(r"^- (?P<situation>[^|\n]*) \| (?P<action>[^|\n]*) \| (?P<outcome>[^|\n]*) \| (?P<count>\d+)$", re.M)
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
        return {"player": self.player, "options": self.options, "version": VERSION}

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
        if self.player == "learner":
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
                score = scene.reader.expect(_current_env(request), action)
        return answer_line(action, score)

    def _learn(self, request: Request, rng: random.Random) -> tuple[str, float | None]:
        reader = request.scene.reader
        facts = _combined(self._earlier_facts(request), _counted(turns(_current_blocks(request)), reader))
        action, score = reader.choose(_current_env(request), facts, rng)
        return action, score

    def _earlier_facts(self, request: Request) -> Facts:
        text = _experience(request)
        if not text:
            return {}
        return _facts_of_experience(text, request.scene.reader, self.options.get("hints"))

    def _repeat(self, request: Request, rng: random.Random) -> tuple[str, float | None]:
        text = _experience(request)
        best = _best_habit(text, self.options.get("hints"))
        if best is not None:
            return best
        env = _current_env(request)
        action = rng.choice(request.scene.reader.actions(env))
        return action, request.scene.reader.glance(env, action)

    def _judge(self, request: Request, rng: random.Random) -> str:
        text = _experience(request)
        scores = [turn.self_score for turn in turns(list(blocks(text))) if turn.self_score is not None]
        if not scores:
            return UNKNOWN
        expected = sum(scores) / (len(scores) if request.scene.score_aggregation == "mean" else 1)
        belief = 1 if expected >= request.scene.success_score - 1e-9 else 0
        return f"Final score: {expected:g}\nSuccess: {belief}\nRetain: what scored\nAvoid: what did not"

    def _remember(self, request: Request, rng: random.Random) -> str:
        if self.player == "learner" and not request.scene.reader.is_learnable:
            return NOTHING_TO_LEARN_WITH
        if self.player == "learner":
            facts = self._earlier_facts(request)
            lines = [
                f"- {situation} | {action} | {outcome} | {count}"
                for (situation, action), outcomes in sorted(facts.items())
                for outcome, count in sorted(outcomes.items())
            ]
            return "\n".join(["Seen (situation | action | outcome | times):", *lines])
        if self.player == "myopic":
            text = _experience(request)
            best = _best_habit(text, self.options.get("hints"))
            if best is not None:
                return f"- best action | {best[0]} | self-score {best[1]:g}"
        return NOTHING_TO_RETAIN


def load(spec: str) -> PlayerModel:
    """The player of ``player:<name>?<options>``; whether a game has it is for the caller to check.

    Raises:
        UnknownName: an option or its value is not one of ``OPTIONS``.
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
    return PlayerModel(spec, name, options)


def names_for(game_players: Mapping[str, Any]) -> list[str]:
    """All player names a game can be played by."""
    return sorted({*game_players, *READERS})


@lru_cache(maxsize=128)
def _facts_of_experience(text: str, reader: Any, spoiled: str | None) -> Facts:
    """Facts of earlier episodes: counted from transcripts, or read back from a memory text."""
    facts = _counted([turn for turn in turns(_spoil(text, spoiled)) if turn.self_score is not None], reader)
    for match in _FACT.finditer(text):
        facts.setdefault((match["situation"], match["action"]), Counter())[match["outcome"]] += int(match["count"])
    return facts


def _counted(seen: Iterable[Turn], reader: Any) -> Facts:
    facts: Facts = {}
    for turn in seen:
        for situation, action, outcome in _facts_of_turn(turn.before, turn.action, turn.after, reader):
            facts.setdefault((situation, action), Counter())[outcome] += 1
    return facts


@lru_cache(maxsize=4096)  # a step sees all earlier steps of its episode again
def _facts_of_turn(before: str, action: str, after: str, reader: Any) -> tuple[tuple[str, str, str], ...]:
    return tuple(reader.facts(before, action, after))


def _combined(earlier: Facts, current: Facts) -> Facts:
    if not current:
        return earlier
    merged = {key: Counter(outcomes) for key, outcomes in earlier.items()}
    for key, outcomes in current.items():
        merged.setdefault(key, Counter()).update(outcomes)
    return merged


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


def _experience(request: Request) -> str:
    """What stands before the prompt from earlier episodes; empty when nothing does."""
    return between(request.messages[0]["content"], EXPERIENCE_OPEN, EXPERIENCE_CLOSE) or ""


def _current_blocks(request: Request) -> Sequence[tuple[str, str]]:
    """The current episode so far, its last state included."""
    marked = []
    for message in request.messages[:-1]:
        mark = AGENT if message["role"] == "assistant" else ENV
        body = message["content"].rsplit(EXPERIENCE_CLOSE, 1)[-1].strip("\n").removeprefix(ENV)
        marked.append((mark, body))
    return [*marked, (ENV, _current_env(request))]


def _current_env(request: Request) -> str:
    return between(request.messages[-1]["content"], CURRENT_OPEN, CURRENT_CLOSE) or ""
