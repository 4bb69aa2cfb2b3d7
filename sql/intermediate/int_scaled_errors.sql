-- Error of the self-scores on scales set by what was given: both self-scores and rewards are stretched to 0 to 1 by a
-- low and a high value of their game before they are compared.
--
-- grain: cell, phase
-- key: cell_id, phase
-- columns:
--   cell_id        text
--   phase          text; exploration or evaluation
--   nmae_observed  0 to 1; between the lowest and the highest value, as published; null where all self-scores or all
--       rewards of the game are equal
--   nmae_robust    0 to 1; between the 1st and the 99th percentile (interpolated), what lies beyond them set to 0 or 1:
--       a single wild self-score does not set the scale; null where two percentiles are equal
-- formula: mean |(s - s_low) / (s_high - s_low) - (r - r_low) / (r_high - r_low)|, low and high over all scored steps
--     of the game in the same phase, all selected cells together, but those with an intervention apart
-- source: S3Gym, arXiv 2608.31100, for nmae_observed
-- left out: a comparison across selections; adding a cell can move the ends, and with them every row.
with pairs as (
    select
        pairs.cell_id,
        cells.game || if(cells.intervention = 'main', '', ' with an intervention') as pool,
        pairs.phase,
        pairs.self_score,
        pairs.verifier_reward,
        pairs.step_count
    from int_score_pairs as pairs
    inner join int_selected_cells as cells on pairs.cell_id = cells.cell_id
),

given as (
    select
        pool,
        phase,
        unnest(['self_score', 'reward']) as quantity,
        unnest([self_score, verifier_reward]) as given_value,
        step_count
    from pairs
),

pooled as (
    select
        pool,
        phase,
        quantity,
        given_value,
        sum(step_count) as step_count
    from given
    group by pool, phase, quantity, given_value
),

ordered as (
    select
        *,
        sum(step_count) over (partition by pool, phase, quantity order by given_value) as steps_so_far,
        sum(step_count) over (partition by pool, phase, quantity) as steps
    from pooled
),

ends as (
    select
        ordered.pool,
        ordered.phase,
        ordered.quantity,
        wanted.scale,
        wanted.side,
        -- a share of the way from the first step to the last lies at one, or between two
        cast(max(wanted.portion * (ordered.steps - 1)) as double) as place,
        min(ordered.given_value) filter (where ordered.steps_so_far > floor(wanted.portion * (ordered.steps - 1)))
            as lower_value,
        min(ordered.given_value) filter (where ordered.steps_so_far > ceil(wanted.portion * (ordered.steps - 1)))
            as upper_value
    from ordered
    cross join (
        values ('observed', 'low', 0.0), ('observed', 'high', 1.0), ('robust', 'low', 0.01), ('robust', 'high', 0.99)
    ) as wanted (scale, side, portion)
    group by ordered.pool, ordered.phase, ordered.quantity, wanted.scale, wanted.side
),

bounds as (
    select
        pool,
        phase,
        scale,
        quantity,
        max(lower_value + (place - floor(place)) * (upper_value - lower_value)) filter (where side = 'low') as low,
        max(lower_value + (place - floor(place)) * (upper_value - lower_value)) filter (where side = 'high') as high
    from ends
    group by pool, phase, scale, quantity
),

placed as (
    select
        pairs.cell_id,
        pairs.phase,
        pairs.step_count,
        rewards.scale,
        -- greatest() passes over a null, so a scale without a range is asked for first
        case
            when rewards.high > rewards.low and self_scores.high > self_scores.low
                then abs(
                    least(greatest((pairs.self_score - self_scores.low) / (self_scores.high - self_scores.low), 0), 1)
                    - least(greatest((pairs.verifier_reward - rewards.low) / (rewards.high - rewards.low), 0), 1)
                )
        end as scaled_error
    from pairs
    inner join bounds as rewards
        on pairs.pool = rewards.pool and pairs.phase = rewards.phase and rewards.quantity = 'reward'
    inner join bounds as self_scores
        on
            rewards.pool = self_scores.pool
            and rewards.phase = self_scores.phase
            and rewards.scale = self_scores.scale
            and self_scores.quantity = 'self_score'
)

select
    cell_id,
    phase,
    sum(scaled_error * step_count) filter (where scale = 'observed') / sum(step_count) filter (where scale = 'observed')
        as nmae_observed,
    sum(scaled_error * step_count) filter (where scale = 'robust') / sum(step_count) filter (where scale = 'robust')
        as nmae_robust
from placed
group by cell_id, phase
