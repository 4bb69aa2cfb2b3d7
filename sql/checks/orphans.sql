-- Rows that point at nothing. A stage without rows is none: a run may be unfinished.
--
-- grain: what points at nothing
-- columns:
--   offence     text; what points at what
--   owner_id    text; stage_key, or run_id of a link
--   subject_id  text; episode_id, or cell_id of a link
select
    'step without its episode' as offence,
    steps.stage_key as owner_id,
    steps.episode_id as subject_id
from int_episode_steps as steps
left join stg_episodes as episodes
    on steps.stage_key = episodes.stage_key and steps.episode_id = episodes.episode_id
where episodes.episode_id is null
union all
select
    'judgment without its episode' as offence,
    judgments.stage_key as owner_id,
    judgments.episode_id as subject_id
from stg_judgments as judgments
left join stg_episodes as episodes
    on judgments.episode_id = episodes.episode_id and episodes.phase = 'exploration'
where episodes.episode_id is null
union all
select
    'stage link without its cell' as offence,
    links.run_id as owner_id,
    links.cell_id as subject_id
from stg_cell_stages as links
left join stg_cells as cells on links.run_id = cells.run_id and links.cell_id = cells.cell_id
where cells.cell_id is null
