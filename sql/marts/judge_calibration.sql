-- Judge calibration: how often steps are rewarded, by how highly the agent scored them; the points of a reliability
-- diagram.
--
-- grain: cell, phase, bin of self-scores
-- key: cell_id, phase, bin
-- columns:
--   cell_id              text
--   model_id             text
--   game                 text
--   pathway              text
--   intervention         text
--   replicate            integer, from 0
--   phase                text; exploration or evaluation
--   bin                  integer, 0 to 9; from the lowest self-scores of the game to the highest
--   self_score_min       game's unit; lowest self-score of the cell in the bin
--   self_score_max       game's unit; highest
--   mean_self_score      game's unit
--   step_count           scored steps of the cell in the bin, from 1
--   positive_count       of these, steps with a reward above 0
--   positive_share       0 to 1
--   positive_share_low   0 to 1; 95 % Wilson interval
--   positive_share_high  0 to 1
--   game_positive_share  0 to 1; over all scored steps of the game in the phase: what every bin would show if
--       self-scores said nothing
-- formula: bins hold about equally many scored steps of a game in a phase, all selected cells together, but those with
--     an intervention apart, and equal self-scores stay together: bin = floor(10 (steps below the self-score + half of
--     those at it) / all steps). Interval as in int_rates.
-- source: Wilson (1927), Journal of the American Statistical Association 22, 209-212
-- left out: empty bins, of which there are many where an agent says 0 or 1 only. Bins move when cells are added. A
--     self-score is an estimate of the reward and no probability, so there is no diagonal to lie on: shares should
--     rise with the self-score, low up to 0 and high above it. Steps are taken as independent, as in int_rates.
with pooled as (
    select
        cells.game,
        cells.intervention = 'main' as is_main,
        scores.phase,
        scores.self_score,
        sum(scores.step_count) as step_count,
        sum(scores.positive_count) as positive_count
    from int_self_scores as scores
    inner join int_selected_cells as cells on scores.cell_id = cells.cell_id
    group by cells.game, cells.intervention = 'main', scores.phase, scores.self_score
),

placed as (
    select
        game,
        is_main,
        phase,
        self_score,
        cast(
            floor(10 * (sum(step_count) over so_far - step_count / 2) / sum(step_count) over everything) as bigint
        ) as bin,
        sum(positive_count) over everything / sum(step_count) over everything as game_positive_share
    from pooled
    window
        so_far as (partition by game, is_main, phase order by self_score),
        everything as (partition by game, is_main, phase)
),

bins as (
    select
        scores.cell_id,
        scores.phase,
        placed.bin,
        min(scores.self_score) as self_score_min,
        max(scores.self_score) as self_score_max,
        sum(scores.self_score * scores.step_count) / sum(scores.step_count) as mean_self_score,
        cast(sum(scores.step_count) as bigint) as step_count,
        cast(sum(scores.positive_count) as bigint) as positive_count,
        sum(scores.positive_count) / sum(scores.step_count) as positive_share,
        max(placed.game_positive_share) as game_positive_share
    from int_self_scores as scores
    inner join int_selected_cells as cells on scores.cell_id = cells.cell_id
    inner join placed
        on
            cells.game = placed.game
            and placed.is_main = (cells.intervention = 'main')
            and scores.phase = placed.phase
            and scores.self_score = placed.self_score
    group by scores.cell_id, scores.phase, placed.bin
),

wilson as (
    select
        bins.*,
        t.t_quantile * t.t_quantile / bins.step_count as z2_over_n,
        (bins.positive_share + z2_over_n / 2) / (1 + z2_over_n) as centre,
        sqrt(z2_over_n * (bins.positive_share * (1 - bins.positive_share) + z2_over_n / 4)) / (1 + z2_over_n) as half
    from bins
    cross join int_t_quantiles as t
    where t.degrees_of_freedom = 'infinity'
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    wilson.phase,
    wilson.bin,
    wilson.self_score_min,
    wilson.self_score_max,
    wilson.mean_self_score,
    wilson.step_count,
    wilson.positive_count,
    wilson.positive_share,
    greatest(wilson.centre - wilson.half, 0) as positive_share_low,
    least(wilson.centre + wilson.half, 1) as positive_share_high,
    wilson.game_positive_share
from int_selected_cells as cells
inner join wilson on cells.cell_id = wilson.cell_id
