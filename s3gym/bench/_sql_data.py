"""The data folder that ``bench sql`` reads: as many steps as asked for, drawn column by column from a seed.

Models x games x pathways x replicates at the checkpoints of the published protocol, a file a stage, as a run writes
them; what grows with the number of steps is the number of episodes of each stage. Texts are drawn from a few, because
no mart reads them; scores and rewards have the few values that agents and games give. Nothing is trained.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from s3gym import storage
from s3gym.plan import COMPLETE
from s3gym.records import Cell, CellStage, Run
from s3gym.registry import GAMES, names

PATHWAYS = ("none", "history", "memory")
INTERVAL, CHECKPOINTS = 3, 11
EPISODE_STEPS = 40
"""Steps of an episode, on average."""
MOST_MODELS = 6
STEPS_A_MODEL = 1_000_000
REPLICATES = 2
RUN = "bench"

Rng = np.random.Generator
Columns = dict[str, Any]


class Shape(NamedTuple):
    """What a data set of so many steps is made of."""

    model_count: int
    episode_count: int
    """Of a stage."""
    step_count: int
    """Of an episode, on average."""


def shape_of(steps: int) -> Shape:
    """A model a million steps, at most ``MOST_MODELS``; then as many episodes as are needed."""
    models = min(MOST_MODELS, max(1, steps // STEPS_A_MODEL))
    # a start, and at each later checkpoint an evaluation of each pathway and the exploration of all but one
    stages = models * len(names(GAMES)) * REPLICATES * (1 + (CHECKPOINTS - 1) * (2 * len(PATHWAYS) - 1))
    episodes = max(1, round(steps / stages / EPISODE_STEPS))
    return Shape(models, episodes, max(1, round(steps / stages / episodes)))


def make(data: Path, steps: int) -> int:
    """Writes about so many steps and all that belongs to them; how many there are."""
    storage.open_folder(data)
    shape, rng = shape_of(steps), np.random.default_rng(0)
    cells: list[Cell] = []
    links: list[CellStage] = []
    count = 0
    for model in range(shape.model_count):
        for game in names(GAMES):
            for replicate in range(REPLICATES):
                start = f"evaluate-{model}-{game}-{replicate}-start"
                count += _play(data, start, game, "evaluation", 0, shape, rng)
                for pathway in PATHWAYS:
                    cell = _cell(f"model-{model}", game, pathway, replicate, shape)
                    cells.append(cell)
                    links.append(_link(cell, start, "evaluate", 0))
                    for stage, key, checkpoint in _stages(cell):
                        links.append(_link(cell, key, stage, checkpoint))
                        count += _write(data, stage, key, cell, checkpoint, shape, rng)
    run = Run(
        run_id=RUN, requested_at=datetime(2026, 1, 1, tzinfo=UTC), scale="paper", config="{}", package_version="0"
    )
    storage.write_request(data, run, cells, links)
    return count


def _stages(cell: Cell) -> Iterator[tuple[str, str, int]]:
    """(stage, key, checkpoint) of all after the start."""
    for checkpoint in range(0, (CHECKPOINTS - 1) * INTERVAL, INTERVAL):
        later = checkpoint + INTERVAL
        if cell.pathway != "none":
            yield "explore", f"explore-{cell.cell_id}-{checkpoint}", checkpoint
            yield "self_judge", f"self_judge-{cell.cell_id}-{checkpoint}", checkpoint
            yield "build_experience", f"build_experience-{cell.cell_id}-{later}", later
        yield "evaluate", f"evaluate-{cell.cell_id}-{later}", later


def _write(data: Path, stage: str, key: str, cell: Cell, checkpoint: int, shape: Shape, rng: Rng) -> int:
    if stage == "explore":
        return _play(data, key, cell.game, "exploration", checkpoint, shape, rng)
    if stage == "evaluate":
        return _play(data, key, cell.game, "evaluation", checkpoint, shape, rng)
    if stage == "self_judge":
        explored = f"explore-{cell.cell_id}-{checkpoint}"
        beliefs: Columns = {
            "episode_id": [f"{explored}/{index}" for index in range(shape.episode_count)],
            "reply": _texts(rng, 400, shape.episode_count),
            "expected_final_score": rng.integers(0, 20, shape.episode_count).astype(np.float64),
            "success_belief": rng.integers(0, 11, shape.episode_count) / 10,
            **_calls(rng, shape.episode_count),
        }
        _part(data, key, cell.game, checkpoint, {"judgments": (shape.episode_count, beliefs)})
        return 0
    built: Columns = {
        "pathway": cell.pathway,
        "kind": cell.pathway,
        "text": "Go on as before." if cell.pathway == "memory" else None,
        "content_hash": key,
        "token_count": 100 * checkpoint,
        "source_episode_ids": [[]],
        "steps_kept": checkpoint,
        "steps_dropped": 0,
        "tokens_dropped": 0,
        **(_calls(rng, 1) if cell.pathway == "memory" else {}),
    }
    _part(data, key, cell.game, checkpoint, {"experiences": (1, built)})
    return 0


def _play(data: Path, key: str, game: str, phase: str, checkpoint: int, shape: Shape, rng: Rng) -> int:
    """Writes the episodes of a stage with their steps; how many of these there are."""
    lengths = rng.integers(1, 2 * shape.step_count, shape.episode_count)
    episode = np.repeat(np.arange(shape.episode_count), lengths)
    ends = np.cumsum(lengths)
    count = int(ends[-1])
    ids = pa.array([f"{key}/{index}" for index in range(shape.episode_count)])
    reward = rng.integers(-1, 4, count) / 2 * (rng.random(count) < 0.6)
    guess = np.round(reward + rng.normal(0, 0.6, count) * (rng.random(count) < 0.5), 1)
    scores = np.add.reduceat(reward, ends - lengths)
    block = checkpoint // INTERVAL if phase == "exploration" else 0
    index = np.arange(shape.episode_count) + block * shape.episode_count
    steps: Columns = {
        "phase": phase,
        "episode_id": ids.take(pa.array(episode)),
        "step_index": np.arange(count) - (ends - lengths)[episode],
        "observation": _texts(rng, 300, count),
        "reply": _texts(rng, 200, count),
        "action": _texts(rng, 6, count),
        "action_status": _drawn(rng, ("ok", "repaired", "unparsable", "illegal"), (0.9, 0.05, 0.02, 0.03), count),
        "self_score": pa.array(guess, mask=rng.random(count) < 0.05),
        "feedback": _texts(rng, 20, count),
        "verifier_reward": reward,
        "is_terminated": np.isin(np.arange(count), ends - 1),
        "is_truncated": False,
        "history_tokens_dropped": 0,
        **_calls(rng, count),
    }
    episodes: Columns = {
        "phase": phase,
        "episode_id": ids,
        "episode_index": index,
        "seed": index + (10_000_000 if phase == "exploration" else 0),
        "instance_id": [f"{phase}-{number}" for number in index.tolist()],
        "config": "{}",
        "game_version": 1,
        "final_score": scores,
        "is_success": scores > 6,
        "step_count": lengths,
        "end_reason": "over",
        "final_observation": "over",
        "status": "valid",
    }
    _part(data, key, game, checkpoint, {"episodes": (shape.episode_count, episodes), "steps": (count, steps)})
    return count


def _part(data: Path, key: str, game: str, checkpoint: int, tables: dict[str, tuple[int, Columns]]) -> None:
    shared = {"stage_key": key, "game": game, "checkpoint": checkpoint}
    filled = {table: _table(table, count, shared | columns) for table, (count, columns) in tables.items()}
    storage.write_part(data, key, game, filled, {"status": COMPLETE})


def _table(table: str, count: int, columns: Columns) -> pa.Table:
    """Single values fill their column, and what is not given is null."""
    arrays = []
    for field in storage.schema(table):
        value = columns.get(field.name)
        is_single = value is None or isinstance(value, str | int)
        arrays.append(pa.repeat(pa.scalar(value, field.type), count) if is_single else pa.array(value, field.type))
    return pa.Table.from_arrays(arrays, schema=storage.schema(table))


def _calls(rng: Rng, count: int) -> Columns:
    return {
        "prompt_tokens": rng.integers(500, 5_000, count),
        "cached_tokens": rng.integers(0, 500, count),
        "completion_tokens": rng.integers(20, 300, count),
        "cost_usd": rng.integers(1, 100, count) / 10_000,
        "latency_seconds": rng.integers(5, 100, count) / 10,
        "finish_reason": "stop",
        "failed_attempts": 0,
    }


def _texts(rng: Rng, length: int, count: int) -> pa.Array:
    some = pa.array([f"{number} ".ljust(length, ".") for number in range(50)])
    return some.take(pa.array(rng.integers(0, len(some), count)))


def _drawn(rng: Rng, values: tuple[str, ...], shares: tuple[float, ...], count: int) -> pa.Array:
    places: NDArray[np.int64] = rng.choice(len(values), count, p=shares)
    return pa.array(values).take(pa.array(places))


def _cell(model: str, game: str, pathway: str, replicate: int, shape: Shape) -> Cell:
    return Cell(
        run_id=RUN,
        cell_id=f"{game}-{model}-{pathway}-r{replicate}",
        model_id=model,
        model_revision=None,
        game=game,
        game_version=1,
        pathway=pathway,
        intervention="main",
        replicate=replicate,
        base_seed=0,
        exploration_config="{}",
        evaluation_config="{}",
        exploration_config_id=f"{game}-relaxed",
        evaluation_config_id=f"{game}-strict",
        prompt_version=1,
        temperature=None,
        max_output_tokens=1_000,
        exploration_episode_count=0 if pathway == "none" else (CHECKPOINTS - 1) * INTERVAL,
        evaluation_interval=INTERVAL,
        evaluation_episode_count=shape.episode_count,
        evaluation_set="fixed",
        history_token_limit=100_000,
        history_cut="newest",
        explorer_id=None,
        training=None,
        score_aggregation="sum",
        reward_min=-0.5,
        reward_max=1.5,
        smallest_positive_score=0.5,
        is_instances_shared=False,
    )


def _link(cell: Cell, key: str, stage: str, checkpoint: int) -> CellStage:
    count = INTERVAL if stage in ("self_judge", "build_experience") else cell.evaluation_episode_count
    return CellStage(
        run_id=RUN, cell_id=cell.cell_id, stage_key=key, stage=stage, checkpoint=checkpoint, episode_count=count
    )
