-- Where it breaks: which link of a chain fails, told by what happens when one is replaced.
--
-- grain: chain: a cell without an intervention, or all of a model and game that carry experience as text
-- key: chain_id
-- columns:
--   chain_id              text; see int_intervention_chains
--   model_id              text
--   game                  text
--   pathway               text; '*' for all that carry text together
--   replicate             integer, from 0
--   cell_count            cells of the chain, from 1
--   verdict               text; none (it improves already), judging, testing, consolidation, transfer,
--       execution_or_transfer or not_enough_evidence; null where not_asked says what is missing, or nothing has been
--       tested yet
--   not_asked             text; the intervention that would decide next, or none for the control; null where there is
--       a verdict. Weights cannot read a guide: theirs stays open once testing and judging are excluded
--   undecided             text; with commas, contrasts whose intervals are too wide; null unless not_enough_evidence
--   decisive_episodes     held-out episodes a checkpoint that would decide all of them, see intervention_effect; null
--       where nothing is undecided or the size of an error is not known
--   shown_contrast        text; the contrast that the verdict rests on; null without one
--   treated_episode_id    text; an episode with the link replaced, where the difference of scores is nearest to the
--       mean at the last checkpoint; null without a verdict
--   reference_episode_id  text; its partner on the same instance
--   own_gain              game's unit; with its own experience over none (the control); null where not asked
--   own_low               game's unit; 95 % interval; null where there is none
--   own_high              game's unit
--   own_effect            text; helps, hurts, not or open, see intervention_effect
--   oracle_gain           game's unit; with the verifier's rewards in place of its scores over without; null where not
--       asked
--   oracle_low            game's unit; 95 % interval; null where there is none
--   oracle_high           game's unit
--   oracle_effect         text; helps, hurts, not or open, see intervention_effect
--   shuffled_gain         game's unit; with its scores dealt anew over without; null where not asked
--   shuffled_low          game's unit; 95 % interval; null where there is none
--   shuffled_high         game's unit
--   shuffled_effect       text; helps, hurts, not or open, see intervention_effect
--   expert_gain           game's unit; with the expert's exploration over without; null where not asked
--   expert_low            game's unit; 95 % interval; null where there is none
--   expert_high           game's unit
--   expert_effect         text; helps, hurts, not or open, see intervention_effect
--   reference_gain        game's unit; with our guide in place of its experience over without; null where not asked
--   reference_low         game's unit; 95 % interval; null where there is none
--   reference_high        game's unit
--   reference_effect      text; helps, hurts, not or open, see intervention_effect
--   placebo_gain          game's unit; with another game's guide over without; null where not asked
--   placebo_low           game's unit; 95 % interval; null where there is none
--   placebo_high          game's unit
--   placebo_effect        text; helps, hurts, not or open, see intervention_effect
--   over_placebo_gain     game's unit; with our guide over with another game's; null where not asked
--   over_placebo_low      game's unit; 95 % interval; null where there is none
--   over_placebo_high     game's unit
--   over_placebo_effect   text; helps, hurts, not or open, see intervention_effect
--   relaxed_gain          game's unit; with its own experience over none, both under the rules of exploration; null
--       where not asked
--   relaxed_low           game's unit; 95 % interval; null where there is none
--   relaxed_high          game's unit
--   relaxed_effect        text; helps, hurts, not or open, see intervention_effect
-- formula: the first that holds, by effects with Holm's correction over the run:
--     1. none: own helps.
--     2. judging: oracle helps, and shuffled does not hurt. Before testing, for the expert brings exact scores with
--        it and so helps bad judges as well, while the best scores of an exploration that shows nothing help nobody.
--     3. testing: expert helps, and oracle is excluded.
--     4. consolidation: reference helps, and more than the placebo; oracle and expert are excluded. After both, for a
--        guide stands in for them too.
--     5. transfer: relaxed helps; own, oracle, expert and reference are excluded. What was learnt is used where the
--        rules forgive.
--     6. execution_or_transfer: the same without relaxed.
--     7. not_enough_evidence: else. Excluded is an improvement of half the way from the random to the expert player:
--        the effect is not, or hurts.
-- left out: a second broken link. The verdict names the last one that had to be replaced, and those before it, whose
--     replacement came with it, are not told.
with chains as (
    select
        chains.chain_id,
        min(chains.cell_id) as cell_id,
        min(chains.pathway) as pathway,
        count(*) as cell_count
    from int_intervention_chains as chains
    group by chains.chain_id
),

