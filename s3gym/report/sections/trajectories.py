"""What was said and done: the episodes of ``trajectories.sql``, stepped through by ``trajectories.js``."""

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from s3gym.report import fragments

if TYPE_CHECKING:
    from s3gym.warehouse import Warehouse

TITLE = "Trajectories"
ORDER = 90
MARTS = (
    "int_cell_episodes",
    "int_selected_cells",
    "stg_episodes",
    "stg_steps",
    "stg_judgments",
    "stg_experiences",
)

_PLAYED = "select count(*) as played from (select distinct stage_key, episode_id from int_cell_episodes)"
FIELDS = ("model", "game", "pathway", "phase", "checkpoint", "episode")


def build(warehouse: "Warehouse") -> str:
    """The viewer with its episodes, and a sentence on how many of all they are."""
    episodes = warehouse.sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")).to_dicts()
    played = warehouse.sql(_PLAYED).item()
    if not episodes:
        return fragments.notice("No episode has been played yet. After `s3gym run` some can be stepped through here.")
    return Markup('{}\n{}\n<script type="application/json" id="trajectory-data">{}</script>').format(
        fragments.notice(
            f"{len(episodes):,} of {played:,} episodes are in this page: of every cell the first ones of its "
            "first and last checkpoint, and its first and last exploration episodes, as far as they fit. "
            "`s3gym replay EPISODE` shows any other."
        ),
        _viewer(),
        fragments.embedded_json(episodes),
    )


def _viewer() -> Markup:
    choices = [
        Markup('<label>{}<select name="{}"></select></label>').format(field.capitalize(), field) for field in FIELDS
    ]
    return _FRAME.format(choices=Markup("").join(choices))


_FRAME = Markup("""
<div id="viewer">
<p class="notice" data-part="absent" hidden>That episode is not in this page; if the
data folder has it, <code data-part="absent-id"></code> shows it. Below is another one.</p>
<div class="choices">{choices}</div>
<dl class="facts" data-part="episode"></dl>
<details data-part="experience" hidden><summary>Memory the agent had read</summary>
<pre data-part="experience-text"></pre></details>
<div class="stage" data-part="stage" tabindex="0" role="group"
aria-label="Steps of the episode; arrow keys go back and on">
<div class="walk">
<button type="button" data-part="previous" aria-label="Previous step">←</button>
<strong data-part="position" aria-live="polite"></strong>
<button type="button" data-part="next" aria-label="Next step">→</button>
<span class="hint">arrow keys work here too</span>
</div>
<ol class="steps" data-part="steps" aria-label="Steps"></ol>
<div class="detail">
<dl class="facts" data-part="facts"></dl>
<h4>What the agent saw</h4><pre data-part="observation"></pre>
<details data-part="thinking" hidden><summary>Its thinking</summary>
<pre data-part="thinking-text"></pre></details>
<h4>Its reply</h4><pre class="said" data-part="reply"></pre>
<h4>What the environment answered</h4><pre data-part="feedback"></pre>
<div data-part="end" hidden><h4>State at the end</h4><pre data-part="final"></pre></div>
</div>
</div>
<div data-part="judgment" hidden><h4>The agent's own view of the episode afterwards</h4>
<dl class="facts long" data-part="judgment-facts"></dl></div>
</div>
""")
