-- Action validity: how often a reply held an action that could be played.
--
-- grain: cell, phase
-- key: cell_id, phase
-- columns:
--   cell_id            text
--   model_id           text
--   game               text
--   pathway            text
--   intervention       text
--   replicate          integer, from 0
--   phase              text; exploration or evaluation
--   step_count         steps, failed calls included
--   ok_count           steps with an action as the rules ask for
--   repaired_count     steps with an action in a tolerated spelling
--   unparsable_count   steps without a readable answer
--   invalid_count      steps with an answer that is no action of the game
--   illegal_count      steps with an action that the state does not allow
--   ambiguous_count    steps with more than one possible reading
--   failed_call_count  steps without a reply
--   usable_rate        0 to 1; null when no step has a reply
--   usable_rate_low    0 to 1; 95 % Wilson interval
--   usable_rate_high   0 to 1
-- formula: usable_rate = (ok_count + repaired_count) / (step_count - failed_call_count)
-- source: Wilson (1927), Journal of the American Statistical Association 22, 209-212
-- left out: failed calls, from the rate; a service that fails says nothing about the agent's answers. Steps in other
--     games, which transfer has.
select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    counts.phase,
    counts.step_count,
    counts.ok_count,
    counts.repaired_count,
    counts.unparsable_count,
    counts.invalid_count,
    counts.illegal_count,
    counts.ambiguous_count,
    counts.failed_call_count,
    rates.rate as usable_rate,
    rates.rate_low as usable_rate_low,
    rates.rate_high as usable_rate_high
from int_selected_cells as cells
inner join int_step_counts as counts on cells.cell_id = counts.cell_id
inner join int_rates as rates
    on counts.cell_id = rates.cell_id and counts.phase = rates.phase and rates.rate_name = 'usable'
