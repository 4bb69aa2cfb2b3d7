"""Verifies a data folder: replays every stored episode, and compares all that is stored with what it rests on.

The marts too: their main numbers are worked out again from the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from s3gym import recomputed, storage
from s3gym.config import RunConfig
from s3gym.errors import Explained
from s3gym.models.local.weights import digest_of
from s3gym.protocol.judge import parse_judgment
from s3gym.protocol.verify import differences
from s3gym.records import Episode, Step
from s3gym.registry import GAMES, load, names
from s3gym.subjects import config_of, splits_of
from s3gym.warehouse import Warehouse

LONGEST_LINKS = """
    with games as (select stage_key, any_value(game) as game from stg_episodes group by stage_key)

    select
        l.stage_key, l.stage, l.checkpoint, l.episode_count,
        case when l.stage = 'transfer' then games.game else c.game end as game,
        c.replicate, c.exploration_config, c.evaluation_config, r.config
    from stg_cell_stages as l
    inner join stg_cells as c on c.run_id = l.run_id and c.cell_id = l.cell_id
    inner join stg_runs as r on r.run_id = l.run_id
    left join games on games.stage_key = l.stage_key
    where l.stage in ('explore', 'evaluate', 'transfer')
    qualify row_number() over (partition by l.stage_key order by l.episode_count desc) = 1
"""
"""Each stage that plays, as the run sees it that uses most of it."""


class Verdict(NamedTuple):
    """What was found wrong with one episode, judgment, experience or row of a mart."""

    subject: str
    problems: list[str]
    is_replay: bool = False
    """True for an episode that was replayed."""


@dataclass(frozen=True)
class Expected:
    """What a run's request says of a stage's episodes."""

    phase: str
    checkpoint: int
    game: str
    config: str
    seeds: list[int]

    def differences(self, episode: Episode) -> Iterator[str]:
        """What of an episode's row is not as the request says."""
        for name in ("phase", "checkpoint", "game", "config"):
            if getattr(episode, name) != getattr(self, name):
                yield f"{name}: stored {getattr(episode, name)!r}, the run asked for {getattr(self, name)!r}"
        if not 0 <= episode.episode_index < len(self.seeds):
            yield f"episode_index: stored {episode.episode_index}, the run asked for {len(self.seeds)} episodes"
        elif episode.seed != self.seeds[episode.episode_index]:
            yield f"seed: stored {episode.seed}, the split gives {self.seeds[episode.episode_index]}"


def verify_folder(data: Path) -> Iterator[Verdict]:
    """One verdict an episode, and one for everything else that is wrong; in the order of the files."""
    expected = _expected(data)
    for game, part in storage.visible_parts(data, "episodes"):
        yield from _episodes(data, game, part, expected)
    for table in ("judgments", "experiences"):
        for game, part in storage.visible_parts(data, table):
            for row in storage.read_part(data, table, game, part):
                problems = _judgment(row) if table == "judgments" else _experience(data, row)
                if problems:
                    yield Verdict(f"{table} of {row['stage_key'][:12]}", problems)
    for part in storage.parts_of(data, ""):
        manifest = storage.read_manifest(data, part) or {"rows": {}}
        for table, count in manifest["rows"].items():
            found = len(storage.read_part(data, table, manifest["game"], part))
            if found != count:
                yield Verdict(part, [f"{table}: {found} rows stored, the manifest says {count}"])
    for subject, problem in recomputed.differences(data):
        yield Verdict(subject, [problem])


def _episodes(data: Path, game_id: str, part: str, expected: dict[str, Expected]) -> Iterator[Verdict]:
    if game_id not in names(GAMES):
        yield Verdict(part, [f"not replayed: this s3gym has no game {game_id!r}; use the one that played it"])
        return
    game = load(GAMES, game_id, "game").GAME
    steps: dict[str, list[Step]] = {}
    for row in storage.read_part(data, "steps", game_id, part):
        steps.setdefault(row["episode_id"], []).append(Step(**row))
    for row in storage.read_part(data, "episodes", game_id, part):
        episode = Episode(**row)
        own = sorted(steps.pop(episode.episode_id, []), key=lambda step: step.step_index)
        asked = expected.get(episode.stage_key)
        problems = ["stage_key: no run links to this stage"] if asked is None else list(asked.differences(episode))
        problems += [
            f"step {step.step_index}, {name}: stored {getattr(step, name)!r}, its episode {getattr(episode, name)!r}"
            for step in own
            for name in ("stage_key", "game", "phase", "checkpoint")
            if getattr(step, name) != getattr(episode, name)
        ]
        try:
            problems += differences(game, episode, own)
        except (KeyError, TypeError, ValueError) as error:  # a value no play can have
            problems.append(f"cannot be replayed: {type(error).__name__}: {error}")
        yield Verdict(episode.episode_id, problems, is_replay=True)
    for episode_id in steps:
        yield Verdict(episode_id, ["steps are stored, the episode is not"])


def _judgment(row: dict[str, Any]) -> list[str]:
    read = parse_judgment(row["reply"] or "")
    return [
        f"{row['episode_id']}, {name}: stored {row[name]!r}, the reply says {value!r}"
        for name, value in read.items()
        if row[name] != value
    ]


def _experience(data: Path, row: dict[str, Any]) -> list[str]:
    path = row["path"]
    is_there = path is not None and not storage.removal_mark(data / path).exists()  # else let go by ``training.keep``
    if is_there and digest_of(data / path) != row["content_hash"]:
        return [f"{path}: does not have the stored content_hash"]
    if row["text"] is None or sha256(row["text"].encode()).hexdigest() == row["content_hash"]:
        return []
    return [f"checkpoint {row['checkpoint']}, text: does not have the stored content_hash"]


def _expected(data: Path) -> dict[str, Expected]:
    """By stage_key."""
    expected = {}
    for key, stage, checkpoint, count, game_id, replicate, exploration, evaluation, request in (
        Warehouse(data).sql(LONGEST_LINKS).rows()
    ):
        if game_id not in names(GAMES):
            continue  # told where its episodes are
        game = load(GAMES, game_id, "game").GAME
        is_explored = stage == "explore"
        try:
            run = RunConfig.model_validate_json(request)
            config = exploration if is_explored else evaluation
            if stage == "transfer":  # of another game than the cell's
                config = config_of(game, "evaluation", run).to_json()
            splits, rules = splits_of(run), game.read_config(config)
        except (TypeError, ValueError) as error:
            raise Damaged(f"the tables runs or cells are damaged ({error}); restore them, or run again") from None
        seeds = (
            splits.exploration(game, rules, replicate, checkpoint + count)
            if is_explored
            else splits.evaluation(game, rules, checkpoint, count)
        )
        expected[key] = Expected("exploration" if is_explored else "evaluation", checkpoint, game_id, config, seeds)
    return expected


class Damaged(Explained):
    """What a run asked for cannot be read any more, so nothing can be compared with it."""
