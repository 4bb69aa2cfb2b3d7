-- Rates with their intervals, one row a rate: over steps, over judged episodes, and over the checkpoints of trained
-- cells.
--
-- grain: cell, phase, rate
-- key: cell_id, phase, rate_name
-- columns:
--   cell_id      text
--   phase        text; exploration or evaluation
--   rate_name    text; usable of steps; over_claiming or under_claiming of judged episodes; above_start of checkpoints
--   event_count  steps, episodes or checkpoints
--   trial_count  the same; 0 where the rate is unknown
--   rate         0 to 1; null where trial_count is 0
--   rate_low     0 to 1; 95 % Wilson interval
--   rate_high    0 to 1
-- formula: (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), z = 1.960
-- source: Wilson (1927), Journal of the American Statistical Association 22, 209-212
-- left out: steps of one episode, and checkpoints of one cell, are taken as independent, which they are not quite: the
--     interval is a lower bound on what is not known.
with rates as (
    select
        cell_id,
        phase,
        'usable' as rate_name,
        ok_count + repaired_count as event_count,
        answered_count as trial_count
    from int_step_counts
    union all
    select
        judged.cell_id,
        'exploration' as phase,
        listed.rate_name,
        count(*) filter (
            where judged.is_success = (listed.rate_name = 'under_claiming')
            and (judged.success_belief > 0.5) = (listed.rate_name = 'over_claiming')
        ) as event_count,
        count(*) filter (where judged.is_success is not null and judged.success_belief is not null) as trial_count
    from int_judged_episodes as judged
    cross join (values ('over_claiming'), ('under_claiming')) as listed (rate_name)
    group by judged.cell_id, listed.rate_name
    union all
    select
        cell_id,
        'evaluation' as phase,
        'above_start' as rate_name,
        count(*) filter (where is_above_start) as event_count,
        count(is_above_start) as trial_count
    from int_updated_checkpoints
    group by cell_id
),

proportions as (
    select
        rates.cell_id,
        rates.phase,
        rates.rate_name,
        rates.event_count,
        rates.trial_count,
        rates.event_count / nullif(rates.trial_count, 0) as p,
        t.t_quantile * t.t_quantile / nullif(rates.trial_count, 0) as z2_over_n
    from rates
    cross join int_t_quantiles as t
    where t.degrees_of_freedom = 'infinity'
),

wilson as (
    select
        cell_id,
        phase,
        rate_name,
        event_count,
        trial_count,
        p,
        (p + z2_over_n / 2) / (1 + z2_over_n) as centre,
        sqrt(z2_over_n * (p * (1 - p) + z2_over_n / 4)) / (1 + z2_over_n) as half_width
    from proportions
)

select
    cell_id,
    phase,
    rate_name,
    event_count,
    trial_count,
    p as rate,
    case when p is not null then greatest(centre - half_width, 0) end as rate_low,
    case when p is not null then least(centre + half_width, 1) end as rate_high
from wilson
