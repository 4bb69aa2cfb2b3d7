-- Rows considered for training that are no step of an exploration episode which their update rests on: those of the
-- blocks that a cell with this update explored before it. A held-out episode is none, whatever its row says.
--
-- grain: update, episode
-- columns:
--   stage_key   text; of the update
--   checkpoint  exploration episodes the update rests on
--   episode_id  text
--   row_count   rows of the update from it
with sources as (
    select
        updates.stage_key,
        episodes.episode_id,
        episodes.step_count
    from stg_cell_stages as updates
    inner join stg_cell_stages as blocks
        on
            updates.run_id = blocks.run_id
            and updates.cell_id = blocks.cell_id
            and blocks.stage = 'explore'
            and updates.checkpoint > blocks.checkpoint
    inner join stg_episodes as episodes
        on blocks.stage_key = episodes.stage_key and episodes.phase = 'exploration'
    where updates.stage = 'build_experience'
)

select
    considered.stage_key,
    considered.checkpoint,
    considered.episode_id,
    count(*) as row_count
from stg_sft_rows as considered
where
    not exists (
        select 1
        from sources
        where
            considered.stage_key = sources.stage_key
            and considered.episode_id = sources.episode_id
            and considered.step_index < sources.step_count
    )
group by considered.stage_key, considered.checkpoint, considered.episode_id
