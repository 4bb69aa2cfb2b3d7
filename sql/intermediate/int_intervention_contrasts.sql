-- What is taken from what on the same instances, to see what a replaced link is worth to a chain.
--
-- grain: chain, contrast, cell
-- key: chain_id, contrast, cell_id
-- columns:
--   chain_id           text; see int_intervention_chains
--   contrast           text; own: the cell over its control; relaxed_evaluation: over its own control under the same
--       rules; another intervention: over the cell without; reference_over_placebo: the guide over a text as long
--   cell_id            text; without an intervention
--   treated_cell_id    text
--   reference_cell_id  text; what is taken away
-- left out: cells without a control have no gain of their own. Of several that could be the treated one the one of the
--     same run counts, then the latest. That prompts, decoding and model revision are alike is not looked at for
--     relaxed_evaluation.
with treated as (
    select
        unchanged.cell_id,
        treated.intervention,
        treated.cell_id as treated_cell_id
    from int_selected_cells as unchanged
    inner join int_selected_cells as treated
        on
            unchanged.model_id = treated.model_id
            and unchanged.game = treated.game
            and unchanged.pathway = treated.pathway
            and unchanged.replicate = treated.replicate
            and unchanged.base_seed = treated.base_seed
            and unchanged.exploration_config_id = treated.exploration_config_id
            and unchanged.exploration_episode_count = treated.exploration_episode_count
            and unchanged.evaluation_interval = treated.evaluation_interval
            and unchanged.evaluation_episode_count = treated.evaluation_episode_count
            and unchanged.history_token_limit = treated.history_token_limit
            and unchanged.history_cut = treated.history_cut
            -- but for what the intervention is there to change
            and (unchanged.comparison_id = treated.comparison_id or treated.intervention = 'relaxed_evaluation')
            and (
                unchanged.explorer_id is not distinct from treated.explorer_id
                or treated.intervention = 'expert_exploration'
            )
            and (unchanged.training is not distinct from treated.training or treated.intervention = 'shuffled_scores')
    where unchanged.intervention = 'main' and treated.intervention != 'main' and unchanged.pathway != 'none'
    qualify row_number() over (
        partition by unchanged.cell_id, treated.intervention
        order by unchanged.run_id = treated.run_id desc, treated.requested_at desc, treated.cell_id asc
    ) = 1
),

-- as in control_gain
controls as (
    select
        cell_id,
        control_cell_id
    from int_paired_evaluations
    group by cell_id, control_cell_id
    qualify row_number() over (partition by cell_id order by count(*) desc, control_cell_id asc) = 1
),

contrasts as (
    select
        unchanged.cell_id,
        'own' as contrast,
        unchanged.cell_id as treated_cell_id,
        controls.control_cell_id as reference_cell_id
    from int_selected_cells as unchanged
    inner join controls on unchanged.cell_id = controls.cell_id
    where unchanged.intervention = 'main'
    union all
    select
        cell_id,
        intervention as contrast,
        treated_cell_id,
        cell_id as reference_cell_id
    from treated
    where intervention != 'relaxed_evaluation'
    union all
    select
        treated.cell_id,
        treated.intervention as contrast,
        treated.treated_cell_id,
        controls.control_cell_id as reference_cell_id
    from treated
    inner join controls on treated.treated_cell_id = controls.cell_id
    where treated.intervention = 'relaxed_evaluation'
    union all
    select
        guided.cell_id,
        'reference_over_placebo' as contrast,
        guided.treated_cell_id,
        placebo.treated_cell_id as reference_cell_id
    from treated as guided
    inner join treated as placebo on guided.cell_id = placebo.cell_id
    where guided.intervention = 'reference_memory' and placebo.intervention = 'placebo_memory'
)

select
    chains.chain_id,
    contrasts.contrast,
    contrasts.cell_id,
    contrasts.treated_cell_id,
    contrasts.reference_cell_id
from contrasts
inner join int_intervention_chains as chains on contrasts.cell_id = chains.cell_id
