"""Makes a data folder as large as the published study: 98 cells and some 120,000 steps, whole columns at a time.

Words, boards and numbers are drawn, so that they compress about as badly as a model's do. Among the texts are some
that a page must not trip over: markup that ends a script, ANSI codes, ids with every odd character.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s3gym import storage
from s3gym.records import Cell, CellStage, Run

MODELS = ("openai/gpt-4.1", "gemini/2.5 pro", "ollama/é=7", "007", "7", "deepseek/r1", "hosted_vllm/qwen3-8b")
GAMES = ("trust", "snake", "minesweeper", "tetris", "latent_chess", "nullify", "pvz")
PATHWAYS = ("history", "memory")
THINKERS = ("deepseek/r1", "hosted_vllm/qwen3-8b")
STEPS = 20
EXPLORED = 30
INTERVAL = 3
EVALUATED = 3
TOP = 2.0
"""Declared highest reward of a step; the lowest is 0."""
HOSTILE = "</script><script>window.hacked = true</script><!-- <img src=x onerror='window.hacked = true'>"
COLOURED = "\x1b[31mred\x1b[0m \u2028 \x07 & done"
SENTENCES = 3_000
BOARDS = 3_000
FACTS = {"game_version": 1, "config": "{}", "status": "valid", "end_reason": "horizon", "final_observation": "The end."}


def make(data: Path) -> None:
    """Writes the run."""
    storage.open_folder(data)
    rng = np.random.default_rng(20_260_831)
    texts = _Texts(rng)
    cells: list[Cell] = []
    links: list[CellStage] = []
    for game in GAMES:
        for model in MODELS:
            start = f"evaluate-{len(cells)}-start"
            _write_plays(data, texts, rng, model, game, [(start, "evaluation", 0, range(EVALUATED))])
            for pathway in PATHWAYS:
                cell = _cell(model, game, pathway)
                stages = _stages(f"{len(cells)}-{pathway}")
                _write_plays(data, texts, rng, model, game, stages)
                cells.append(cell)
                links.append(_link(cell, start, "evaluate", 0, EVALUATED))
                links += [
                    _link(cell, key, "explore" if phase == "exploration" else "evaluate", checkpoint, len(indices))
                    for key, phase, checkpoint, indices in stages
                ]
                links += _write_experience(data, texts, rng, cell, stages)
    run = Run(
        run_id="paper",
        requested_at=datetime(2026, 11, 30, 12, tzinfo=UTC),
        scale="paper",
        config="{}",
        package_version="0.1.0",
    )
    storage.write_request(data, run, cells, links)


def _cell(model: str, game: str, pathway: str) -> Cell:
    return Cell(
        run_id="paper",
        cell_id=f"{game}/{model}/{pathway}",
        model_id=model,
        model_revision=None,
        game=game,
        game_version=1,
        pathway=pathway,
        intervention="main",
        replicate=0,
        base_seed=0,
        exploration_config="{}",
        evaluation_config="{}",
        exploration_config_id=f"{game}-exploration",
        evaluation_config_id=f"{game}-evaluation",
        prompt_version=1,
        temperature=None,
        max_output_tokens=1024,
        exploration_episode_count=EXPLORED,
        evaluation_interval=INTERVAL,
        evaluation_episode_count=EVALUATED,
        evaluation_set="fixed",
        history_token_limit=100_000,
        history_cut="newest",
        explorer_id=None,
        training=None,
        score_aggregation="sum",
        reward_min=0.0,
        reward_max=TOP,
        smallest_positive_score=1.0,
        is_instances_shared=False,
    )


def _link(cell: Cell, key: str, stage: str, checkpoint: int, count: int) -> CellStage:
    return CellStage(
        run_id="paper",
        cell_id=cell.cell_id,
        stage_key=key,
        stage=stage,
        checkpoint=checkpoint,
        episode_count=count,
    )


def _stages(stem: str) -> list[tuple[str, str, int, range]]:
    """Key, phase, checkpoint and episode indices of what a cell plays."""
    blocks = range(0, EXPLORED, INTERVAL)
    explored = [(f"explore-{stem}-{at}", "exploration", at, range(at, at + INTERVAL)) for at in blocks]
    evaluated = [(f"evaluate-{stem}-{at + INTERVAL}", "evaluation", at + INTERVAL, range(EVALUATED)) for at in blocks]
    return explored + evaluated


class _Texts:
    """Replies, boards and thoughts, a column at a time."""

    def __init__(self, rng: np.random.Generator) -> None:
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        words = ["".join(rng.choice(letters, size)) for size in rng.integers(2, 10, 1_500)]
        lengths = rng.integers(6, 18, SENTENCES)
        drawn = iter(rng.integers(0, len(words), int(lengths.sum())).tolist())
        sentences = [" ".join(words[next(drawn)] for _ in range(size)) + ". " for size in lengths]
        sentences[0] = HOSTILE
        sentences[1] = COLOURED
        boards = rng.choice(np.array(list("....#@*")), (BOARDS, 10, 10))
        self._sentences = pa.array(sentences)
        self._boards = pa.array(["\n".join(" ".join(row) for row in board) for board in boards])
        self._rng = rng

    def said(self, count: int, sentences: int) -> pa.Array:
        """Paragraphs of so many sentences."""
        picks = self._rng.integers(0, SENTENCES, (sentences, count))
        return pc.binary_join_element_wise(*(self._sentences.take(pa.array(pick)) for pick in picks), "")

    def seen(self, count: int) -> pa.Array:
        """Boards of 10 x 10."""
        return self._boards.take(pa.array(self._rng.integers(0, BOARDS, count)))


def _write_plays(
    data: Path,
    texts: _Texts,
    rng: np.random.Generator,
    model: str,
    game: str,
    stages: list[tuple[str, str, int, range]],
) -> None:
    """Plays all episodes of the stages at once, and writes a part a stage."""
    episodes = [(*stage[:3], index) for stage in stages for index in stage[3]]
    count = len(episodes) * STEPS
    rewards = np.round(rng.choice([0.0, 0.25, 1.0, TOP], count, p=[0.5, 0.25, 0.2, 0.05]) + 0.0, 2)
    guesses = np.round(np.clip(rewards + rng.choice([0.0, 0.25, -0.5, 1.0], count, p=[0.6, 0.2, 0.1, 0.1]), 0, TOP), 2)
    unscored = rng.random(count) < 0.05
    statuses = rng.choice(["ok", "repaired", "illegal"], count, p=[0.92, 0.05, 0.03])
    moves = pa.array([f"{a}{b} {c}" for a, b, c in zip("nsew" * 3, "abcdefghijkl", "up down left " * 4, strict=False)])
    actions = moves.take(pa.array(rng.integers(0, len(moves), count)))
    scores = pc.cast(pa.array(guesses), pa.string())
    answers = pc.binary_join_element_wise("\n\nAnswer: ", actions, ", Score: ", scores, "")
    steps = {
        **_places(episodes, game, repeats=STEPS),
        "step_index": np.tile(np.arange(STEPS), len(episodes)),
        "observation": texts.seen(count),
        "reply": pc.binary_join_element_wise(texts.said(count, 6), answers, ""),
        "reasoning": texts.said(count, 16) if model in THINKERS else None,
        "action": pc.if_else(pa.array(statuses == "illegal"), None, actions),
        "action_status": pa.array(statuses.tolist()),
        "self_score": pa.array(guesses, mask=unscored),
        "feedback": pc.if_else(pa.array(statuses == "illegal"), "That move is not legal.", "The move was made."),
        "verifier_reward": rewards,
        "is_terminated": np.zeros(count, bool),
        "is_truncated": np.tile(np.arange(STEPS) == STEPS - 1, len(episodes)),
        "history_tokens_dropped": np.zeros(count, int),
        "prompt_tokens": rng.integers(500, 4_000, count),
        "completion_tokens": rng.integers(80, 200, count),
    }
    finals = np.round(rewards.reshape(-1, STEPS).sum(axis=1), 2)
    indices = np.array([index for *_, index in episodes])
    played = {
        **_places(episodes, game, repeats=1),
        "episode_index": indices,
        "seed": 1_000 + indices,
        "instance_id": pa.array([f"{game}-{phase}-{index}" for _, phase, _, index in episodes]),
        "final_score": finals,
        "is_success": finals > STEPS * TOP / 4,
        "step_count": np.full(len(episodes), STEPS),
        **{name: pa.array([value] * len(episodes)) for name, value in FACTS.items()},
    }
    tables = {"steps": _table("steps", steps), "episodes": _table("episodes", played)}
    at = 0
    for key, _, _, own in stages:
        parts = {
            "steps": tables["steps"].slice(at * STEPS, len(own) * STEPS),
            "episodes": tables["episodes"].slice(at, len(own)),
        }
        _write(data, key, game, parts)
        at += len(own)


def _places(episodes: list[tuple[str, str, int, int]], game: str, repeats: int) -> dict[str, Any]:
    """The columns that say which episode a row is of."""
    where = np.repeat(np.arange(len(episodes)), repeats)
    columns = {
        "stage_key": [key for key, *_ in episodes],
        "phase": [phase for _, phase, _, _ in episodes],
        "checkpoint": [checkpoint for _, _, checkpoint, _ in episodes],
        "episode_id": [f"{game}:{key}:é=& %#/{index}" for key, _, _, index in episodes],
        "game": [game] * len(episodes),
    }
    return {name: pa.array(values).take(pa.array(where)) for name, values in columns.items()}


def _write_experience(
    data: Path, texts: _Texts, rng: np.random.Generator, cell: Cell, stages: list[tuple[str, str, int, range]]
) -> list[CellStage]:
    links = []
    for explored, phase, checkpoint, own in stages:
        if phase != "exploration":
            continue
        after = checkpoint + len(own)
        judged, built = f"self_judge{explored}", f"build_experience{explored}"
        judgments = {
            "stage_key": [judged] * len(own),
            "game": [cell.game] * len(own),
            "checkpoint": [checkpoint] * len(own),
            "episode_id": [f"{cell.game}:{explored}:é=& %#/{index}" for index in own],
            "reply": texts.said(len(own), 3),
            "expected_final_score": np.round(rng.uniform(0, STEPS * TOP, len(own)), 1),
            "success_belief": np.round(rng.uniform(0, 1, len(own)), 2),
            "retain": texts.said(len(own), 2),
            "avoid": texts.said(len(own), 2),
        }
        experience = {
            "stage_key": [built],
            "game": [cell.game],
            "pathway": [cell.pathway],
            "checkpoint": [after],
            "kind": [cell.pathway],
            "text": texts.said(1, 25) if cell.pathway == "memory" else None,
            "content_hash": [f"{cell.cell_id}-{after}"],
            "token_count": [40 * after],
            "source_episode_ids": pa.array([[]], pa.list_(pa.string())),
            "steps_kept": [STEPS * after],
            "steps_dropped": [0],
            "tokens_dropped": [0],
        }
        _write(data, judged, cell.game, {"judgments": _table("judgments", judgments)})
        _write(data, built, cell.game, {"experiences": _table("experiences", experience)})
        links += [
            _link(cell, judged, "self_judge", checkpoint, len(own)),
            _link(cell, built, "build_experience", after, 0),
        ]
    return links


def _table(name: str, columns: dict[str, Any]) -> pa.Table:
    """Columns in the schema of a table; those that are not given are null."""
    count = len(columns["stage_key"])
    arrays = []
    for field in storage.schema(name):
        given = columns.get(field.name)
        array = pa.nulls(count, field.type) if given is None else pa.array(given)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=storage.schema(name))


def _write(data: Path, key: str, game: str, tables: dict[str, pa.Table]) -> None:
    for name, content in tables.items():
        folder = data / "tables" / name / game
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(content, folder / f"{key}.parquet", compression="zstd")
    rows = {name: content.num_rows for name, content in tables.items()}
    manifest = {"part": key, "game": game, "key": key, "rows": rows, "status": "complete"}
    storage.write_text(storage.manifest_path(data, key), json.dumps(manifest))
