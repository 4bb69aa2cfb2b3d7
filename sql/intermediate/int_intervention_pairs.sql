-- Evaluation episodes with a link replaced beside those without, or with another one, on the same instances.
--
-- grain: difference, checkpoint, seed
-- key: difference_id, checkpoint, seed
-- columns:
--   difference_id         text; joins int_differences: all pairs of two cells, see int_intervention_contrasts
--   checkpoint            exploration episodes behind the agent, from 1
--   seed                  integer; of the instance both played
--   treated_cell_id       text
--   reference_cell_id     text
--   treated_episode_id    text
--   reference_episode_id  text
--   stratum               text; see int_paired_evaluations
--   cluster_id            text; see int_paired_evaluations
--   difference            game's unit; final score of the treated cell minus that of the other
-- left out: invalid episodes, with their partners, and checkpoint 0, where both are the same episode.
with evaluations as (
    select
        cells.cell_id,
        episodes.checkpoint,
        episodes.seed,
        episodes.episode_id,
        episodes.final_score,
        case when cells.is_instances_shared then episodes.instance_id else '' end as stratum,
        case when cells.is_instances_shared then episodes.checkpoint || '/' else '' end || episodes.seed as cluster_id
    from int_selected_cells as cells
    inner join int_cell_episodes as episodes on cells.cell_id = episodes.cell_id
    where episodes.phase = 'evaluation' and episodes.is_valid and episodes.checkpoint > 0
),

contrasts as (
    select distinct
        difference_id,
        treated_cell_id,
        reference_cell_id
    from int_intervention_contrasts
)

select
    contrasts.difference_id,
    treated.checkpoint,
    treated.seed,
    contrasts.treated_cell_id,
    contrasts.reference_cell_id,
    treated.episode_id as treated_episode_id,
    reference.episode_id as reference_episode_id,
    treated.stratum,
    treated.cluster_id,
    treated.final_score - reference.final_score as difference
from contrasts
inner join evaluations as treated on contrasts.treated_cell_id = treated.cell_id
inner join evaluations as reference
    on
        contrasts.reference_cell_id = reference.cell_id
        and treated.checkpoint = reference.checkpoint
        and treated.seed = reference.seed
