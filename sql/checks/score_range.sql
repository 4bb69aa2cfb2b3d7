-- Values outside their declared range: rewards of evaluation steps, beliefs of judgments.
--
-- grain: offending row
-- columns:
--   offence     text; reward or success_belief
--   stage_key   text
--   episode_id  text
--   step_index  integer, from 0; null for a belief
--   found       the number, in the game's unit or as a probability
select distinct
    'reward' as offence,
    steps.stage_key,
    steps.episode_id,
    steps.step_index,
    steps.verifier_reward as found
from int_cell_steps as steps
inner join int_selected_cells as cells on steps.cell_id = cells.cell_id
where
    steps.phase = 'evaluation'
    and steps.verifier_reward not between cells.reward_min - 1e-9 and cells.reward_max + 1e-9
union all
select
    'success_belief' as offence,
    stage_key,
    episode_id,
    cast(null as bigint) as step_index,
    success_belief as found
from stg_judgments
where success_belief not between 0 and 1
