-- Published coupling between how well an agent judges itself and what it gains next.
--
-- grain: game
-- key: game
-- columns:
--   game                text; all is every game together
--   agreement_rho       -1 to 1; Spearman, agreement of a block of exploration and the gain after it
--   negative_error_rho  -1 to 1; Spearman, minus the error of the block and the gain after it
--   agreement_gap       -1 to 1; mean gain after the third of blocks with the highest agreement, minus the lowest
--   error_gap           -1 to 1; the same with the lowest error, minus the highest
--   source              text; and its licence
-- source: S3Gym, arXiv 2608.31100, table 6, CC BY 4.0; shipped as s3gym/reference/judge_coupling.csv
select
    game,
    agreement_rho,
    negative_error_rho,
    agreement_gap,
    error_gap,
    source
from raw.published_judge_coupling
