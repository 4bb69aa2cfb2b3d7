-- Experience size: how much a cell's agent got to read of what it lived through.
--
-- grain: cell, checkpoint
-- key: cell_id, checkpoint
-- columns:
--   cell_id         text
--   model_id        text
--   game            text
--   pathway         text
--   intervention    text
--   replicate       integer, from 0
--   checkpoint      exploration episodes the experience rests on
--   kind            text; history, memory or weights, with what an intervention changed, such as history, oracle scores
--   token_count     tokens the agent gets to read, or that weights were trained on; this and the next three are null
--       where error_kind is not
--   steps_kept      steps the experience was made from
--   steps_dropped   steps that did not fit the history limit, or were not trained on
--   tokens_dropped  tokens of these
--   error_kind      text; why it could not be built; null when it was
-- left out: what was read between checkpoints; each exploration step records its own history_tokens_dropped.
select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    experiences.checkpoint,
    experiences.kind,
    experiences.token_count,
    experiences.steps_kept,
    experiences.steps_dropped,
    experiences.tokens_dropped,
    experiences.error_kind
from int_selected_cells as cells
inner join int_cell_links as links on cells.cell_id = links.cell_id
inner join stg_experiences as experiences on links.stage_key = experiences.stage_key
where links.stage = 'build_experience'
