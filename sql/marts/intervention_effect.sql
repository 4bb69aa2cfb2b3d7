-- What a replaced link is worth: paired differences on the same instances, and a word for each.
--
-- grain: chain, contrast
-- key: chain_id, contrast
-- columns:
--   chain_id               text; a cell without an intervention, or all of a model and game that carry text
--   model_id               text
--   game                   text
--   pathway                text; '*' for all that carry text
--   replicate              integer, from 0
--   contrast               text; own, an intervention, or reference_over_placebo; see int_intervention_contrasts
--   pair_count             pairs of episodes, from 1
--   cluster_count          independent ones among them
--   mean_difference        game's unit
--   standard_error         game's unit, above 0; null where nothing is left to vary
--   difference_low         game's unit; 95 % t interval of this one comparison; null where there is none
--   difference_high        game's unit
--   normalised_difference  as a share of the way from the random to the expert player; null without anchors
--   relevant_difference    game's unit, above 0; half of that way; null without anchors
--   p_value                above 0 to 1; two-sided permutation test; null where it has not been computed
--   p_holm                 above 0 to 1
--   compared_count         tests that p_holm is corrected for
--   gained_count           independent pairs or groups of pairs whose mean difference is above 0
--   lost_count             those below 0
--   effect                 text; helps, hurts, not (an improvement of relevant_difference is excluded) or open (it is
--       not); null where p_value is
--   decisive_episodes      held-out episodes a checkpoint that would decide; null unless effect is open and the size of
--       the error is known
-- formula: intervals as in int_differences. helps: p_holm <= 0.05, the difference is above 0, and its interval leaves
--     out 0 or nothing is lost anywhere: a t interval reaches below 0 as well where some instances gain much and the
--     others nothing. hurts alike. not: neither, and the interval ends below relevant_difference, or there is no
--     difference at all. p_holm by Holm's steps over the run, in families: own gains; what verdicts rest on
--     (oracle_judge, expert_exploration, reference_memory, relaxed_evaluation); the other three, which can only refute
--     one. Chains of '*' and of single cells are corrected apart: who looks at both looks at the same pairs.
--     decisive_episodes = evaluation_episode_count (2.802 standard_error / relevant_difference)^2, which tells a true
--     difference of 0 from relevant_difference, and the other way round, with a chance of 80 %; in whole rounds of all
--     instances where a game has few, and one more than were played at least.
-- source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70; Bloom (1995), Evaluation Review 19, 547-556
-- left out: an effect smaller than half of the way may be there where it says not. What was explored is taken as it
--     was: replicates, which have chains of their own, vary that.
with chains as (
    select
        chains.chain_id,
        chains.pathway,
        min(chains.cell_id) as cell_id
    from int_intervention_chains as chains
    group by chains.chain_id, chains.pathway
),

contrasts as (
    select
        chain_id,
        contrast,
        min(treated_cell_id) as treated_cell_id
    from int_intervention_contrasts
    group by chain_id, contrast
),

instances as (
    select
        difference_id,
        cluster_id,
        avg(difference) as difference
    from int_intervention_pairs
    group by difference_id, cluster_id
),

signs as (
    select
        difference_id,
        count(*) filter (where difference > 0) as gained_count,
        count(*) filter (where difference < 0) as lost_count
    from instances
    group by difference_id
),

measured as (
    select
        chains.chain_id,
        cells.run_id,
        cells.model_id,
        cells.game,
        chains.pathway,
        cells.replicate,
        cells.evaluation_episode_count,
        contrasts.contrast,
        case
            when contrasts.contrast = 'own' then 'own'
            when contrasts.contrast in (
                'oracle_judge', 'expert_exploration', 'reference_memory', 'relaxed_evaluation'
            ) then 'deciding'
            else 'refuting'
        end as test_family,
        differences.*,
        signs.gained_count,
        signs.lost_count,
        differences.mean_difference / anchors.anchor_range as normalised_difference,
        abs(anchors.anchor_range) / 2 as relevant_difference,
        tests.p_value
    from contrasts
    inner join chains on contrasts.chain_id = chains.chain_id
    inner join int_selected_cells as cells on chains.cell_id = cells.cell_id
    inner join int_selected_cells as treated on contrasts.treated_cell_id = treated.cell_id
    inner join int_differences as differences
        on concat_ws('|', 'intervention', contrasts.chain_id, contrasts.contrast) = differences.difference_id
    inner join signs on differences.difference_id = signs.difference_id
    left join stg_intervention_tests as tests on differences.difference_id = tests.difference_id
    left join int_anchors as anchors on treated.evaluation_config_id = anchors.config_id
),

ranked as (
    select
        *,
        count(p_value) over (partition by run_id, test_family, pathway = '*') as compared_count,
        row_number() over (
            partition by run_id, test_family, pathway = '*' order by p_value asc nulls last, difference_id asc
        ) as p_rank
    from measured
),

corrected as (
    select
        *,
        least(1, max((compared_count - p_rank + 1) * p_value) over (
            partition by run_id, test_family, pathway = '*' order by p_rank
        )) as p_holm
    from ranked
),

judged as (
    select
        *,
        case
            when p_value is null then null
            when p_holm <= 0.05 and mean_difference > 0 and (is_beyond_noise or lost_count = 0) then 'helps'
            when p_holm <= 0.05 and mean_difference < 0 and (is_beyond_noise or gained_count = 0) then 'hurts'
            when difference_high < relevant_difference then 'not'
            when standard_error is null and not is_beyond_noise then 'not'
            else 'open'
        end as effect
    from corrected
)

select
    chain_id,
    model_id,
    game,
    pathway,
    replicate,
    contrast,
    pair_count,
    cluster_count,
    mean_difference,
    standard_error,
    difference_low,
    difference_high,
    normalised_difference,
    relevant_difference,
    p_value,
    case when p_value is not null then p_holm end as p_holm,
    compared_count,
    gained_count,
    lost_count,
    effect,
    case
        when effect = 'open' and standard_error / relevant_difference is not null
            then stratum_count * cast(greatest(
                ceil(evaluation_episode_count * pow(2.802 * standard_error / relevant_difference, 2) / stratum_count),
                floor(evaluation_episode_count / stratum_count) + 1
            ) as bigint)
    end as decisive_episodes
from judged
