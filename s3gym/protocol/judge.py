"""The retrospective judgment of a finished episode: one call, four lines, nulls where the model gave none.

The step's own self-score is part of its answer (``answers``); this is the view back on the whole episode. It never
enters an experience.
"""

import re
from dataclasses import asdict
from math import isfinite
from typing import Any

from s3gym.games.base import Config, Game
from s3gym.models.base import Decoding, ModelError, Request
from s3gym.protocol.asking import Asker
from s3gym.protocol.prompts import judgment_messages
from s3gym.protocol.rollout import scene_of
from s3gym.records import Judgment
from s3gym.transcript import PastEpisode

_LINE = re.compile(r"^[ \t*_>#`-]*(final score|success|retain|avoid)[ \t*_`]*:(.*)$", re.I | re.M)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.I)
TEXT_LIMIT = 2_000
"""Characters kept of ``retain`` and ``avoid``."""


async def judge(
    game: Game[Any, Any, Any],
    config: Config,
    asker: Asker,
    past: PastEpisode,
    *,
    stage_key: str,
    checkpoint: int,
    seed: int,
    decoding: Decoding,
) -> Judgment:
    """Asks for the judgment of one episode; a failed call is a row with its error."""
    request = Request(
        messages=judgment_messages(game.rules(config), "".join(past.segments()), game.success_score),
        purpose="judge",
        seed=seed,
        decoding=decoding,
        scene=scene_of(game, config),
    )
    try:
        completion = await asker.ask(request)
        reply, facts = completion.text, completion.facts
    except ModelError as error:
        reply, facts = None, error.facts
    return Judgment(
        stage_key=stage_key,
        game=game.id,
        checkpoint=checkpoint,
        episode_id=past.episode_id,
        reply=reply,
        **parse_judgment(reply or ""),
        **asdict(facts),
    )


def parse_judgment(reply: str) -> dict[str, Any]:
    """The four fields of a reply; the last line of a kind counts, unreadable ones are None."""
    found = {match[1].lower(): match[2].strip(" \t\r*_`") for match in _LINE.finditer(reply)}
    belief = _number(found.get("success", ""))
    return {
        "expected_final_score": _number(found.get("final score", "")),
        "success_belief": belief if belief is not None and 0 <= belief <= 1 else None,
        "retain": found.get("retain", "")[:TEXT_LIMIT] or None,
        "avoid": found.get("avoid", "")[:TEXT_LIMIT] or None,
    }


def _number(text: str) -> float | None:
    match = _NUMBER.match(text.strip())
    value = float(match[0]) if match else None
    return value if value is not None and isfinite(value) else None
