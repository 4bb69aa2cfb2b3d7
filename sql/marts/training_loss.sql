-- Training loss: every change of a cell's weights, numbered through all its updates.
--
-- grain: cell, step of the optimizer
-- key: cell_id, step_number
-- columns:
--   cell_id        text
--   model_id       text
--   game           text
--   pathway        text
--   intervention   text
--   replicate      integer, from 0
--   checkpoint     exploration episodes the update rests on
--   update_step    integer, from 0; within the update
--   step_number    integer, from 1; within the cell
--   epoch          passes over the rows when the step is done
--   row_count      rows of the step
--   loss           nats a reply token, each row by its weight; before the step
--   gradient_norm  from 0; before it is clipped
--   learning_rate  from 0
-- left out: a loss on rows held out; two steps see different rows, so that the curve is as rough as these differ.
select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    updates.checkpoint,
    steps.update_step,
    row_number() over (partition by cells.cell_id order by updates.checkpoint, steps.update_step) as step_number,
    steps.epoch,
    steps.row_count,
    steps.loss,
    steps.gradient_norm,
    steps.learning_rate
from int_selected_cells as cells
inner join int_updates as updates on cells.cell_id = updates.cell_id
inner join stg_training_steps as steps on updates.stage_key = steps.stage_key
