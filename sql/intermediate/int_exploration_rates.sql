-- Rates of a cell's exploration with their intervals, one row a rate. Steps of one episode are not independent, so
-- whole episodes are what varies.
--
-- grain: cell, rate
-- key: cell_id, rate_name
-- columns:
--   cell_id        text
--   rate_name      text; new_state, repeated, informative or strategy_change
--   episode_count  episodes, or pairs of neighbours for strategy_change, from 1
--   rate           0 to 1; null where there is nothing to count
--   rate_low       0 to 1; 95 %; null below two episodes, or pairs
--   rate_high      0 to 1
-- formula: rate = events / trials, of all episodes: new states of steps; steps whose (state, action) the cell has had
--     before, of steps; informative of rewarded steps; 1 - sum over actions of min(p, q), the total variation distance
--     of the shares p and q that actions have in two neighbouring episodes, of pairs. standard error^2 = G / (G - 1)
--     sum over the G episodes of (events - rate trials)^2 / (sum of trials)^2. Wilson's interval with t(G - 1) for z
--     and as many trials as a share with this standard error rests on, rate (1 - rate) / standard error^2, at most
--     those counted; where all episodes are alike, G.
-- source: Wilson (1927), Journal of the American Statistical Association 22, 209-212; Franco, Little, Louis and Slud
--     (2019), Journal of Survey Statistics and Methodology 7, 334-364, for the number of trials; Cochran (1977),
--     Sampling Techniques, chapter 6, for the standard error of a ratio
-- left out: what another order of the episodes would have made new; and that neighbouring pairs share an episode
with neighbours as (
    select
        cell_id,
        actions,
        step_count,
        lead(actions) over (partition by cell_id order by episode_index) as next_actions,
        lead(step_count) over (partition by cell_id order by episode_index) as next_step_count
    from int_exploration_episodes
),

counts as (
    select
        episodes.cell_id,
        listed.rate_name,
        cast(case listed.rate_name
            when 'new_state' then episodes.new_state_count
            when 'repeated' then episodes.step_count - episodes.new_pair_count
            else episodes.informative_count
        end as double) as events,
        cast(case listed.rate_name
            when 'informative' then episodes.rewarded_count
            else episodes.step_count
        end as double) as trials
    from int_exploration_episodes as episodes
    cross join (values ('new_state'), ('repeated'), ('informative')) as listed (rate_name)
    union all
    select
        cell_id,
        'strategy_change' as rate_name,
        1 - list_sum(list_transform(
            map_keys(actions), lambda a: least(actions[a] / step_count, coalesce(next_actions[a] / next_step_count, 0))
        )) as events,
        1.0 as trials
    from neighbours
    where next_actions is not null
),

ratios as (
    select
        *,
        sum(events) over (partition by cell_id, rate_name)
        / nullif(sum(trials) over (partition by cell_id, rate_name), 0) as rate
    from counts
),

errors as (
    select
        cell_id,
        rate_name,
        rate,
        count(*) as episode_count,
        sum(trials) as trial_count,
        sqrt(count(*) / nullif(count(*) - 1, 0) * sum(pow(events - rate * trials, 2)))
        / nullif(sum(trials), 0) as standard_error
    from ratios
    group by cell_id, rate_name, rate
),

effective as (
    select
        errors.cell_id,
        errors.rate_name,
        errors.rate,
        errors.episode_count,
        t.t_quantile * t.t_quantile
        / case
            -- equal shares may differ by rounding
            when errors.standard_error < 1e-9 then errors.episode_count
            else least(errors.rate * (1 - errors.rate) / pow(errors.standard_error, 2), errors.trial_count)
        end as z2_over_n
    from errors
    asof left join int_t_quantiles as t on errors.episode_count - 1 >= t.degrees_of_freedom
),

wilson as (
    select
        cell_id,
        rate_name,
        episode_count,
        rate,
        (rate + z2_over_n / 2) / (1 + z2_over_n) as centre,
        sqrt(z2_over_n * (rate * (1 - rate) + z2_over_n / 4)) / (1 + z2_over_n) as reach
    from effective
)

select
    cell_id,
    rate_name,
    episode_count,
    rate,
    case when reach is not null then greatest(centre - reach, 0) end as rate_low,
    case when reach is not null then least(centre + reach, 1) end as rate_high
from wilson
