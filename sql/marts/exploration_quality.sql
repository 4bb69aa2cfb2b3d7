-- Exploration quality: how well a cell's agent tested itself, before any of it was judged or carried on.
--
-- grain: cell that explores
-- key: cell_id
-- columns:
--   cell_id                text
--   model_id               text
--   game                   text
--   pathway                text
--   intervention           text
--   replicate              integer, from 0
--   explorer_id            text; who explored in the model's place; null where it did itself
--   episode_count          exploration episodes with a reply, from 0
--   step_count             their steps with a reply
--   state_count            different states, from 0
--   new_state_share        0 to 1; state_count of step_count; null without steps
--   new_state_share_low    0 to 1; 95 %, by episodes, see int_exploration_rates; null below two episodes
--   new_state_share_high   0 to 1
--   action_count           different actions, from 0
--   action_share           0 to 1; action_count of step_count; a count of names, so that it has no interval
--   repetition             0 to 1; steps whose action was taken in the same state before
--   repetition_low         0 to 1
--   repetition_high        0 to 1
--   rewarded_count         steps with a verifier reward
--   positive_count         of these, steps with a reward above 0
--   surprising_count       of these, steps whose self-score is off by more than a quarter of the range of rewards
--   informative_rate       0 to 1; of rewarded steps, those that are positive or surprising; null without any
--   informative_rate_low   0 to 1
--   informative_rate_high  0 to 1
--   strategy_change        0 to 1; how far the shares of the actions move from an episode to the next, on average
--   strategy_change_low    0 to 1
--   strategy_change_high   0 to 1
--   pair_count             pairs of neighbouring episodes that strategy_change rests on, from 0
--   valid_count            episodes with a final score
--   best_score             game's unit; highest final score; null without any
--   mean_score             game's unit
--   mean_score_low         game's unit; 95 % t interval; null below two episodes and where all scores are equal
--   mean_score_high        game's unit
--   normalised_best        0 is the random player, 1 the expert, unclipped; null without anchors
--   normalised_mean        the same scale
-- formula: normalised = (score - random) / (expert - random), anchors of the exploration configuration; the others: see
--     int_exploration_episodes and int_exploration_rates
-- left out: how good the model's own testing is where another explored for it. Two episodes of one and the same policy
--     differ by chance, the more so the fewer their steps: strategy_change compares agents in one game, and where an
--     action names a place (minesweeper, chess) it is near 1 for all.
with totals as (
    select
        cell_id,
        count(*) as episode_count,
        cast(sum(step_count) as bigint) as step_count,
        cast(sum(new_state_count) as bigint) as state_count,
        len(list_distinct(flatten(list(map_keys(actions))))) as action_count,
        cast(sum(rewarded_count) as bigint) as rewarded_count,
        cast(sum(positive_count) as bigint) as positive_count,
        cast(sum(surprising_count) as bigint) as surprising_count
    from int_exploration_episodes
    group by cell_id
),

rates as (
    select
        cell_id,
        max(rate) filter (where rate_name = 'new_state') as new_state_share,
        max(rate_low) filter (where rate_name = 'new_state') as new_state_share_low,
        max(rate_high) filter (where rate_name = 'new_state') as new_state_share_high,
        max(rate) filter (where rate_name = 'repeated') as repetition,
        max(rate_low) filter (where rate_name = 'repeated') as repetition_low,
        max(rate_high) filter (where rate_name = 'repeated') as repetition_high,
        max(rate) filter (where rate_name = 'informative') as informative_rate,
        max(rate_low) filter (where rate_name = 'informative') as informative_rate_low,
        max(rate_high) filter (where rate_name = 'informative') as informative_rate_high,
        max(rate) filter (where rate_name = 'strategy_change') as strategy_change,
        max(rate_low) filter (where rate_name = 'strategy_change') as strategy_change_low,
        max(rate_high) filter (where rate_name = 'strategy_change') as strategy_change_high,
        max(episode_count) filter (where rate_name = 'strategy_change') as pair_count
    from int_exploration_rates
    group by cell_id
),

scores as (
    select
        cell_id,
        count(final_score) as valid_count,
        max(final_score) as best_score,
        avg(final_score) as mean_score,
        nullif(stddev_samp(final_score), 0) / sqrt(count(final_score)) as standard_error,
        count(final_score) - 1 as degrees_of_freedom
    from int_cell_episodes
    where phase = 'exploration'
    group by cell_id
),

intervals as (
    select
        scores.*,
        scores.mean_score - t.t_quantile * scores.standard_error as mean_score_low,
        scores.mean_score + t.t_quantile * scores.standard_error as mean_score_high
    from scores
    asof left join int_t_quantiles as t on scores.degrees_of_freedom >= t.degrees_of_freedom
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    cells.explorer_id,
    coalesce(totals.episode_count, 0) as episode_count,
    coalesce(totals.step_count, 0) as step_count,
    coalesce(totals.state_count, 0) as state_count,
    rates.new_state_share,
    rates.new_state_share_low,
    rates.new_state_share_high,
    coalesce(totals.action_count, 0) as action_count,
    totals.action_count / totals.step_count as action_share,
    rates.repetition,
    rates.repetition_low,
    rates.repetition_high,
    coalesce(totals.rewarded_count, 0) as rewarded_count,
    coalesce(totals.positive_count, 0) as positive_count,
    coalesce(totals.surprising_count, 0) as surprising_count,
    rates.informative_rate,
    rates.informative_rate_low,
    rates.informative_rate_high,
    rates.strategy_change,
    rates.strategy_change_low,
    rates.strategy_change_high,
    coalesce(rates.pair_count, 0) as pair_count,
    coalesce(intervals.valid_count, 0) as valid_count,
    intervals.best_score,
    intervals.mean_score,
    intervals.mean_score_low,
    intervals.mean_score_high,
    (intervals.best_score - anchors.random_mean) / anchors.anchor_range as normalised_best,
    (intervals.mean_score - anchors.random_mean) / anchors.anchor_range as normalised_mean
from int_selected_cells as cells
left join totals on cells.cell_id = totals.cell_id
left join rates on cells.cell_id = rates.cell_id
left join intervals on cells.cell_id = intervals.cell_id
left join int_anchors as anchors on cells.exploration_config_id = anchors.config_id
where cells.exploration_episode_count > 0
