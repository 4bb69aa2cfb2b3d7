"""A learner whose every link can be broken, one at a time: what ``player:learner?broken=<link>`` answers.

It reads its prompt alone. What actions lead to it counts in the transitions it is shown, and looks ahead with the
counts, as ``player:learner`` does. Whether any of that is worth doing it takes from the scores it reads: only where
they bear out what the rules promise (``BELIEF``) does it act on what it has seen; else it plays as if it had seen
nothing, at random. Its own score is what the rules let it expect of the action from the state alone. So its gain
needs all four links, and an intervention can stand in for any of them:

* ``nothing``: healthy.
* ``testing``: it tries nothing new. Where it would draw, it takes the first of what it would draw from, and in place of
  an action that its experience does not show the first that there is: its own episodes teach nothing but that one.
  Another's exploration does.
* ``judging``: its scores are drawn at random, whatever it does, and bear nothing out. Better scores of the same steps
  do; shuffled, they are as random as before.
* ``consolidation``: nothing of what it lived through comes back, neither from its memory, which it leaves empty, nor
  from its history, which it does not look at. A strategy guide does.
* ``execution``: it reads all that and goes by it only where the rules forgive a slip (``FORGIVING``); else it plays at
  random. Where the two sets of rules read the same, as in ``trust``, it takes both for strict.

What it does with a strategy guide is simulated: experience that begins with ``Strategy guide: <game>``, the game being
the one its rules are of, makes it play as that game's expert does on the public view.
"""

import random
import re
from functools import lru_cache
from statistics import StatisticsError, correlation
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from s3gym.models._reading import Facts, combined, counted, current_env, experience, noted, recalled, rules
from s3gym.models.base import Request
from s3gym.transcript import blocks, turns

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

T = TypeVar("T")

VERSION = 1
"""Raised when an answer changes; part of every key."""
BROKEN = ("nothing", "testing", "judging", "consolidation", "execution")
BELIEF, EVIDENCE = 0.4, 25
"""Correlation of scores with what the rules let expect, and of how many steps, from which they bear it out. Of three
episodes played by chance the verifier's rewards have 1 in snake and 0.45 or more in trust in 95 of 100 cases; dealt to
other steps they stay below it in 99."""
FORGIVING = ("moves nothing and uses the step up", "extra lives")
"""How rules say that a slip costs a step, or a life, and not the episode: snake and chess, and minesweeper."""
NOTHING = "Nothing to retain."
UNPROVEN = "Nothing to retain: no score bears out what the rules promise."
UNLEARNABLE = "Nothing to retain: there is nothing to learn this game with."

_TRIED = re.compile(r"^- tried \| (.*)$", re.M)
_GUIDE = re.compile(r"\W*Strategy guide: *(?P<game>[^\n]*\w)")


def act(request: Request, broken: str, rng: random.Random) -> tuple[str, float | None]:
    """(action, self-score) of a step."""
    action = _action(request, broken, rng)
    if broken == "judging":
        return action, round(rng.uniform(*request.scene.reward_range), 2)
    return action, request.scene.reader.expect(current_env(request), action)


def remember(request: Request, broken: str) -> str:
    """The memory text."""
    reader = request.scene.reader
    if broken == "consolidation":
        return NOTHING
    if not reader.is_learnable:
        return UNLEARNABLE
    learnt = _lessons(experience(request), reader)
    return "\n".join([*(f"- tried | {action}" for action in learnt.tried), noted(learnt.facts)]) if learnt else UNPROVEN


class _First(random.Random):
    """Leaves no choice to chance."""

    def choice(self, seq: "SupportsLenAndGetItem[T]") -> T:
        """The first."""
        return seq[0]


def _action(request: Request, broken: str, rng: random.Random) -> str:
    reader, env, text = request.scene.reader, current_env(request), experience(request)
    rng = _First() if broken == "testing" else rng
    untaught: str = rng.choice(reader.actions(env))
    if broken == "execution" and not any(words in rules(request) for words in FORGIVING):
        return untaught
    guide = _GUIDE.match(text)
    if guide and rules(request).lower().startswith(guide["game"].lower()):
        told: str = request.scene.players["expert"](request.scene.view, rng).action
        return told
    learnt = None if broken == "consolidation" else _lessons(text, reader)
    if learnt is None:
        return untaught
    action: str = reader.choose(env, learnt.facts, rng).action
    return action if action in learnt.tried or broken != "testing" else untaught


class _Lessons(NamedTuple):
    facts: Facts
    tried: tuple[str, ...]
    """Actions, sorted."""


@lru_cache(maxsize=128)  # the experience is the same at every step of an episode
def _lessons(text: str, reader: Any) -> _Lessons | None:
    """What a memory text notes, and what transcripts show whose scores bear out the rules; None for nothing."""
    seen = [turn for turn in turns(list(blocks(text))) if turn.self_score is not None]
    promised = [reader.expect(turn.before, turn.action) for turn in seen]
    pairs = [(turn.self_score, hope) for turn, hope in zip(seen, promised, strict=True) if hope is not None]
    try:
        is_borne_out = len(pairs) >= EVIDENCE and correlation(*zip(*pairs, strict=True)) >= BELIEF
    except StatisticsError:  # all alike
        is_borne_out = False
    shown = seen if is_borne_out else []
    facts = combined(recalled(text), counted(shown, reader))
    tried = {*_TRIED.findall(text), *(turn.action for turn in shown)}
    return _Lessons(facts, tuple(sorted(tried))) if facts else None
