"""Why a stage would be made again: the inputs its key is made of, beside those of the stage that stood in its place.

Every manifest keeps the facts behind its key. What stood in a stage's place is the part of the same kind, game,
model, pathway, intervention, replicate and checkpoint whose facts differ least; of several the latest. Nothing here
decides whether a stage is made: ``plan.missing`` does.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from s3gym import storage
from s3gym.plan import COMPLETE, RunPlan, Stage, missing

NEW = "never made before"
UNRECORDED = "made before inputs were recorded"
LOST = "its files are gone"
FAILED = "calls failed"

_INPUTS = ("explored", "experience")
"""Facts that name other stages: what changed is said of those."""
_PLACE = ("kind", "game", "scope", "checkpoint")
"""Facts that say which link of which chain a stage is; ``scope`` holds model, pathway, intervention, replicate."""
_WORDS = {
    "schema": "schema version",
    "prompts": "prompt version",
    "game_version": "game VERSION",
    "base_seed": "seed",
    "episodes": "episodes of the block",
    "shuffled": "explored episodes that are shuffled",
    "pathway.version": "pathway VERSION",
    "pathway.token_limit": "history_token_limit",
    "pathway.cut": "history_cut",
    "pathway.memory_source": "memory_source",
}
_LONGEST = 60
"""Characters of a value that are shown."""


class Change(NamedTuple):
    """One input that is not what it was."""

    what: str
    old: str | None = None
    """None where there is no value to show."""
    new: str | None = None

    def __str__(self) -> str:
        return self.what if self.old is None and self.new is None else f"{self.what} {self.old} -> {self.new}"


class Reason(NamedTuple):
    """Why one stage would be made."""

    stage: Stage
    changes: tuple[Change, ...]


def explain(data: Path, plan: RunPlan) -> list[Reason]:
    """The reasons of every stage of ``plan`` with something missing, in the order they can run."""
    lacking = [(stage, gaps) for stage in plan.stages() if (gaps := missing(data, stage))]
    if not lacking:
        return []
    past = _Past(data)
    return [Reason(stage, past.why(stage, gaps)) for stage, gaps in lacking]


def counted(reasons: Iterable[Reason]) -> dict[str, int]:
    """How many stages each change touches, most first."""
    return dict(Counter(str(change) for reason in reasons for change in reason.changes).most_common())


class _Past:
    """The manifests of a folder, found by what they stand for."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._by_key: dict[str, list[dict[str, Any]]] = {}
        self._by_place: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        self._by_chain: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        self._unrecorded: set[tuple[Any, ...]] = set()
        self._known: dict[str, tuple[Change, ...]] = {}
        for manifest in _manifests(data):
            self._by_key.setdefault(manifest["key"], []).append(manifest)
            facts = manifest.get("facts")
            if facts is None:
                self._unrecorded.add(tuple(manifest.get(name) for name in ("stage", "game", "model_id", "checkpoint")))
            else:
                place = _place(facts)
                self._by_place.setdefault(place, []).append(manifest)
                self._by_chain.setdefault(place[:-1], []).append(manifest)

    def why(self, stage: Stage, gaps: list[tuple[int, int]]) -> tuple[Change, ...]:
        """What a missing stage lacks, or what changed."""
        own = self._by_key.get(stage.key)
        if not own:
            return self._changes(stage)
        failed = next((manifest for manifest in own if manifest["status"] != COMPLETE), None)
        if failed is not None:
            return (Change(f"{FAILED} ({_short(failed.get('first_error') or 'no reason given')})"),)
        if any(storage.read_manifest(self._data, manifest["part"]) is None for manifest in own):
            return (Change(LOST),)
        return (Change("evaluation_episodes", str(gaps[0][0]), str(stage.last)),)

    def _changes(self, stage: Stage) -> tuple[Change, ...]:
        """What differs from the stage that stood in its place, the stages it reads included."""
        if stage.key not in self._known:
            self._known[stage.key] = tuple(dict.fromkeys(self._found(stage)))
        return self._known[stage.key]

    def _found(self, stage: Stage) -> Iterator[Change]:
        place = _place(stage.facts)
        before = [manifest for manifest in self._by_place.get(place, []) if manifest["key"] != stage.key]
        if not before:
            yield self._first_of(stage, place)
            return
        differing = [(manifest, _differences(manifest["facts"], stage.facts)) for manifest in before]
        nearest = min(len(changes) for _, changes in differing)
        old, changes = max(
            ((manifest, changes) for manifest, changes in differing if len(changes) == nearest),
            key=lambda found: str(found[0].get("started_at", "")),
        )
        yield from changes
        if any(old["facts"].get(name) != stage.facts.get(name) for name in _INPUTS):
            for source in (*stage.explored, *([stage.experience] if stage.experience else [])):
                yield from (change for change in self._changes(source) if change.what != NEW)

    def _first_of(self, stage: Stage, place: tuple[Any, ...]) -> Change:
        """What a stage is that nothing stood in the place of."""
        chain = self._by_chain.get(place[:-1], [])
        if chain:
            is_reached = stage.kind == "evaluate"
            reached = max(manifest["checkpoint"] if is_reached else manifest["last_episode"] for manifest in chain)
            asked = stage.checkpoint if is_reached else stage.last
            if asked > reached:
                return Change("exploration_episodes", str(reached), str(asked))
        if (stage.kind, stage.subject.game.id, stage.model.model_id, stage.checkpoint) in self._unrecorded:
            return Change(UNRECORDED)
        return Change(NEW)


def _manifests(data: Path) -> Iterator[dict[str, Any]]:
    """Those of stages; one that is damaged is left for whoever needs it."""
    for path in storage.manifest_path(data, "").parent.glob("[!.]*.json"):
        try:
            manifest = json.loads(path.read_text())
            if "key" in manifest and "stage" in manifest:
                yield manifest
        except (ValueError, OSError, TypeError):
            continue


def _place(facts: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(facts.get(name) for name in _PLACE)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Facts that differ, in words; those that name other stages are left out."""
    before, after = dict(_flat(old)), dict(_flat(new))
    return [
        Change(_word(name, new), _short(before.get(name)), _short(after.get(name)))
        for name in sorted(before.keys() | after.keys())
        if name.partition(".")[0] not in _INPUTS and before.get(name) != after.get(name)
    ]


def _flat(facts: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Facts with the names of nested ones joined by dots; a game's configuration is JSON in text."""
    for name, value in facts.items():
        nested = json.loads(value) if name == "config" and isinstance(value, str) else value
        if isinstance(nested, Mapping):
            yield from _flat(nested, f"{within}{name}.")
        else:
            yield f"{within}{name}", value


def _word(name: str, facts: Mapping[str, Any]) -> str:
    phase = "evaluation" if facts["kind"] == "evaluate" else "exploration"
    if name == "seeds":
        return f"{phase}_seeds"
    first, dot, rest = name.partition(".")
    if first == "config" and dot:
        return f"{phase} configuration: {rest}"
    return _WORDS.get(name, f"{first} {rest}" if dot else name)


def _short(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
