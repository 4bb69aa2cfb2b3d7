-- Which stages the selected cells use, and how far; several cells may use one stage, such as the evaluation before any
-- experience.
--
-- grain: cell, stage
-- key: cell_id, stage_key, checkpoint
-- columns:
--   cell_id        text
--   stage_key      text; joins the rows that the stage wrote, which need not be there yet
--   stage          text; explore, self_judge, build_experience, evaluate, or transfer: evaluated in another game
--   checkpoint     exploration episodes behind the agent when the stage begins, from 0
--   episode_count  episodes of the stage that the cell uses
select
    cells.cell_id,
    links.stage_key,
    links.stage,
    links.checkpoint,
    links.episode_count
from int_selected_cells as cells
inner join stg_cell_stages as links on cells.run_id = links.run_id and cells.cell_id = links.cell_id
