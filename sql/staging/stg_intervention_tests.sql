-- Permutation tests of what replaced links make of a chain. Empty until they have been computed for the rows that there
-- are.
--
-- grain: difference
-- key: difference_id
-- columns:
--   difference_id      text; of int_intervention_pairs
--   p_value            above 0 to 1; two-sided
--   permutation_count  draws
select
    difference_id,
    p_value,
    permutation_count
from raw.intervention_tests
