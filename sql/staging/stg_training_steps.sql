-- Changes of the weights, one for each step of the optimizer.
--
-- grain: update, step of the optimizer
-- key: stage_key, update_step
-- columns:
--   stage_key          text; of the update
--   game               text
--   checkpoint         exploration episodes the update rests on
--   update_step        integer, from 0
--   epoch              passes over the rows when the step is done, 0 to the number of epochs
--   row_count          rows
--   token_count        tokens computed, prompts included
--   loss               nats; mean cross-entropy of the reply tokens, each row by its weight, before the step
--   gradient_norm      number, from 0; before it is clipped
--   learning_rate      number, from 0
--   seconds            seconds
--   peak_memory_bytes  bytes since the update began, of the process (CPU) or the device; null where it is not known
select
    stage_key,
    game,
    checkpoint,
    update_step,
    epoch,
    row_count,
    token_count,
    loss,
    gradient_norm,
    learning_rate,
    seconds,
    peak_memory_bytes
from raw.training_steps
