-- What judge_coupling correlates: pairs of a judgment and a gain, of blocks of exploration and of whole cells.
--
-- grain: unit, cell, place, quality of judgment
-- key: unit, cell_id, place, quality
-- columns:
--   unit      text; block or cell
--   game      text
--   cell_id   text
--   place     text; the checkpoints that a block lies between; all for a cell
--   quality   text; agreement, or accuracy: the error with its sign turned, so that more is better
--   judgment  0 to 1 for agreement, at most 0 for accuracy; null without scored steps
--   gain      of a block its gain, -1 to 1; of a cell its naba, in episodes; null where it is not defined
-- formula: see judge_coupling_blocks, judge_reliability (phase exploration) and improvement; rounded to nine decimals,
--     as numbers that differ by rounding alone are equal.
-- source: S3Gym, arXiv 2608.31100
-- left out: interventions, whose judgments or links are not the agent's own.
with units as (
    select
        'block' as unit,
        game,
        cell_id,
        concat(from_checkpoint, ' to ', to_checkpoint) as place,
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
        'all' as place,
        judges.agreement,
        -judges.nmae as accuracy,
        curves.naba as gain
    from judge_reliability as judges
    inner join improvement as curves on judges.cell_id = curves.cell_id
    where judges.phase = 'exploration' and judges.intervention = 'main'
)

select
    units.unit,
    units.game,
    units.cell_id,
    units.place,
    qualities.quality,
    round(case qualities.quality when 'agreement' then units.agreement else units.accuracy end, 9) as judgment,
    round(units.gain, 9) as gain
from units
cross join (values ('agreement'), ('accuracy')) as qualities (quality)
