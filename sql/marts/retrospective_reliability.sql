-- Retrospective reliability: whether the agent, looking back at an episode, knows how it went.
--
-- grain: cell with judged episodes
-- key: cell_id
-- columns:
--   cell_id                    text
--   model_id                   text
--   game                       text
--   pathway                    text
--   intervention               text
--   replicate                  integer, from 0
--   judgment_count             episodes the agent was asked about, from 1
--   answered_count             of these, calls that got an answer
--   unanswered_count           calls that failed
--   unreadable_belief_count    answers without a probability of success
--   unreadable_score_count     answers without a final score
--   belief_count               probabilities beside a verdict of the verifier; mean_belief to brier are over these
--   success_count              of these, episodes that the verifier calls a success
--   mean_belief                probability, 0 to 1
--   success_share              0 to 1; compares with mean_belief
--   over_claiming              0 to 1; belief above 0.5, and the verifier says no success
--   over_claiming_low          0 to 1; 95 % Wilson interval
--   over_claiming_high         0 to 1
--   under_claiming             0 to 1; belief not above 0.5, and the verifier says success
--   under_claiming_low         0 to 1; 95 % Wilson interval
--   under_claiming_high        0 to 1
--   ece                        0 to 1; expected calibration error; 0 is perfect
--   brier                      0 to 1; Brier score; 0 is perfect, 0.25 is what always saying 0.5 gets
--   score_count                final scores that the agent expected, beside the verifier's
--   mean_score_error           game's unit; expected - true final score, above 0 where it thinks too well of itself
--   mean_absolute_score_error  game's unit, from 0
-- formula: brier = mean (belief - success)^2, success being 0 or 1. ece = sum over ten bins of belief, each 0.1 wide,
--     of |sum of (belief - success)| / belief_count; 1 is in the last bin. Intervals as in int_rates.
-- source: Brier (1950), Monthly Weather Review 78, 1-3; Naeini, Cooper and Hauskrecht (2015), AAAI 29, 2901-2907;
--     Wilson (1927), Journal of the American Statistical Association 22, 209-212
-- left out: what could not be read, which is counted and judged neither right nor wrong. With few episodes ece is
--     above 0 by chance alone: compare it only between cells with like belief_count.
with counts as (
    select
        cell_id,
        count(*) as judgment_count,
        count(*) filter (where is_answered) as answered_count,
        count(*) filter (where is_answered and success_belief is null) as unreadable_belief_count,
        count(*) filter (where is_answered and expected_final_score is null) as unreadable_score_count,
        count(expected_final_score - final_score) as score_count,
        avg(expected_final_score - final_score) as mean_score_error,
        avg(abs(expected_final_score - final_score)) as mean_absolute_score_error
    from int_judged_episodes
    group by cell_id
),

believed as (
    select
        cell_id,
        success_belief,
        cast(is_success as integer) as success,
        least(floor(10 * success_belief), 9) as bin
    from int_judged_episodes
    where success_belief is not null and is_success is not null
),

bins as (
    select
        cell_id,
        bin,
        count(*) as belief_count,
        cast(sum(success) as bigint) as success_count,
        sum(success_belief) as belief_sum,
        abs(sum(success_belief - success)) as distance,
        sum((success_belief - success) * (success_belief - success)) as squares
    from believed
    group by cell_id, bin
),

beliefs as (
    select
        cell_id,
        cast(sum(belief_count) as bigint) as belief_count,
        cast(sum(success_count) as bigint) as success_count,
        sum(belief_sum) / sum(belief_count) as mean_belief,
        sum(success_count) / sum(belief_count) as success_share,
        sum(distance) / sum(belief_count) as ece,
        sum(squares) / sum(belief_count) as brier
    from bins
    group by cell_id
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    counts.judgment_count,
    counts.answered_count,
    counts.judgment_count - counts.answered_count as unanswered_count,
    counts.unreadable_belief_count,
    counts.unreadable_score_count,
    coalesce(beliefs.belief_count, 0) as belief_count,
    coalesce(beliefs.success_count, 0) as success_count,
    beliefs.mean_belief,
    beliefs.success_share,
    over_claims.rate as over_claiming,
    over_claims.rate_low as over_claiming_low,
    over_claims.rate_high as over_claiming_high,
    under_claims.rate as under_claiming,
    under_claims.rate_low as under_claiming_low,
    under_claims.rate_high as under_claiming_high,
    beliefs.ece,
    beliefs.brier,
    counts.score_count,
    counts.mean_score_error,
    counts.mean_absolute_score_error
from int_selected_cells as cells
inner join counts on cells.cell_id = counts.cell_id
left join beliefs on cells.cell_id = beliefs.cell_id
left join int_rates as over_claims on cells.cell_id = over_claims.cell_id and over_claims.rate_name = 'over_claiming'
left join int_rates as under_claims
    on cells.cell_id = under_claims.cell_id and under_claims.rate_name = 'under_claiming'
