-- What is taken from what on the same instances, to see what a replaced link is worth to a chain.
--
-- grain: chain, contrast, cell
-- key: chain_id, contrast, cell_id
-- columns:
--   chain_id           text; see int_intervention_chains
--   contrast           text; own: the cell over its control; an intervention: over the cell without; relaxed_evaluation:
--       over its own control under the same rules; reference_over_placebo: the guide over another text as long
--   cell_id            text; without an intervention
--   treated_cell_id    text
--   reference_cell_id  text; what is taken away
-- left out: prompts, decoding and model revision are compared but for relaxed_evaluation, which is another evaluation by
--     design. Of several cells that could be the treated one counts that of the same run, then the latest. What has no
--     control has no own gain.
with treated as (
    select
        main.cell_id,
        treated.intervention,
        treated.cell_id as treated_cell_id
    from int_selected_cells as main
    inner join int_selected_cells as treated
        on
            main.model_id = treated.model_id
            and main.game = treated.game
            and main.pathway = treated.pathway
            and main.replicate = treated.replicate
            and main.base_seed = treated.base_seed
            and main.exploration_config_id = treated.exploration_config_id
            and main.exploration_episode_count = treated.exploration_episode_count
            and main.evaluation_interval = treated.evaluation_interval
            and main.evaluation_episode_count = treated.evaluation_episode_count
            and main.history_token_limit = treated.history_token_limit
            and main.history_cut = treated.history_cut
            -- but for what the intervention is there to change
            and (main.comparison_id = treated.comparison_id or treated.intervention = 'relaxed_evaluation')
            and (
                main.explorer_id is not distinct from treated.explorer_id
                or treated.intervention = 'expert_exploration'
            )
            and (main.training is not distinct from treated.training or treated.intervention = 'shuffled_scores')
    where main.intervention = 'main' and treated.intervention != 'main' and main.pathway != 'none'
    qualify row_number() over (
        partition by main.cell_id, treated.intervention
        order by main.run_id = treated.run_id desc, treated.requested_at desc, treated.cell_id asc
    ) = 1
),

contrasts as (
    select
        cell_id,
        'own' as contrast,
        cell_id as treated_cell_id,
        control_cell_id as reference_cell_id
    from control_gain
    where intervention = 'main' and control_cell_id is not null
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
        gains.control_cell_id as reference_cell_id
    from treated
    inner join control_gain as gains on treated.treated_cell_id = gains.cell_id
    where treated.intervention = 'relaxed_evaluation' and gains.control_cell_id is not null
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
