"""Makes a small data folder as a run would leave it, from a seed; its numbers are drawn, none is stated."""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from s3gym import storage
from s3gym.records import (
    Anchor,
    Cell,
    CellStage,
    Episode,
    Experience,
    Judgment,
    Run,
    SftRow,
    Step,
    TrainingStep,
)

HOSTILE = "</script><img src=x onerror=\"window.hacked = true\"><!-- \u2028 & 'quoted' -->"
INTERVAL = 2
STEPS = 3
TOP = {"trust": 30.0, "latent_chess": 1.0, "snake": 12.0, "minesweeper": 6.0}
"""Expert's mean score of each game that can be asked for; random's is a third of it."""
TALENT = {"none": 0.0, "history": 0.28, "memory": 0.14, "training": 0.3}


def make(
    data: Path,
    models: Sequence[str] = ("openai/gpt-4.1", "player:myopic"),
    games: Sequence[str] = ("trust",),
    pathways: Sequence[str] = ("none", "history", "memory"),
    cycles: int = 2,
    episodes: int = 4,
    reply: str = HOSTILE,
) -> None:
    """Writes one run of every (model, game, pathway) with ``cycles`` checkpoints after the first.

    What is trained in a game is tried in the others at the end.
    """
    storage.open_folder(data)
    cells: list[Cell] = []
    links: list[CellStage] = []
    for game in games:
        storage.write_part(data, f"anchors-{game}", game, {"anchors": _anchors(game)}, {})
        for model in models:
            start = f"evaluate-{_slug(model)}-{game}-0"
            _write(data, start, game, _evaluation(start, model, game, "none", 0, episodes, cycles, reply))
            for pathway in pathways:
                cell = one_cell(model, game, pathway, cycles, episodes)
                cells.append(cell)
                links.append(_link(cell, start, "evaluate", 0, episodes))
                links += _cycles(data, cell, cycles, episodes, reply)
                if pathway == "training":
                    links += _transfers(data, cell, games, cycles, episodes, reply)
    run = Run(
        run_id="run-1",
        requested_at=datetime(2026, 11, 30, 12, tzinfo=UTC),
        scale="smoke",
        config="{}",
        package_version="0.1.0",
    )
    storage.write_request(data, run, cells, links)


def _cycles(data: Path, cell: Cell, cycles: int, episodes: int, reply: str) -> list[CellStage]:
    links = []
    for cycle in range(cycles):
        after = (cycle + 1) * INTERVAL
        if cell.pathway != "none":
            explored = _write(data, f"explore-{cell.cell_id}-{cycle}", cell.game, _exploration(cell, cycle, reply))
            judged = _write(data, f"self_judge-{cell.cell_id}-{cycle}", cell.game, _judgments(cell, cycle))
            built = _write(data, f"build_experience-{cell.cell_id}-{cycle}", cell.game, _built(cell, after, reply))
            links += [
                _link(cell, explored, "explore", cycle * INTERVAL, INTERVAL),
                _link(cell, judged, "self_judge", cycle * INTERVAL, INTERVAL),
                _link(cell, built, "build_experience", after, 0),
            ]
        key = f"evaluate-{cell.cell_id}-{after}"
        rows = _evaluation(key, cell.model_id, cell.game, cell.pathway, after, episodes, cycles, reply)
        _write(data, key, cell.game, rows)
        links.append(_link(cell, key, "evaluate", after, episodes))
    return links


def _transfers(data: Path, cell: Cell, games: Sequence[str], cycles: int, episodes: int, reply: str) -> list[CellStage]:
    links = []
    after = cycles * INTERVAL
    for game in games:
        if game != cell.game:
            key = f"transfer-{cell.cell_id}-{game}-{after}"
            rows = _evaluation(key, cell.model_id, game, cell.pathway, after, episodes, cycles, reply)
            _write(data, key, game, rows)
            start = f"evaluate-{_slug(cell.model_id)}-{game}-0"
            links += [_link(cell, start, "transfer", 0, episodes), _link(cell, key, "transfer", after, episodes)]
    return links


def _write(data: Path, key: str, game: str, tables: dict[str, list[Any]]) -> str:
    storage.write_part(data, key, game, tables, {"key": key})
    return key


def _link(cell: Cell, key: str, stage: str, checkpoint: int, count: int) -> CellStage:
    return CellStage(
        run_id="run-1",
        cell_id=cell.cell_id,
        stage_key=key,
        stage=stage,
        checkpoint=checkpoint,
        episode_count=count,
    )


