"""Verifies a data folder: replays every stored episode the runs link to, against the installed games."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from s3gym import storage
from s3gym.config import RunConfig
from s3gym.plan import splits_of
from s3gym.protocol.verify import differences
from s3gym.records import Episode, Step
from s3gym.registry import GAMES, load
from s3gym.warehouse import Warehouse

LONGEST_LINKS = """
    select
        l.stage_key, l.stage, l.checkpoint, l.episode_count,
        c.game, c.replicate, c.exploration_config, c.evaluation_config, r.config
    from stg_cell_stages as l
    inner join stg_cells as c on c.run_id = l.run_id and c.cell_id = l.cell_id
    inner join stg_runs as r on r.run_id = l.run_id
    where l.stage in ('explore', 'evaluate')
    qualify row_number() over (partition by l.stage_key order by l.episode_count desc) = 1
"""
"""Each stage as the run sees it that uses most of it."""


class Verdict(NamedTuple):
    """What the replay of one episode found."""

    episode_id: str
    problems: list[str]


def verify_folder(data: Path) -> Iterator[Verdict]:
    """One verdict an episode, in the order of the files."""
    expected = _expected_seeds(data)
    for path in storage.visible_files(data, "episodes"):
        game = load(GAMES, path.parent.name, "game").GAME
        episodes = storage.read_part(data, "episodes", game.id, path.stem)
        steps: dict[str, list[Step]] = {}
        for row in storage.read_part(data, "steps", game.id, path.stem):
            steps.setdefault(row["episode_id"], []).append(Step(**row))
        for row in episodes:
            episode = Episode(**row)
            own = sorted(steps.get(episode.episode_id, []), key=lambda step: step.step_index)
            seeds = expected.get(episode.stage_key)
            seed = seeds[episode.episode_index] if seeds and episode.episode_index < len(seeds) else None
            yield Verdict(episode.episode_id, list(differences(game, episode, own, seed)))


def _expected_seeds(data: Path) -> dict[str, list[int]]:
    """stage_key -> the seeds its run's split gives, by episode index."""
    expected = {}
    for key, stage, checkpoint, count, game_id, replicate, exploration, evaluation, request in (
        Warehouse(data).sql(LONGEST_LINKS).rows()
    ):
        game, splits = load(GAMES, game_id, "game").GAME, splits_of(RunConfig.model_validate_json(request))
        if stage == "explore":
            rules = game.read_config(exploration)
            expected[key] = splits.exploration(game, rules, replicate, checkpoint + count)
        else:
            expected[key] = splits.evaluation(game, game.read_config(evaluation), checkpoint, count)
    return expected
