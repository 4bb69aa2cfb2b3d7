"""Verifies a data folder: replays every stored episode the runs link to, against the installed games."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from s3gym import storage
from s3gym.config import RunConfig
from s3gym.plan import GAMES
from s3gym.protocol.splits import Splits
from s3gym.protocol.verify import differences
from s3gym.records import Episode, Step
from s3gym.registry import load


class Verdict(NamedTuple):
    """What the replay of one episode found."""

    episode_id: str
    problems: list[str]


def verify_folder(data: Path) -> Iterator[Verdict]:
    """One verdict an episode, in the order of the files."""
    storage.check_version(data)
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
    cells = {(row["run_id"], row["cell_id"]): row for row in _rows(data, "cells")}
    configs = {row["run_id"]: RunConfig.model_validate(json.loads(row["config"])) for row in _rows(data, "runs")}
    longest: dict[str, dict[str, Any]] = {}
    for link in _rows(data, "cell_stages"):
        if link["stage"] in ("explore", "evaluate"):
            known = longest.get(link["stage_key"])
            if known is None or link["episode_count"] > known["episode_count"]:
                longest[link["stage_key"]] = link
    expected = {}
    for key, link in longest.items():
        cell, config = cells[link["run_id"], link["cell_id"]], configs[link["run_id"]]
        game = load(GAMES, cell["game"], "game").GAME
        splits = Splits(
            base_seed=config.seed,
            exploration_range=config.exploration_seeds,
            evaluation_range=config.evaluation_seeds,
            evaluation_set=config.evaluation_set,
        )
        if link["stage"] == "explore":
            rules = game.read_config(cell["exploration_config"])
            stop = link["checkpoint"] + link["episode_count"]
            expected[key] = splits.exploration(game, rules, cell["replicate"], stop)
        else:
            rules = game.read_config(cell["evaluation_config"])
            expected[key] = splits.evaluation(game, rules, link["checkpoint"], link["episode_count"])
    return expected


def _rows(data: Path, table: str) -> list[dict[str, Any]]:
    files = storage.visible_files(data, table)
    tables = [pq.read_table(file, schema=storage.schema(table)) for file in files]
    rows: list[dict[str, Any]] = pa.concat_tables(tables).to_pylist() if tables else []
    return rows
