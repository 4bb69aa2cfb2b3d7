-- Held-out scores as resampling needs them: which are drawn together, and which could stand in for one another.
--
-- grain: cell, checkpoint, seed
-- key: cell_id, checkpoint, seed
-- columns:
--   cell_id      text
--   checkpoint   exploration episodes behind the agent, from 0
--   seed         integer
--   unit_id      text; drawn as one: the instance at all checkpoints under a fixed evaluation set, else the episode
--   stratum      text; units are drawn for one another within it: one for all under a fixed set, else the checkpoint;
--       where the game has so few instances that each checkpoint plays them all (trust), the instance at a checkpoint
--   block_id     text; scores that may change places if nothing is learnt: those of the instance where it is played
--       at every checkpoint, else all
--   final_score  game's unit
-- left out: invalid checkpoints. Where each instance is played once a checkpoint and is all there is, a stratum holds
--     one unit: what it scored is its only draw, and the chance in it can only be told from replicates.
with scores as (
    select
        episodes.cell_id,
        episodes.checkpoint,
        episodes.seed,
        episodes.instance_id,
        episodes.final_score,
        cells.is_instances_shared,
        asked.evaluation_set = 'fixed' as is_repeated
    from int_cell_episodes as episodes
    inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
    inner join stg_cells as asked on cells.run_id = asked.run_id and cells.cell_id = asked.cell_id
    inner join int_checkpoints as checkpoints
        on episodes.cell_id = checkpoints.cell_id and episodes.checkpoint = checkpoints.checkpoint
    where episodes.phase = 'evaluation' and checkpoints.is_valid
)

select
    cell_id,
    checkpoint,
    seed,
    case when is_repeated and not is_instances_shared then '' else checkpoint || '/' end || seed as unit_id,
    case
        when is_instances_shared then checkpoint || '/' || instance_id
        when is_repeated then ''
        else cast(checkpoint as varchar)
    end as stratum,
    case
        when is_instances_shared then instance_id
        when is_repeated then cast(seed as varchar)
        else ''
    end as block_id,
    final_score
from scores
