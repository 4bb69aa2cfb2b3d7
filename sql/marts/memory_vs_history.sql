-- Memory against history: which of the two context pathways makes more of the same exploration budget.
--
-- grain: model, game, intervention, replicate, base seed, settings
-- key: comparison_id, intervention, exploration_config_id, exploration_episode_count, history_token_limit, history_cut
-- columns:
--   model_id                   text
--   game                       text
--   intervention               text
--   replicate                  integer, from 0
--   base_seed                  integer
--   comparison_id              text; hash of the settings both cells share
--   exploration_config_id      text
--   exploration_episode_count  episodes
--   history_token_limit        tokens
--   history_cut                text
--   memory_cell_id             text; null where there is no such cell
--   history_cell_id            text
--   naba_memory                episodes, from 0; see improvement
--   naba_history               episodes, from 0
--   naba_difference            episodes; memory minus history; null where either is
--   winner                     text; memory, history or tie (within 1e-9); null where naba_difference is
-- formula: naba_difference = naba(memory) - naba(history)
-- source: S3Gym, arXiv 2608.31100
-- left out: an interval; one curve a cell gives none, replicates do. If cells differ in nothing but a setting that no
--     column holds, the latest one counts.
with contestants as (
    select
        cells.comparison_id,
        cells.exploration_config_id,
        cells.exploration_episode_count,
        cells.history_token_limit,
        cells.history_cut,
        cells.model_id,
        cells.game,
        cells.intervention,
        cells.replicate,
        cells.base_seed,
        cells.pathway,
        cells.cell_id,
        improvement.naba
    from int_selected_cells as cells
    inner join improvement on cells.cell_id = improvement.cell_id
    where cells.pathway in ('memory', 'history')
    qualify row_number() over (
        partition by
            cells.comparison_id,
            cells.intervention,
            cells.exploration_config_id,
            cells.exploration_episode_count,
            cells.history_token_limit,
            cells.history_cut,
            cells.pathway
        order by cells.requested_at desc, cells.cell_id asc
    ) = 1
),

matches as (
    select
        comparison_id,
        exploration_config_id,
        exploration_episode_count,
        history_token_limit,
        history_cut,
        model_id,
        game,
        intervention,
        replicate,
        base_seed,
        max(cell_id) filter (where pathway = 'memory') as memory_cell_id,
        max(cell_id) filter (where pathway = 'history') as history_cell_id,
        max(naba) filter (where pathway = 'memory') as naba_memory,
        max(naba) filter (where pathway = 'history') as naba_history
    from contestants
    group by
        comparison_id,
        exploration_config_id,
        exploration_episode_count,
        history_token_limit,
        history_cut,
        model_id,
        game,
        intervention,
        replicate,
        base_seed
)

select
    model_id,
    game,
    intervention,
    replicate,
    base_seed,
    comparison_id,
    exploration_config_id,
    exploration_episode_count,
    history_token_limit,
    history_cut,
    memory_cell_id,
    history_cell_id,
    naba_memory,
    naba_history,
    naba_memory - naba_history as naba_difference,
    case
        when abs(naba_memory - naba_history) <= 1e-9 then 'tie'
        when naba_memory > naba_history then 'memory'
        when naba_memory < naba_history then 'history'
    end as winner
from matches
