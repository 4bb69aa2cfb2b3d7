-- Judge coupling: whether agents that judge themselves well go on to improve, block by block and cell by cell.
--
-- grain: unit, game or all of them, quality of judgment
-- key: unit, game, quality
-- columns:
--   unit          text; block: of judge_coupling_blocks, against its gain; cell: over all it explored, against its naba
--   game          text; * is all games together
--   quality       text; agreement, or accuracy: the error with its sign turned, so that more is better
--   unit_count    blocks or cells in which both numbers are defined, from 0
--   cell_count    cells they are of
--   status        text; ok, too_few (below 3) or undefined (all judgments or all gains are alike)
--   spearman      -1 to 1; null unless status is ok
--   pearson       -1 to 1; null unless status is ok
--   lowest_gain   mean gain, or naba in episodes, of the third of units with the poorest judgment; null without any
--   highest_gain  the same, of the third with the best
--   tertile_gap   highest_gain - lowest_gain
-- formula: pearson = correlation of the numbers, spearman of their mid-ranks. Third = floor(3 (units below + half of
--     those alike) / units), so that equal units stay together: where many are, a third may be empty.
-- source: S3Gym, arXiv 2608.31100; Spearman (1904), American Journal of Psychology 15, 72-101
-- left out: interventions, whose judgments or links are not the agent's own. Blocks of one cell are not independent,
--     and a correlation over all games mixes what differs between them with what differs within: no p is given, and
--     none of this says that judging well is the cause.
with units as (
    select
        'block' as unit,
        game,
        cell_id,
        agreement,
        -error as accuracy,
        gain
    from judge_coupling_blocks
    where intervention = 'main'
    union all
    select
        'cell' as unit,
        judges.game,
        judges.cell_id,
        judges.agreement,
        -judges.nmae as accuracy,
        curves.naba as gain
    from judge_reliability as judges
    inner join improvement as curves on judges.cell_id = curves.cell_id
    where judges.phase = 'exploration' and judges.intervention = 'main'
),

judged as (
    -- numbers that differ by rounding alone are equal
    select
        units.unit,
        units.cell_id,
        qualities.quality,
        round(case qualities.quality when 'agreement' then units.agreement else units.accuracy end, 9) as judgment,
        round(units.gain, 9) as gain,
        unnest([units.game, '*']) as game
    from units
    cross join (values ('agreement'), ('accuracy')) as qualities (quality)
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
    case when found.status = 'ok' then found.pearson end as pearson,
    found.lowest_gain,
    found.highest_gain,
    found.highest_gain - found.lowest_gain as tertile_gap
from asked
left join correlations as found
    on asked.unit = found.unit and asked.game = found.game and asked.quality = found.quality
