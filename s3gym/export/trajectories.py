"""Whole episodes: what was seen, done, scored and answered, and beside it what only the verifier knew.

For people and their tools, never for an agent: names that begin with ``verifier_`` hold what it was not told.
"""

from collections.abc import Sequence
from itertools import groupby

import pyarrow as pa

from s3gym import storage
from s3gym.export.files import ExportError, Row
from s3gym.registry import GAMES, load, names
from s3gym.warehouse import Warehouse

_STEP_NAMES = (
    "step_index",
    "observation",
    "reply",
    "reasoning",
    "action",
    "action_status",
    "self_score",
    "feedback",
    "verifier_reward",
    "is_terminated",
    "is_truncated",
    "error_kind",
)
_STEP = pa.struct([storage.schema("steps").field(name) for name in _STEP_NAMES])
SCHEMA = pa.schema(
    [
        ("game", pa.string()),
        ("game_version", pa.int64()),
        ("model_id", pa.string()),  # who played
        ("pathways", pa.list_(pa.string())),  # of the cells the episode belongs to
        ("cell_ids", pa.list_(pa.string())),
        ("phase", pa.string()),
        ("checkpoint", pa.int64()),
        ("episode_id", pa.string()),
        ("episode_index", pa.int64()),
        ("seed", pa.int64()),
        ("instance_id", pa.string()),
        ("config", pa.string()),
        ("rules", pa.string()),  # null where this s3gym has not the version of the game
        ("status", pa.string()),
        ("end_reason", pa.string()),
        ("steps", pa.list_(_STEP)),
        ("final_observation", pa.string()),
        ("verifier_final_score", pa.float64()),
        ("verifier_is_success", pa.bool_()),
    ]
)
_EPISODES = """
    with played as (
        select
            links.stage_key,
            links.stage,
            links.episode_count,
            cells.cell_id,
            cells.pathway,
            if(links.stage = 'explore', coalesce(requested.explorer_id, cells.model_id), cells.model_id) as model_id
        from int_selected_cells as cells
        inner join stg_cells as requested on cells.run_id = requested.run_id and cells.cell_id = requested.cell_id
        inner join stg_cell_stages as links on cells.run_id = links.run_id and cells.cell_id = links.cell_id
        where links.stage in ('explore', 'evaluate', 'transfer')
    )

    select
        episodes.* exclude (final_score, is_success),
        episodes.final_score as verifier_final_score,
        episodes.is_success as verifier_is_success,
        min(played.model_id) as model_id,
        list(distinct played.pathway order by played.pathway) as pathways,
        list(distinct played.cell_id order by played.cell_id) as cell_ids
    from stg_episodes as episodes
    inner join played
        on
            episodes.stage_key = played.stage_key
            and (played.stage = 'explore' or episodes.episode_index < played.episode_count)
    where episodes.phase in ({phases})
    group by all
    order by episodes.game, model_id, episodes.phase, episodes.checkpoint, episodes.stage_key, episodes.episode_index
"""
_STEPS = "select * from stg_steps where phase in ({phases}) order by stage_key, episode_id, step_index"


def rows(warehouse: Warehouse, phases: Sequence[str]) -> list[Row]:
    """The episodes of the selected runs, each once, with their steps.

    Args:
        warehouse: of the data folder, with its runs selected.
        phases: ``exploration``, ``evaluation`` or both.

    Raises:
        ExportError: there is none.
    """
    listed = ", ".join(f"'{phase}'" for phase in phases)
    found = warehouse.sql(_EPISODES.format(phases=listed)).to_dicts()
    if not found:
        raise ExportError(f"no episode of the phases {' and '.join(phases)} in the runs asked for; see `s3gym status`")
    stored = warehouse.sql(_STEPS.format(phases=listed)).to_dicts()
    steps = {
        key: [{name: step[name] for name in _STEP_NAMES} for step in own]
        for key, own in groupby(stored, key=lambda step: (step["stage_key"], step["episode_id"]))
    }
    rules: dict[tuple[str, int, str], str | None] = {}
    for row in found:
        played = (row["game"], row["game_version"], row["config"])
        if played not in rules:
            rules[played] = _rules(*played)
        row |= {"rules": rules[played], "steps": steps.get((row["stage_key"], row["episode_id"]), [])}
    return [{name: row[name] for name in SCHEMA.names} for row in found]


def _rules(game_id: str, version: int, config: str) -> str | None:
    """What the agent was told of the game; None where its version is not there to ask."""
    game = load(GAMES, game_id, "game").GAME if game_id in names(GAMES) else None
    if game is None or version != game.VERSION:
        return None
    told: str = game.rules(game.read_config(config))
    return told
