-- Held-out episodes of cells that the latest refresh measured anew, and those of the refresh before in their place.
--
-- grain: cell, side, checkpoint, seed
-- key: cell_id, is_now, checkpoint, seed
-- columns:
--   cell_id      text; of the selected run
--   is_now       true for the latest refresh, false for the one before
--   checkpoint   exploration episodes behind the agent, from 0
--   seed         integer; of the instance
--   instance_id  text
--   final_score  game's unit
-- left out: invalid episodes; stages that both have, which are the same rows; checkpoints that only one of them has.
with sides as (
    select
        cell_id,
        true as is_now,
        run_id,
        cell_id as side_cell_id
    from int_previous_cells
    where cell_id != previous_cell_id
    union all
    select
        cell_id,
        false as is_now,
        previous_run_id as run_id,
        previous_cell_id as side_cell_id
    from int_previous_cells
    where cell_id != previous_cell_id
),

links as (
    select
        sides.cell_id,
        sides.is_now,
        links.stage_key,
        links.checkpoint,
        links.episode_count
    from sides
    inner join stg_cell_stages as links on sides.run_id = links.run_id and sides.side_cell_id = links.cell_id
    where links.stage = 'evaluate'
),

renewed as (
    select
        now.cell_id,
        now.checkpoint
    from links as now
    inner join links as earlier on now.cell_id = earlier.cell_id and now.checkpoint = earlier.checkpoint
    where now.is_now and not earlier.is_now and now.stage_key != earlier.stage_key
)

select
    links.cell_id,
    links.is_now,
    links.checkpoint,
    episodes.seed,
    episodes.instance_id,
    episodes.final_score
from links
inner join renewed on links.cell_id = renewed.cell_id and links.checkpoint = renewed.checkpoint
inner join stg_episodes as episodes on links.stage_key = episodes.stage_key
where episodes.episode_index < links.episode_count and episodes.status = 'valid'
