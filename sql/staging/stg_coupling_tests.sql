-- How sure one can be of the rank correlations of judge_coupling, as resampled. Empty until it has been computed for
-- the rows that there are.
--
-- grain: unit, game or all of them, quality of judgment
-- key: unit, game, quality
-- columns:
--   unit               text; block or cell
--   game               text; * is all games together
--   quality            text; agreement or accuracy
--   low                -1 to 1; null unless status is ok
--   high               -1 to 1; null unless status is ok
--   status             text; ok, too_few, undefined, undefined_in_draws or no_spread
--   p_value            above 0 to 1; null where the correlation is not defined, or no two cells can change places
--   resample_count     draws behind the interval
--   permutation_count  draws behind p_value
select
    unit,
    game,
    quality,
    low,
    high,
    status,
    p_value,
    resample_count,
    permutation_count
from raw.coupling_tests
