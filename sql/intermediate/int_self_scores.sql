-- Which self-scores a cell gave, how often the verifier rewarded the steps that got them, and how they are placed among
-- the cell's other steps.
--
-- grain: cell, phase, self-score
-- key: cell_id, phase, self_score
-- columns:
--   cell_id          text
--   phase            text; exploration or evaluation
--   self_score       game's unit
--   step_count       steps with this self-score and a verifier reward, from 1
--   positive_count   of these, steps with a reward above 0
--   negatives_below  0 to 1; share of the cell's steps without a reward above 0 that have a lower self-score, half of
--       the equal ones counted; null where there are none
--   positives_above  0 to 1; share of its steps with a reward above 0 that have a higher one, likewise
with scores as (
    select
        cell_id,
        phase,
        self_score,
        cast(sum(step_count) as bigint) as step_count,
        cast(coalesce(sum(step_count) filter (where verifier_reward > 0), 0) as bigint) as positive_count
    from int_score_pairs
    group by cell_id, phase, self_score
),

counted as (
    select
        *,
        step_count - positive_count as negative_count,
        sum(step_count - positive_count) over so_far as negatives_so_far,
        sum(positive_count) over so_far as positives_so_far,
        sum(step_count - positive_count) over everything as negatives,
        sum(positive_count) over everything as positives
    from scores
    window so_far as (partition by cell_id, phase order by self_score), everything as (partition by cell_id, phase)
)

select
    cell_id,
    phase,
    self_score,
    step_count,
    positive_count,
    (negatives_so_far - negative_count / 2) / nullif(negatives, 0) as negatives_below,
    1 - (positives_so_far - positive_count / 2) / nullif(positives, 0) as positives_above
from counted
