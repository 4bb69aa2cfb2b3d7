-- Training updates: what each was made of, and what became of the loss.
--
-- grain: cell, update
-- key: cell_id, checkpoint
-- columns:
--   cell_id               text
--   model_id              text
--   game                  text
--   pathway               text
--   intervention          text
--   replicate             integer, from 0
--   explorer_id           text; who explored in the model's place; null where it explored itself
--   checkpoint            exploration episodes the update rests on
--   is_updated            true when weights changed; false when there were too few rows; null when the update failed
--   considered_count      steps of the exploration episodes, the sum of the next three
--   kept_count            steps to train on as they were answered
--   corrected_count       steps to train on with a better answer
--   filtered_count        steps left out
--   reasons               text; steps by the rule that decided, such as "kept: top 5; filtered: rank 4, malformed 1"
--   trained_reply_tokens  tokens the loss is taken on, in one pass over the rows; null without rows
--   step_count            steps of the optimizer; this and the next are 0 where there was no training
--   token_count           tokens computed, prompts included, over all steps
--   first_loss            nats a reply token; before the first step; this and what follows are null without steps
--   last_loss             nats a reply token; before the last step
--   gradient_norm_max     from 0; before it is clipped
--   seconds               seconds, of all steps; no dollars
--   peak_memory_bytes     bytes; of the process or the device
-- left out: updates that have not been made yet; wall time between the steps, and the loss after the last of them.
with decisions as (
    select
        stage_key,
        decision,
        sum(row_count) as row_count,
        sum(trained_reply_tokens) as trained_reply_tokens,
        decision || ': ' || string_agg(reason || ' ' || row_count, ', ' order by row_count desc, reason asc) as reasons
    from int_training_reasons
    group by stage_key, decision
),

selections as (
    select
        stage_key,
        cast(sum(row_count) as bigint) as considered_count,
        cast(sum(row_count) filter (where decision = 'kept') as bigint) as kept_count,
        cast(sum(row_count) filter (where decision = 'corrected') as bigint) as corrected_count,
        cast(sum(row_count) filter (where decision = 'filtered') as bigint) as filtered_count,
        string_agg(
            reasons, '; '
            order by case decision when 'kept' then 1 when 'corrected' then 2 else 3 end
        ) as reasons,
        cast(sum(trained_reply_tokens) as bigint) as trained_reply_tokens
    from decisions
    group by stage_key
),

trainings as (
    select
        stage_key,
        count(*) as step_count,
        cast(sum(token_count) as bigint) as token_count,
        min_by(loss, update_step) as first_loss,
        max_by(loss, update_step) as last_loss,
        max(gradient_norm) as gradient_norm_max,
        sum(seconds) as seconds,
        max(peak_memory_bytes) as peak_memory_bytes
    from stg_training_steps
    group by stage_key
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    cells.explorer_id,
    updates.checkpoint,
    updates.is_updated,
    coalesce(selections.considered_count, 0) as considered_count,
    coalesce(selections.kept_count, 0) as kept_count,
    coalesce(selections.corrected_count, 0) as corrected_count,
    coalesce(selections.filtered_count, 0) as filtered_count,
    selections.reasons,
    selections.trained_reply_tokens,
    coalesce(trainings.step_count, 0) as step_count,
    coalesce(trainings.token_count, 0) as token_count,
    trainings.first_loss,
    trainings.last_loss,
    trainings.gradient_norm_max,
    trainings.seconds,
    trainings.peak_memory_bytes
from int_selected_cells as cells
inner join int_updates as updates on cells.cell_id = updates.cell_id
left join selections on updates.stage_key = selections.stage_key
left join trainings on updates.stage_key = trainings.stage_key
