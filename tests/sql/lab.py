"""Writes data folders of a few rows: what a cell scored and how its steps went, the least by default."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from s3gym import storage
from s3gym.records import (
    Anchor,
    Cell,
    CellStage,
    Episode,
    Experience,
    Judgment,
    Refresh,
    Run,
    SftRow,
    Step,
    TrainingStep,
)
from s3gym.warehouse import Warehouse


class Turn(NamedTuple):
    """One step; a status of None is a failed call."""

    self_score: float | None
    reward: float | None
    status: str | None = "ok"
    observation: str = ""
    action: str | None = None


Play = float | None | Sequence[Turn]
"""An episode: its final score in one step without a self-score, None when its call failed, or its steps."""

CELL = Cell(
    run_id="",
    cell_id="",
    model_id="m",
    model_revision=None,
    game="snake",
    game_version=1,
    pathway="history",
    intervention="main",
    replicate=0,
    base_seed=0,
    exploration_config="{}",
    evaluation_config="{}",
    exploration_config_id="relaxed",
    evaluation_config_id="strict",
    prompt_version=1,
    temperature=None,
    max_output_tokens=100,
    exploration_episode_count=6,
    evaluation_interval=3,
    evaluation_episode_count=3,
    evaluation_set="fixed",
    history_token_limit=1000,
    history_cut="newest",
    explorer_id=None,
    training=None,
    score_aggregation="sum",
    reward_min=-1.0,
    reward_max=3.0,
    smallest_positive_score=1.0,
    is_instances_shared=False,
)
STEP = Step(
    stage_key="",
    game="snake",
    phase="",
    checkpoint=0,
    episode_id="",
    step_index=0,
    observation="",
    is_terminated=False,
    is_truncated=False,
    history_tokens_dropped=0,
)
EPISODE = Episode(
    stage_key="",
    game="snake",
    phase="",
    checkpoint=0,
    episode_id="",
    episode_index=0,
    seed=0,
    instance_id="",
    config="{}",
    game_version=1,
    final_score=0.0,
    is_success=False,
    step_count=0,
    end_reason="",
    final_observation="",
    status="valid",
)
JUDGMENT = Judgment(
    stage_key="judged",
    game="snake",
    checkpoint=0,
    episode_id="",
    reply="",
    expected_final_score=None,
    success_belief=None,
    retain=None,
    avoid=None,
)
EXPERIENCE = Experience(
    stage_key="",
    game="snake",
    pathway="history",
    checkpoint=3,
    kind="history",
    text=None,
    content_hash="",
    token_count=0,
    source_episode_ids=[],
    steps_kept=0,
    steps_dropped=0,
    tokens_dropped=0,
)
SFT_ROW = SftRow(
    stage_key="",
    game="snake",
    checkpoint=3,
    episode_id="",
    step_index=0,
    self_score=1.0,
    signal=1.0,
    decision="kept",
    reason="top",
    weight=1.0,
    reply=None,
    trained_prompt_tokens=10,
    trained_reply_tokens=5,
)
TRAINING_STEP = TrainingStep(
    stage_key="",
    game="snake",
    checkpoint=3,
    update_step=0,
    epoch=1.0,
    row_count=1,
    token_count=15,
    loss=1.0,
    gradient_norm=1.0,
    learning_rate=0.1,
    seconds=1.0,
    peak_memory_bytes=None,
)

REFRESH = Refresh(
    refresh_id="",
    run_id="",
    started_at=datetime(2026, 2, 1, tzinfo=UTC),
    ended_at=datetime(2026, 2, 1, tzinfo=UTC),
    trigger="manual",
    status="complete",
    versions="{}",
    stages_made=1,
    calls_made=0,
    paid_usd=0.0,
    reasons="{}",
    failure=None,
    verdicts=None,
)


class Lab:
    """A data folder in the making; ``open`` gives the warehouse of what was added."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._asked: dict[str, tuple[list[Cell], list[CellStage]]] = {}
        storage.open_folder(data)

    def add(
        self,
        cell_id: str = "cell",
        curve: Mapping[int, Sequence[Play]] | None = None,
        explored: Mapping[int, Sequence[Play]] | None = None,
        *,
        run: str = "run-1",
        start: str | None = None,
        budget: int | None = None,
        **settings: Any,
    ) -> None:
        """A cell with its evaluations and explorations by checkpoint.

        ``start`` names the stage of checkpoint 0, to share it; ``budget`` is the episodes asked for at a
        checkpoint, by default those given.
        """
        cell = replace(CELL, run_id=run, cell_id=cell_id, **settings)
        cells, links = self._asked.setdefault(run, ([], []))
        cells.append(cell)
        for checkpoint, plays in (curve or {}).items():
            key = start if start and checkpoint == 0 else f"{cell_id}-evaluate-{checkpoint}"
            self.stage(key, "evaluation", checkpoint, plays, cell)
            links.append(_link(run, cell_id, key, "evaluate", checkpoint, budget or len(plays)))
        for checkpoint, plays in (explored or {}).items():
            key = f"{cell_id}-explore-{checkpoint}"
            self.stage(key, "exploration", checkpoint, plays, cell)
            links.append(_link(run, cell_id, key, "explore", checkpoint, len(plays)))

    def train(
        self,
        checkpoint: int,
        rows: Sequence[SftRow] = (),
        updates: Sequence[TrainingStep] = (),
        cell_id: str = "cell",
        run: str = "run-1",
        **experience: Any,
    ) -> None:
        """An update of a cell added before: rows and updates get its key, and updates their numbers in order."""
        key = f"{cell_id}-build-{checkpoint}"
        cell = next(cell for cell in self._asked[run][0] if cell.cell_id == cell_id)
        place: dict[str, Any] = {"stage_key": key, "game": cell.game, "checkpoint": checkpoint}
        trained: dict[str, Any] = {
            "pathway": "training",
            "kind": "weights",
            "path": f"weights/{key}",
            "is_updated": bool(updates),
            "steps_kept": sum(row.decision != "filtered" for row in rows),
            "steps_dropped": sum(row.decision == "filtered" for row in rows),
            "source_episode_ids": sorted({row.episode_id for row in rows}),
        }
        self.part(
            key,
            {
                "experiences": [replace(EXPERIENCE, **place, **(trained | experience))],
                "sft_rows": [replace(row, **place) for row in rows],
                "training_steps": [
                    replace(update, **place, update_step=number) for number, update in enumerate(updates)
                ],
            },
            cell.game,
        )
        self.link("build_experience", key, checkpoint, cell_id, run)

    def transfer(
        self, checkpoint: int, game: str, plays: Sequence[Play], cell_id: str = "cell", run: str = "run-1", **rules: Any
    ) -> None:
        """The evaluation, in another game, of the experience that a cell added before has at a checkpoint.

        ``rules`` are settings of the other game, such as ``score_aggregation``.
        """
        key = f"{cell_id}-transfer-{game}-{checkpoint}"
        self.stage(key, "evaluation", checkpoint, plays, replace(CELL, game=game, **rules))
        self._asked[run][1].append(_link(run, cell_id, key, "transfer", checkpoint, len(plays)))

    def link(self, stage: str, key: str, checkpoint: int, cell_id: str = "cell", run: str = "run-1") -> None:
        """Links a cell to a stage whose rows may be missing."""
        self._asked[run][1].append(_link(run, cell_id, key, stage, checkpoint, 3))

    def stage(self, key: str, phase: str, checkpoint: int, plays: Sequence[Play], cell: Cell = CELL) -> None:
        """The episodes and steps of one stage; seeds follow phase and index, as in a fixed evaluation set."""
        episodes, steps = [], []
        for number, play in enumerate(plays):
            index = number if phase == "evaluation" else checkpoint + number
            turns = _turns(play)
            place: dict[str, Any] = {
                "stage_key": key,
                "phase": phase,
                "checkpoint": checkpoint,
                "episode_id": f"{key}/{index}",
            }
            rewards = [turn.reward for turn in turns if turn.reward is not None]
            is_valid = len(rewards) == len(turns)
            divisor = len(rewards) if cell.score_aggregation == "mean" else 1
            episodes.append(
                replace(
                    EPISODE,
                    **place,
                    game=cell.game,
                    episode_index=index,
                    seed=index + (0 if phase == "evaluation" else 1000),
                    instance_id=f"{phase} {index}",
                    final_score=sum(rewards) / divisor if is_valid else None,
                    is_success=False if is_valid else None,
                    step_count=len(turns),
                    status="valid" if is_valid else "invalid",
                )
            )
            steps += [
                replace(
                    STEP,
                    **place,
                    game=cell.game,
                    step_index=step_index,
                    observation=turn.observation,
                    action=turn.action,
                    self_score=turn.self_score,
                    verifier_reward=turn.reward,
                    action_status=turn.status,
                    error_kind="server" if turn.status is None else None,
                )
                for step_index, turn in enumerate(turns)
            ]
        self.part(key, {"episodes": episodes, "steps": steps}, cell.game)

    def refresh(self, run: str, hour: int, **facts: Any) -> None:
        """A refresh that went through a run."""
        started = datetime(2026, 2, 1, hour, tzinfo=UTC)
        given = {"refresh_id": f"refresh {hour}", "run_id": run, "started_at": started, "ended_at": started}
        storage.write_refresh(self.data, replace(REFRESH, **(given | facts)))

    def part(self, part: str, tables: Mapping[str, Sequence[Any]], game: str = "snake") -> None:
        """Rows as they are."""
        storage.write_part(self.data, part, game, tables, {})

    def anchors(self, random: float, expert: float, config_id: str = "strict") -> None:
        """The two ends of the normalised scale."""
        rows = [
            Anchor(
                game="snake",
                config_id=config_id,
                phase="evaluation",
                player=player,
                mean=mean,
                standard_deviation=0.0,
                standard_error=0.0,
                episode_count=0,
                game_version=1,
            )
            for player, mean in (("random", random), ("expert", expert))
        ]
        self.part(f"anchors-{config_id}", {"anchors": rows})

    def open(self, run_id: str | None = None, *, materialize: bool = False) -> Warehouse:
        """The warehouse; runs count as requested in the order of their first cell."""
        for hour, (run, (cells, links)) in enumerate(self._asked.items()):
            requested = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
            asked = Run(run_id=run, requested_at=requested, scale="smoke", config="{}", package_version="0")
            storage.write_request(self.data, asked, cells, links)
        return Warehouse(self.data, run_id, materialize=materialize)


def _link(run: str, cell_id: str, key: str, stage: str, checkpoint: int, episode_count: int) -> CellStage:
    return CellStage(
        run_id=run,
        cell_id=cell_id,
        stage_key=key,
        stage=stage,
        checkpoint=checkpoint,
        episode_count=episode_count,
    )


def _turns(play: Play) -> Sequence[Turn]:
    if play is None:
        return [Turn(None, None, None)]
    return [Turn(None, play)] if isinstance(play, int | float) else play


def row(warehouse: Warehouse, view: str, where: str = "true") -> dict[str, Any]:
    """The one row of ``view`` that fits."""
    rows = warehouse.sql(f"select * from {view} where {where}").to_dicts()
    assert len(rows) == 1, rows
    return rows[0]
