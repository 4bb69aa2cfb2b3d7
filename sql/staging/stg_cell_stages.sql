-- Which stages a cell uses, and how far; several cells may use one stage, such as the evaluation before any experience.
--
-- grain: run, cell, stage
-- key: run_id, cell_id, stage_key, checkpoint
-- columns:
--   run_id         text
--   cell_id        text
--   stage_key      text; joins the rows that the stage wrote, which need not be there yet
--   stage          text; explore, self_judge, build_experience, evaluate, or transfer: evaluated in another game
--   checkpoint     exploration episodes behind the agent when the stage begins, from 0
--   episode_count  episodes of the stage that the cell uses
select
    run_id,
    cell_id,
    stage_key,
    stage,
    checkpoint,
    episode_count
from raw.cell_stages
