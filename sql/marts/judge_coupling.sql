-- Judge coupling: whether agents that judge themselves well go on to improve, block by block and cell by cell.
--
-- grain: unit, game or all of them, quality of judgment
-- key: unit, game, quality
-- columns:
--   unit           text; block: judgment in it against the gain over it; cell: of all it explored against its naba
--   game           text; * is all games together
--   quality        text; agreement, or accuracy: the error with its sign turned, so that more is better
--   unit_count     blocks or cells in which both numbers are defined, from 0
--   cell_count     cells they are of
--   status         text; ok, too_few (below 3) or undefined (all judgments or all gains are alike)
--   spearman       -1 to 1; null unless status is ok
--   spearman_low   -1 to 1; 95 % interval, over draws of cells; null where cells are too few or too much alike
--   spearman_high  -1 to 1
--   p_value        above 0 to 1; two-sided, of spearman where cells of a game change places; null where none can
--   pearson        -1 to 1; null unless status is ok
--   lowest_gain    mean gain, or naba in episodes, of the third of units with the poorest judgment; null without any
--   highest_gain   the same, of the third with the best
--   tertile_gap    highest_gain - lowest_gain
-- formula: pearson = correlation of the numbers, spearman of their mid-ranks. Third = floor(3 (units below + half of
--     those alike) / units), so that equal units stay together: where many are, a third may be empty.
-- source: S3Gym, arXiv 2608.31100; Spearman (1904), American Journal of Psychology 15, 72-101
-- left out: interventions. A correlation over all games mixes what differs between them with what differs within; none
--     of this says that judging well is the cause. The interval and p_value are null until they have been computed;
--     what they rest on is said in s3gym/coupling.py.
with judged as (
    select
        unit,
        cell_id,
        quality,
        judgment,
        gain,
        unnest([game, '*']) as game
    from judge_coupling_units
),

ranked as (
    select
        unit,
        game,
        quality,
        cell_id,
        judgment,
        gain,
        rank() over (partition by unit, game, quality order by judgment)
        + (count(*) over (partition by unit, game, quality, judgment) - 1) / 2 as judgment_rank,
        rank() over (partition by unit, game, quality order by gain)
        + (count(*) over (partition by unit, game, quality, gain) - 1) / 2 as gain_rank,
        count(*) over (partition by unit, game, quality) as unit_count
    from judged
    where judgment is not null and gain is not null
),

correlations as (
    select
        unit,
        game,
        quality,
        count(*) as unit_count,
        count(distinct cell_id) as cell_count,
        case
            when count(*) < 3 then 'too_few'
            when min(judgment) = max(judgment) or min(gain) = max(gain) then 'undefined'
            else 'ok'
        end as status,
        corr(judgment_rank, gain_rank) as spearman,
        corr(judgment, gain) as pearson,
        avg(gain) filter (where floor(3 * (judgment_rank - 0.5) / unit_count) = 0) as lowest_gain,
        avg(gain) filter (where floor(3 * (judgment_rank - 0.5) / unit_count) = 2) as highest_gain
    from ranked
    group by unit, game, quality
),

asked as (
    select distinct
        unit,
        game,
        quality
    from judged
)

select
    asked.unit,
    asked.game,
    asked.quality,
    coalesce(found.unit_count, 0) as unit_count,
    coalesce(found.cell_count, 0) as cell_count,
    coalesce(found.status, 'too_few') as status,
    case when found.status = 'ok' then found.spearman end as spearman,
    tests.low as spearman_low,
    tests.high as spearman_high,
    tests.p_value,
    case when found.status = 'ok' then found.pearson end as pearson,
    found.lowest_gain,
    found.highest_gain,
    found.highest_gain - found.lowest_gain as tertile_gap
from asked
left join correlations as found
    on asked.unit = found.unit and asked.game = found.game and asked.quality = found.quality
left join stg_coupling_tests as tests
    on asked.unit = tests.unit and asked.game = tests.game and asked.quality = tests.quality