effects as (
    select
        chain_id,
        max(mean_difference) filter (where contrast = 'own') as own_gain,
        max(difference_low) filter (where contrast = 'own') as own_low,
        max(difference_high) filter (where contrast = 'own') as own_high,
        max(effect) filter (where contrast = 'own') as own_effect,
        max(mean_difference) filter (where contrast = 'oracle_judge') as oracle_gain,
        max(difference_low) filter (where contrast = 'oracle_judge') as oracle_low,
        max(difference_high) filter (where contrast = 'oracle_judge') as oracle_high,
        max(effect) filter (where contrast = 'oracle_judge') as oracle_effect,
        max(mean_difference) filter (where contrast = 'shuffled_scores') as shuffled_gain,
        max(difference_low) filter (where contrast = 'shuffled_scores') as shuffled_low,
        max(difference_high) filter (where contrast = 'shuffled_scores') as shuffled_high,
        max(effect) filter (where contrast = 'shuffled_scores') as shuffled_effect,
        max(mean_difference) filter (where contrast = 'expert_exploration') as expert_gain,
        max(difference_low) filter (where contrast = 'expert_exploration') as expert_low,
        max(difference_high) filter (where contrast = 'expert_exploration') as expert_high,
        max(effect) filter (where contrast = 'expert_exploration') as expert_effect,
        max(mean_difference) filter (where contrast = 'reference_memory') as reference_gain,
        max(difference_low) filter (where contrast = 'reference_memory') as reference_low,
        max(difference_high) filter (where contrast = 'reference_memory') as reference_high,
        max(effect) filter (where contrast = 'reference_memory') as reference_effect,
        max(mean_difference) filter (where contrast = 'placebo_memory') as placebo_gain,
        max(difference_low) filter (where contrast = 'placebo_memory') as placebo_low,
        max(difference_high) filter (where contrast = 'placebo_memory') as placebo_high,
        max(effect) filter (where contrast = 'placebo_memory') as placebo_effect,
        max(mean_difference) filter (where contrast = 'reference_over_placebo') as over_placebo_gain,
        max(difference_low) filter (where contrast = 'reference_over_placebo') as over_placebo_low,
        max(difference_high) filter (where contrast = 'reference_over_placebo') as over_placebo_high,
        max(effect) filter (where contrast = 'reference_over_placebo') as over_placebo_effect,
        max(mean_difference) filter (where contrast = 'relaxed_evaluation') as relaxed_gain,
        max(difference_low) filter (where contrast = 'relaxed_evaluation') as relaxed_low,
        max(difference_high) filter (where contrast = 'relaxed_evaluation') as relaxed_high,
        max(effect) filter (where contrast = 'relaxed_evaluation') as relaxed_effect
    from intervention_effect
    group by chain_id
),

outcomes as (
    select
        *,
        oracle_effect in ('not', 'hurts') as is_oracle_excluded,
        oracle_effect in ('not', 'hurts') and expert_effect in ('not', 'hurts') as is_expert_excluded,
        case
            when own_gain is null then 'ask none'
            when own_effect is null then null
            when own_effect = 'helps' then 'none'
            when oracle_effect is null then 'ask oracle_judge'
            when oracle_effect = 'helps' and shuffled_effect is null then 'ask shuffled_scores'
            when oracle_effect = 'helps' and shuffled_effect != 'hurts' then 'judging'
            when expert_effect is null then 'ask expert_exploration'
            when expert_effect = 'helps' and is_oracle_excluded then 'testing'
            when reference_effect is null then 'ask reference_memory'
            when reference_effect = 'helps' and over_placebo_effect is null then 'ask placebo_memory'
            when reference_effect = 'helps' and over_placebo_effect = 'helps' and is_expert_excluded
                then 'consolidation'
            when
                not (own_effect in ('not', 'hurts') and reference_effect in ('not', 'hurts'))
                or not is_expert_excluded
                then 'not_enough_evidence'
            when relaxed_effect = 'helps' then 'transfer'
            else 'execution_or_transfer'
        end as outcome
    from effects
),

