-- Which actions are refused, how often, and what is the agent told?
select
    cells.model_id,
    cells.game,
    steps.action_status,
    steps.feedback,
    count(*) as step_count
from int_cell_steps as used
inner join stg_steps as steps
    on
        used.stage_key = steps.stage_key
        and used.episode_id = steps.episode_id
        and used.step_index = steps.step_index
inner join int_selected_cells as cells on used.cell_id = cells.cell_id
where used.action_status not in ('ok', 'repaired')
group by cells.model_id, cells.game, steps.action_status, steps.feedback
order by step_count desc, cells.model_id asc, cells.game asc, steps.feedback asc
