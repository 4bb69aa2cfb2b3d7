-- What can be said of a model in a game: whether it improves and by which pathway, whether it believes in successes
-- that are none, and whether what it gains in exploration is gained held-out.
--
-- grain: model, game
-- key: model_id, game
-- columns:
--   model_id                  text
--   game                      text
--   verdict                   text; improves, worse, mixed (some pathways improve, others get worse), not_shown,
--       too_few (of all pathways) or control_only (there is no other pathway); null where nothing has been judged
--   improved_pathways         text; with commas; null where there is none, as the next three
--   worse_pathways            text
--   unshown_pathways          text; no improvement shown
--   too_few_pathways          text; too few episodes to say
--   compared_count            cells of the run that the verdicts are corrected for; null where nothing is compared
--   memory_over_history       game's unit; gain with memory minus gain with history; null without both
--   memory_over_history_low   game's unit; 95 % interval of this one comparison; null where there is none
--   memory_over_history_high  game's unit
--   ahead                     text; memory or history where that interval excludes 0, else not_told; null without it
--   belief_count              explored episodes with a belief in success beside a verdict of the verifier
--   over_claim_count          of these, believed a success (above 0.5) that is none
--   over_claiming             0 to 1; null where belief_count is 0
--   over_claiming_low         0 to 1; 95 % Wilson interval
--   over_claiming_high        0 to 1
--   belief                    text; over_claims or sound where that interval lies above or below 0.25, else not_told;
--       null without beliefs
--   untransferred_pathways    text; scores in exploration rise, and no held-out improvement is shown; null where there
--       is none
-- formula: verdicts are those of pathway_verdict, with its intervals; over_claiming = over_claim_count / belief_count
-- source: Wilson (1927), Journal of the American Statistical Association 22, 209-212
-- left out: interventions. Beliefs of all pathways are taken together, and episodes of one cell as independent, which
--     they are not quite.
with places as (
    select distinct
        model_id,
        game
    from int_selected_cells
    where intervention = 'main'
),

judged as (
    select
        model_id,
        game,
        count(verdict) as judged_count,
        max(compared_count) as compared_count,
        string_agg(distinct pathway, ', ' order by pathway) filter (where verdict = 'improves_beyond_noise')
            as improved_pathways,
        string_agg(distinct pathway, ', ' order by pathway) filter (where verdict = 'worse') as worse_pathways,
        string_agg(distinct pathway, ', ' order by pathway) filter (where verdict = 'no_improvement_shown')
            as unshown_pathways,
        string_agg(distinct pathway, ', ' order by pathway) filter (where verdict = 'too_few_episodes')
            as too_few_pathways,
        string_agg(distinct pathway, ', ' order by pathway) filter (
            where exploration = 'rises' and verdict in ('no_improvement_shown', 'worse')
        ) as untransferred_pathways
    from pathway_verdict
    group by model_id, game
),

contrasts as (
    select
        verdicts.model_id,
        verdicts.game,
        found.estimate,
        found.low,
        found.high
    from pathway_verdict as verdicts
    inner join int_replicate_series as series on verdicts.series_id = series.series_id
    inner join stg_intervals as found on series.cell_id = found.cell_id
    where
        verdicts.pathway = 'memory'
        and verdicts.explorer_id = verdicts.model_id
        and found.contrast = 'over_history'
        and found.metric = 'gain'
        and found.scope = case when verdicts.replicate_count > 1 then 'replicates' else 'cell' end
),

episodes as (
    select distinct
        cells.model_id,
        cells.game,
        judgments.stage_key,
        judgments.episode_id,
        judgments.success_belief > 0.5 and not judgments.is_success as is_over_claimed
    from int_judged_episodes as judgments
    inner join int_selected_cells as cells on judgments.cell_id = cells.cell_id
    where
        cells.intervention = 'main'
        and judgments.success_belief is not null
        and judgments.is_success is not null
),

beliefs as (
    select
        model_id,
        game,
        count(*) as belief_count,
        count(*) filter (where is_over_claimed) as over_claim_count,
        count(*) filter (where is_over_claimed) / count(*) as p
    from episodes
    group by model_id, game
),

wilson as (
    select
        beliefs.model_id,
        beliefs.game,
        beliefs.belief_count,
        beliefs.over_claim_count,
        beliefs.p,
        t.t_quantile * t.t_quantile / beliefs.belief_count as z2_over_n,
        (beliefs.p + z2_over_n / 2) / (1 + z2_over_n) as centre,
        sqrt(z2_over_n * (beliefs.p * (1 - beliefs.p) + z2_over_n / 4)) / (1 + z2_over_n) as half_width
    from beliefs
    cross join int_t_quantiles as t
    where t.degrees_of_freedom = 'infinity'
)

select
    places.model_id,
    places.game,
    case
        when judged.model_id is null then 'control_only'
        when judged.improved_pathways is not null and judged.worse_pathways is not null then 'mixed'
        when judged.improved_pathways is not null then 'improves'
        when judged.worse_pathways is not null then 'worse'
        when judged.unshown_pathways is not null then 'not_shown'
        when judged.too_few_pathways is not null then 'too_few'
    end as verdict,
    judged.improved_pathways,
    judged.worse_pathways,
    judged.unshown_pathways,
    judged.too_few_pathways,
    judged.compared_count,
    contrasts.estimate as memory_over_history,
    contrasts.low as memory_over_history_low,
    contrasts.high as memory_over_history_high,
    case
        when contrasts.low > 0 then 'memory'
        when contrasts.high < 0 then 'history'
        when contrasts.low is not null then 'not_told'
    end as ahead,
    coalesce(wilson.belief_count, 0) as belief_count,
    coalesce(wilson.over_claim_count, 0) as over_claim_count,
    wilson.p as over_claiming,
    greatest(wilson.centre - wilson.half_width, 0) as over_claiming_low,
    least(wilson.centre + wilson.half_width, 1) as over_claiming_high,
    case
        when wilson.centre - wilson.half_width > 0.25 then 'over_claims'
        when wilson.centre + wilson.half_width < 0.25 then 'sound'
        when wilson.p is not null then 'not_told'
    end as belief,
    judged.untransferred_pathways
from places
left join judged on places.model_id = judged.model_id and places.game = judged.game
left join contrasts on places.model_id = contrasts.model_id and places.game = contrasts.game
left join wilson on places.model_id = wilson.model_id and places.game = wilson.game