verdicts as (
    select
        chains.*,
        outcomes.* exclude (chain_id),
        case when not starts_with(outcomes.outcome, 'ask ') then outcomes.outcome end as verdict,
        case when starts_with(outcomes.outcome, 'ask ') then outcomes.outcome[5:] end as not_asked,
        case outcomes.outcome
            when 'none' then 'own'
            when 'judging' then 'oracle_judge'
            when 'testing' then 'expert_exploration'
            when 'consolidation' then 'reference_memory'
            when 'transfer' then 'relaxed_evaluation'
            when 'execution_or_transfer' then 'reference_memory'
        end as shown_contrast
    from chains
    left join outcomes on chains.chain_id = outcomes.chain_id
),

open_effects as (
    select
        verdicts.chain_id,
        string_agg(effects.contrast, ', ' order by effects.contrast) as undecided,
        max(effects.decisive_episodes) as decisive_episodes
    from verdicts
    inner join intervention_effect as effects on verdicts.chain_id = effects.chain_id
    where
        verdicts.verdict = 'not_enough_evidence'
        and effects.effect = 'open'
        and effects.contrast in (
            'own', 'oracle_judge', 'expert_exploration', 'reference_memory', 'reference_over_placebo'
        )
    group by verdicts.chain_id
),

shown as (
    select
        verdicts.chain_id,
        pairs.treated_episode_id,
        pairs.reference_episode_id
    from verdicts
    inner join int_intervention_pairs as pairs
        on verdicts.chain_id = pairs.chain_id and verdicts.shown_contrast = pairs.contrast
    inner join intervention_effect as effects
        on verdicts.chain_id = effects.chain_id and verdicts.shown_contrast = effects.contrast
    qualify row_number() over (
        partition by verdicts.chain_id
        order by
            pairs.checkpoint desc,
            abs(pairs.difference - effects.mean_difference) asc,
            pairs.seed asc,
            pairs.cell_id asc
    ) = 1
)

select
    verdicts.chain_id,
    cells.model_id,
    cells.game,
    verdicts.pathway,
    cells.replicate,
    verdicts.cell_count,
    verdicts.verdict,
    verdicts.not_asked,
    open_effects.undecided,
    open_effects.decisive_episodes,
    verdicts.shown_contrast,
    shown.treated_episode_id,
    shown.reference_episode_id,
    verdicts.own_gain,
    verdicts.own_low,
    verdicts.own_high,
    verdicts.own_effect,
    verdicts.oracle_gain,
    verdicts.oracle_low,
    verdicts.oracle_high,
    verdicts.oracle_effect,
    verdicts.shuffled_gain,
    verdicts.shuffled_low,
    verdicts.shuffled_high,
    verdicts.shuffled_effect,
    verdicts.expert_gain,
    verdicts.expert_low,
    verdicts.expert_high,
    verdicts.expert_effect,
    verdicts.reference_gain,
    verdicts.reference_low,
    verdicts.reference_high,
    verdicts.reference_effect,
    verdicts.placebo_gain,
    verdicts.placebo_low,
    verdicts.placebo_high,
    verdicts.placebo_effect,
    verdicts.over_placebo_gain,
    verdicts.over_placebo_low,
    verdicts.over_placebo_high,
    verdicts.over_placebo_effect,
    verdicts.relaxed_gain,
    verdicts.relaxed_low,
    verdicts.relaxed_high,
    verdicts.relaxed_effect
from verdicts
inner join int_selected_cells as cells on verdicts.cell_id = cells.cell_id
left join open_effects on verdicts.chain_id = open_effects.chain_id
left join shown on verdicts.chain_id = shown.chain_id
