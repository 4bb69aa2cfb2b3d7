-- Evaluation episodes of a chain with a link replaced beside those without, on the same instances.
--
-- grain: chain, contrast, cell, checkpoint, seed
-- key: chain_id, contrast, cell_id, checkpoint, seed
-- columns:
--   chain_id              text; see int_intervention_chains
--   contrast              text; see int_intervention_contrasts
--   cell_id               text; without an intervention
--   checkpoint            exploration episodes behind the agent, from 1
--   seed                  integer; of the instance both played
--   difference_id         text; joins int_differences: all pairs of a chain and contrast
--   treated_episode_id    text
--   reference_episode_id  text
--   treated_score         game's unit
--   reference_score       game's unit
--   difference            game's unit; treated_score - reference_score
--   stratum               text; see int_paired_evaluations
--   cluster_id            text; see int_paired_evaluations: a chain's cells share their instances
--   block_id              text; scores that may change places if the link makes no difference: those of the instance
--       where it is played at every checkpoint, else those of the pair
-- left out: invalid episodes, with their partners, and checkpoint 0, where both are the same episode.
with evaluations as (
    select
        cells.cell_id,
        episodes.checkpoint,
        episodes.seed,
        episodes.episode_id,
        episodes.final_score,
        case when cells.is_instances_shared then episodes.instance_id else '' end as stratum,
        case when cells.is_instances_shared then episodes.checkpoint || '/' else '' end || episodes.seed as cluster_id,
        case
            when cells.is_instances_shared then episodes.instance_id
            when asked.evaluation_set = 'fixed' then cast(episodes.seed as varchar)
            else episodes.checkpoint || '/' || episodes.seed
        end as block_id
    from int_selected_cells as cells
    inner join int_cell_episodes as episodes on cells.cell_id = episodes.cell_id
    inner join stg_cells as asked on cells.run_id = asked.run_id and cells.cell_id = asked.cell_id
    where episodes.phase = 'evaluation' and episodes.is_valid and episodes.checkpoint > 0
)

select
    contrasts.chain_id,
    contrasts.contrast,
    contrasts.cell_id,
    treated.checkpoint,
    treated.seed,
    concat_ws('|', 'intervention', contrasts.chain_id, contrasts.contrast) as difference_id,
    treated.episode_id as treated_episode_id,
    reference.episode_id as reference_episode_id,
    treated.final_score as treated_score,
    reference.final_score as reference_score,
    treated.final_score - reference.final_score as difference,
    treated.stratum,
    treated.cluster_id,
    treated.block_id
from int_intervention_contrasts as contrasts
inner join evaluations as treated on contrasts.treated_cell_id = treated.cell_id
inner join evaluations as reference
    on
        contrasts.reference_cell_id = reference.cell_id
        and treated.checkpoint = reference.checkpoint
        and treated.seed = reference.seed