def one_cell(model: str, game: str, pathway: str, cycles: int = 2, episodes: int = 4) -> Cell:
    """One cell of the run."""
    return Cell(
        run_id="run-1",
        cell_id=f"{_slug(model)}-{game}-{pathway}",
        model_id=model,
        model_revision=None,
        game=game,
        game_version=1,
        pathway=pathway,
        intervention="main",
        replicate=0,
        base_seed=1,
        exploration_config="{}",
        evaluation_config="{}",
        exploration_config_id=f"{game}-exploration",
        evaluation_config_id=f"{game}-evaluation",
        prompt_version=1,
        temperature=None,
        max_output_tokens=1024,
        exploration_episode_count=0 if pathway == "none" else cycles * INTERVAL,
        evaluation_interval=INTERVAL,
        evaluation_episode_count=episodes,
        evaluation_set="fixed",
        history_token_limit=100_000,
        history_cut="newest",
        explorer_id=None,
        training="{}" if pathway == "training" else None,
        score_aggregation="sum",
        reward_min=-TOP[game] / STEPS,
        reward_max=TOP[game] / STEPS,
        smallest_positive_score=1.0,
        is_instances_shared=game == "trust",
    )


def _evaluation(
    key: str, model: str, game: str, pathway: str, checkpoint: int, episodes: int, cycles: int, reply: str
) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"episodes": [], "steps": []}
    share = checkpoint / (cycles * INTERVAL)
    bent = random.Random(f"{model}/{game}/{pathway}").uniform(-0.5, 1.2)
    skill = 0.4 + TALENT[pathway] * bent * share**0.5
    for index in range(episodes):
        _play(rows, key, game, "evaluation", checkpoint, index, skill, reply)
    return rows


def _exploration(cell: Cell, cycle: int, reply: str) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"episodes": [], "steps": []}
    for index in range(cycle * INTERVAL, (cycle + 1) * INTERVAL):
        _play(
            rows,
            f"explore-{cell.cell_id}-{cycle}",
            cell.game,
            "exploration",
            cycle * INTERVAL,
            index,
            0.4,
            reply,
        )
    return rows


def _play(
    rows: dict[str, list[Any]],
    key: str,
    game: str,
    phase: str,
    checkpoint: int,
    index: int,
    skill: float,
    reply: str,
) -> None:
    rng = random.Random(f"{key}/{index}")
    skill += random.Random(f"{game}/{phase}/{index}").gauss(0, 0.15)
    identity = f"{key}/{index}"
    failed = phase == "evaluation" and rng.random() < 0.004
    total = 0.0
    for step in range(STEPS):
        reward = round(TOP[game] / STEPS * min(1.0, max(-1.0, skill + rng.gauss(0, 0.35))), 2)
        total += reward
        last = step == STEPS - 1
        status = rng.choices(["ok", "repaired", "illegal", "unparsable"], [90, 5, 3, 2])[0]
        guess = (
            None
            if rng.random() < 0.1
            else round(reward + TOP[game] / STEPS * rng.choice([0.0, 0.0, 0.5, 1.0, -0.5]), 2)
        )
        call: dict[str, Any] = (
            {"error_kind": "timeout", "error_message": "no answer within 60 s"}
            if failed and last
            else {
                "reply": f"The last move paid, so I repeat it.\n\nAnswer: move {step}, Score: {guess}{reply}",
                "action": f"move {step}" if status in ("ok", "repaired") else None,
                "action_status": status,
                "self_score": guess,
                "verifier_reward": reward,
                "feedback": "The move was made." if status in ("ok", "repaired") else "The answer could not be read.",
                "prompt_tokens": 812 + 60 * step,
                "completion_tokens": 42,
                **({} if "player-" in key else {"cost_usd": 0.002, "failed_attempts": 0}),
            }
        )
        rows["steps"].append(
            Step(
                stage_key=key,
                game=game,
                phase=phase,
                checkpoint=checkpoint,
                episode_id=identity,
                step_index=step,
                observation=f"Round {step + 1} of {STEPS}\n. . . .\n. @ . *\n. . . .",
                is_terminated=last,
                is_truncated=False,
                history_tokens_dropped=0,
                **call,
            )
        )
    rows["episodes"].append(
        Episode(
            stage_key=key,
            game=game,
            phase=phase,
            checkpoint=checkpoint,
            episode_id=identity,
            episode_index=index,
            seed=(1000 if phase == "exploration" else 2000) + index,
            instance_id=f"{game}-{phase}-{index}",
            config="{}",
            game_version=1,
            final_score=None if failed else round(total, 2),
            is_success=None if failed else total > TOP[game] / 2,
            step_count=STEPS,
            end_reason="timeout" if failed else "rounds played",
            final_observation="All rounds played",
            status="invalid" if failed else "valid",
        )
    )


