"""Fine-tuning data: the rows an update was trained on, each with the prompt its step was asked with.

Only exploration episodes are read, and only those an update rests on. No verifier's reward is read or written, nor
what an intervention, which may choose by one, was trained on.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Literal

import pyarrow as pa

from s3gym.export.files import MESSAGES, ExportError, Row
from s3gym.protocol.prompts import PROMPT_VERSION
from s3gym.protocol.trajectories import prompts
from s3gym.records import Step
from s3gym.registry import GAMES, load
from s3gym.transcript import Message
from s3gym.warehouse import Warehouse

Form = Literal["messages", "prompt-completion"]

COLUMNS: dict[Form, tuple[str, ...]] = {"messages": ("messages",), "prompt-completion": ("prompt", "completion")}
_ORIGIN = (
    ("game", pa.string()),
    ("model_id", pa.string()),
    ("update_id", pa.string()),
    ("checkpoint", pa.int64()),
    ("episode_id", pa.string()),
    ("step_index", pa.int64()),
    ("self_score", pa.float64()),
    ("decision", pa.string()),
    ("weight", pa.float64()),
    ("reasoning", pa.string()),
)
_ROWS = """
    with updates as (
        select
            links.stage_key,
            cells.model_id,
            requested.prompt_version
        from int_selected_cells as cells
        inner join stg_cells as requested on cells.run_id = requested.run_id and cells.cell_id = requested.cell_id
        inner join stg_cell_stages as links on cells.run_id = links.run_id and cells.cell_id = links.cell_id
        where links.stage = 'build_experience' and cells.intervention = 'main'
        qualify row_number() over (partition by links.stage_key order by cells.cell_id) = 1
    )

    select
        considered.stage_key as update_id,
        considered.game,
        updates.model_id,
        updates.prompt_version,
        considered.checkpoint,
        considered.episode_id,
        considered.step_index,
        considered.self_score,
        considered.decision,
        considered.weight,
        considered.reply,
        episodes.game_version,
        episodes.config
    from stg_sft_rows as considered
    inner join updates on considered.stage_key = updates.stage_key
    inner join stg_episodes as episodes
        on considered.episode_id = episodes.episode_id and episodes.phase = 'exploration'
    where considered.decision in ('kept', 'corrected')
    order by
        considered.game,
        updates.model_id,
        considered.checkpoint,
        considered.stage_key,
        episodes.episode_index,
        considered.episode_id,
        considered.step_index
"""
_STEPS = """
    select steps.*
    from stg_steps as steps
    where
        steps.phase = 'exploration'
        and steps.episode_id in (select episode_id from stg_sft_rows where decision in ('kept', 'corrected'))
    order by steps.stage_key, steps.episode_id, steps.step_index
"""


def schema(form: Form) -> pa.Schema:
    """The columns of a format, then those that say where a row is from."""
    return pa.schema([*((name, MESSAGES) for name in COLUMNS[form]), *_ORIGIN])


def rows(warehouse: Warehouse, form: Form) -> list[Row]:
    """What the updates of the selected runs were trained on, in order.

    Raises:
        ExportError: there is nothing, a row is not of an exploration episode its update rests on, or its prompt was
            made by another version of the game or the wording.
    """
    strays = warehouse.sql("select distinct episode_id from sft_from_exploration order by episode_id").to_series()
    if len(strays):
        raise ExportError(
            f"{strays[0]} and {len(strays) - 1} more are no exploration episodes of the update that names them: "
            "the folder is damaged, see `s3gym verify`"
        )
    found = warehouse.sql(_ROWS).to_dicts()
    if not found:
        raise ExportError(
            'no row was trained on in the runs asked for; `s3gym sql "select decision, reason, count(*) from '
            'stg_sft_rows group by all"` says what became of the steps'
        )
    asked: dict[str, list[tuple[Step, tuple[Message, ...]]]] = {}
    stored = groupby(warehouse.sql(_STEPS).to_dicts(), key=lambda step: str(step["episode_id"]))
    steps = {episode_id: [Step(**row) for row in own] for episode_id, own in stored}
    made: list[Row] = []
    for row in found:
        episode_id = row["episode_id"]
        if episode_id not in asked:
            asked[episode_id] = list(zip(steps[episode_id], _prompts(row, steps[episode_id]), strict=True))
        step, prompt = asked[episode_id][row["step_index"]]
        made.append(_row(form, row, step, prompt))
    return made


def _prompts(row: dict[str, Any], steps: list[Step]) -> Iterator[tuple[Message, ...]]:
    """The prompts of an episode as the trainee reads them: with no experience but its weights."""
    game = load(GAMES, row["game"], "game").GAME
    versions = (row["game_version"], row["prompt_version"])
    if versions != (game.VERSION, PROMPT_VERSION):
        raise ExportError(
            f"{row['episode_id']} was played with version {versions[0]} of {game.id} and {versions[1]} of the prompts, "
            f"this s3gym has {game.VERSION} and {PROMPT_VERSION}; export with the one that played it"
        )
    return prompts(game, game.read_config(row["config"]), steps)


def _row(form: Form, row: dict[str, Any], step: Step, prompt: tuple[Message, ...]) -> Row:
    is_own = row["decision"] == "kept"
    answer = {"role": "assistant", "content": step.reply if is_own else row["reply"]}
    columns = {"messages": [*prompt, answer], "prompt": list(prompt), "completion": [answer]}
    origin = {name: row[name] for name, _ in _ORIGIN if name in row}
    return {
        **{name: columns[name] for name in COLUMNS[form]},
        **origin,
        "reasoning": step.reasoning if is_own else None,
    }
