"""What was said and done: the episodes of ``trajectories.sql``, stepped through by ``trajectories.js``.

The page holds them packed: an index of all episodes, what is held in brief a cell, and the texts an episode. The
browser unpacks a piece when it is looked at, so that many steps cost nothing but their room.
"""

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from s3gym.report import fragments

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Trajectories"
ORDER = 90
MARTS = (
    "int_cell_episodes",
    "int_cell_steps",
    "int_selected_cells",
    "stg_episodes",
    "stg_steps",
    "stg_judgments",
    "stg_experiences",
)

ROOM = 10_000_000
"""Characters of the page for all that is packed; what is held in brief comes first, then the texts as far as they
fit. With the other sections of a run of the published size the page stays below 15 MB."""
LEVEL = 4
"""Of zlib: higher ones take twice the time, and save one part in fifty."""
_HERE = Path(__file__)
_PLAYED = """
    select count(*) as episodes, coalesce(sum(step_count), 0) as steps
    from (select distinct stage_key, episode_id, step_count from int_cell_episodes)
"""
_FILTERS = ("model", "game", "pathway", "phase", "checkpoint")


def build(warehouse: "Warehouse") -> str:
    """The viewer with its episodes, and a sentence on how much of them it holds."""
    episodes = warehouse.sql(_HERE.with_suffix(".sql").read_text(encoding="utf-8")).to_dicts()
    if not episodes:
        return fragments.notice("No episode has been played yet. After `s3gym run` each can be stepped through here.")
    cells = warehouse.sql(_HERE.with_name("trajectories_cells.sql").read_text(encoding="utf-8")).to_dicts()
    pieces = _pieces(cells, episodes, ROOM)
    whole = sum(name.startswith("whole") for name in pieces)
    (played,) = warehouse.sql(_PLAYED).to_dicts()
    scripts = [_SCRIPT.format(name, content) for name, content in pieces.items()]
    return Markup("{}\n{}\n{}").format(_held(played, episodes, whole), _viewer(), Markup("\n").join(scripts))


def _pieces(cells: Sequence[Mapping[str, Any]], episodes: Sequence[Mapping[str, Any]], room: int) -> dict[str, str]:
    """What the page holds, packed: the index, what is held in brief by cell, and the texts of as many as fit."""
    numbers = {cell["cell_id"]: number for number, cell in enumerate(cells)}
    briefs: dict[int, list[str]] = defaultdict(list)
    index = []
    for episode in episodes:
        users = [numbers[cell_id] for cell_id in episode["cell_ids"]]
        index.append(
            {
                "id": episode["episode_id"],
                "cells": users,
                "place": len(briefs[users[0]]),
                **{name: episode[name] for name in ("phase", "checkpoint", "episode", "gaps")},
            }
        )
        briefs[users[0]].append(episode["brief"])
    pieces = {
        f"cell-{number}": _packed(f'{{"memories":{cells[number]["memories"]},"episodes":[{",".join(own)}]}}')
        for number, own in sorted(briefs.items())
    }
    named = [{"model": cell["model_id"], "game": cell["game"], "pathway": cell["pathway"]} for cell in cells]
    taken = sum(map(len, pieces.values())) + len(_packed(json.dumps([named, index])))
    for number, episode in enumerate(episodes):
        texts = _packed(episode["whole"]) if episode["whole"] else ""
        taken += len(texts)
        index[number]["whole"] = bool(texts) and taken <= room
        if index[number]["whole"]:
            pieces[f"whole-{number}"] = texts
    return {"index": _packed(json.dumps({"cells": named, "episodes": index}, separators=(",", ":"))), **pieces}


def _packed(text: str) -> str:
    """``text`` as zlib in base64: no character of it means anything to HTML, and its bytes are always the same."""
    return base64.b64encode(zlib.compress(text.encode(), LEVEL)).decode()


def _held(played: Mapping[str, int], episodes: Sequence[Mapping[str, Any]], whole: int) -> Markup:
    shown = sum(len(episode["gaps"]) for episode in episodes)
    steps = f"{shown:,} steps" if shown == played["steps"] else f"{shown:,} of {played['steps']:,} steps"
    if whole == played["episodes"]:
        return fragments.notice(f"All {whole:,} episodes, {steps}, are in this page with all that was seen and said.")
    return fragments.notice(
        f"Of {steps} this page holds the action, its status, both scores and the line of the answer. All that was "
        f"seen and said it holds of {whole:,} of {played['episodes']:,} episodes: as far as they fit, of every cell "
        "the first ones of its last and of its first checkpoint, its first and last exploration episodes, and the "
        "most surprising ones, where self-score and reward are furthest apart in shares of the game's range of "
        "rewards. `s3gym replay EPISODE` shows any episode whole."
    )


def _viewer() -> Markup:
    choices = [
        Markup('<label>{}<select name="{}"></select></label>').format(name.capitalize(), name) for name in _FILTERS
    ]
    return _FRAME.format(choices=Markup("").join(choices))


_SCRIPT = Markup('<script type="application/zlib;base64" id="trajectories-{}">{}</script>')
_FRAME = Markup("""
<div id="viewer">
<p class="notice" data-part="failed" role="alert" hidden></p>
<p class="notice" data-part="absent" hidden>That episode is not in this page; if the
data folder has it, <code data-part="absent-id"></code> shows it. Below is another one.</p>
<div class="choices">{choices}
<label>Order<select name="order"><option value="played">as played</option>
<option value="surprise">most surprising first</option></select></label>
<label class="wide"><span data-part="count">Episode</span><select name="episode"></select></label></div>
<dl class="facts" data-part="episode"></dl>
<details data-part="experience" hidden><summary>Memory the agent had read</summary>
<pre data-part="experience-text" tabindex="0"></pre></details>
<div class="stage" data-part="stage" tabindex="0" role="group" aria-busy="true"
aria-label="Steps of the episode; arrow keys go back and on, s goes to the next surprising step">
<div class="walk">
<button type="button" data-part="previous" aria-label="Previous step">←</button>
<strong data-part="position" aria-live="polite"></strong>
<button type="button" data-part="next" aria-label="Next step">→</button>
<button type="button" data-part="surprise" aria-describedby="surprise-rank">Next surprising step</button>
<span class="hint" data-part="rank" id="surprise-rank" aria-live="polite"></span>
<span class="hint keys">Keys here: ← → Home End, and s for the next surprise</span>
</div>
<ol class="steps" data-part="steps" aria-label="Steps"></ol>
<div class="detail">
<dl class="facts" data-part="facts"></dl>
<p class="notice" data-part="brief" hidden>Of this episode only the line of the answer is in this page;
<code data-part="replay"></code> shows all that was seen and said.</p>
<div data-part="seen"><h4>What the agent saw</h4><pre data-part="observation" tabindex="0"></pre></div>
<details data-part="thinking" hidden><summary>Its thinking</summary>
<pre data-part="thinking-text" tabindex="0"></pre></details>
<h4 data-part="said">Its reply</h4><pre class="said" data-part="reply" tabindex="0"></pre>
<div data-part="answered"><h4>What the environment answered</h4><pre data-part="feedback" tabindex="0"></pre></div>
<div data-part="end" hidden><h4>State at the end</h4><pre data-part="final" tabindex="0"></pre></div>
</div>
</div>
<div data-part="judgment" hidden><h4>The agent's own view of the episode afterwards</h4>
<dl class="facts long" data-part="judgment-facts"></dl></div>
</div>
""")