def _judgments(cell: Cell, cycle: int) -> dict[str, list[Any]]:
    rows = [
        Judgment(
            stage_key=f"self_judge-{cell.cell_id}-{cycle}",
            game=cell.game,
            checkpoint=cycle * INTERVAL,
            episode_id=f"explore-{cell.cell_id}-{cycle}/{index}",
            reply="Score: 12",
            expected_final_score=12.0,
            success_belief=0.5,
            retain="Open kindly and look at what the other one does.",
            avoid="Repeating a move that was refused.",
        )
        for index in range(cycle * INTERVAL, (cycle + 1) * INTERVAL)
    ]
    return {"judgments": rows}


def _built(cell: Cell, checkpoint: int, reply: str) -> dict[str, list[Any]]:
    if cell.pathway == "training":
        return _trained(cell, checkpoint)
    is_memory = cell.pathway == "memory"
    row = Experience(
        stage_key=f"build_experience-{cell.cell_id}-{checkpoint // INTERVAL - 1}",
        game=cell.game,
        pathway=cell.pathway,
        checkpoint=checkpoint,
        kind="memory" if is_memory else "history",
        text=f"Retain: kind openings. Avoid: refused moves. {reply}" if is_memory else None,
        content_hash=json.dumps([cell.cell_id, checkpoint]),
        token_count=40 * checkpoint,
        source_episode_ids=[],
        steps_kept=STEPS * checkpoint,
        steps_dropped=0,
        tokens_dropped=0,
    )
    return {"experiences": [row]}


def _trained(cell: Cell, checkpoint: int) -> dict[str, list[Any]]:
    cycle = checkpoint // INTERVAL - 1
    rng = random.Random(f"{cell.cell_id}/{checkpoint}")
    place: dict[str, Any] = {
        "stage_key": f"build_experience-{cell.cell_id}-{cycle}",
        "game": cell.game,
        "checkpoint": checkpoint,
    }
    rows = [
        SftRow(
            **place,
            episode_id=f"explore-{cell.cell_id}-{cycle}/{index}",
            step_index=step,
            self_score=1.0,
            signal=1.0,
            decision=decision,
            reason={"kept": "top", "filtered": "rank"}[decision],
            weight=1.0 if decision == "kept" else None,
            reply=None,
            trained_prompt_tokens=800 if decision == "kept" else None,
            trained_reply_tokens=40 if decision == "kept" else None,
        )
        for index in range(cycle * INTERVAL, checkpoint)
        for step in range(STEPS)
        for decision in rng.choices(["kept", "filtered"])
    ]
    steps = [
        TrainingStep(
            **place,
            update_step=step,
            epoch=(step + 1) / 4,
            row_count=2,
            token_count=1680,
            loss=round(2.0 / (1 + step + 4 * cycle) + rng.uniform(0, 0.2), 3),
            gradient_norm=round(rng.uniform(0.5, 2.0), 3),
            learning_rate=2e-4 * (1 - step / 4),
            seconds=0.5,
            peak_memory_bytes=3 * 2**29,
        )
        for step in range(4)
    ]
    row = Experience(
        stage_key=place["stage_key"],
        game=cell.game,
        pathway=cell.pathway,
        checkpoint=checkpoint,
        kind="weights",
        text=None,
        path=f"weights/{place['stage_key']}",
        is_updated=True,
        content_hash=json.dumps([cell.cell_id, checkpoint]),
        token_count=sum(row.trained_reply_tokens or 0 for row in rows),
        source_episode_ids=sorted({row.episode_id for row in rows}),
        steps_kept=sum(row.decision == "kept" for row in rows),
        steps_dropped=sum(row.decision == "filtered" for row in rows),
        tokens_dropped=0,
    )
    return {"experiences": [row], "sft_rows": rows, "training_steps": steps}


def _anchors(game: str) -> list[Anchor]:
    return [
        Anchor(
            game=game,
            config_id=f"{game}-{phase}",
            phase=phase,
            player=player,
            mean=mean,
            standard_deviation=0.0,
            standard_error=0.0,
            episode_count=0,
            game_version=1,
        )
        for phase in ("exploration", "evaluation")
        for player, mean in (("random", TOP[game] / 3), ("expert", TOP[game] * 0.9))
    ]


def _slug(model: str) -> str:
    return model.replace("/", "-").replace(":", "-")
