-- Published reliability of self-scores, a row a game: all models and both context pathways together.
--
-- grain: game
-- key: game
-- columns:
--   game              text
--   agreement         0 to 1; self-score and reward both above 0, or both not
--   nmae_observed     0 to 1; mean error, on the scale that was observed
--   over_confidence   0 to 1; self-score above 0 where the reward is not
--   under_confidence  0 to 1; reward above 0 where the self-score is not
--   source            text; and its licence
-- source: S3Gym, arXiv 2608.31100, table 5, CC BY 4.0; shipped as s3gym/reference/judge_reliability.csv
select
    game,
    agreement,
    nmae_observed,
    over_confidence,
    under_confidence,
    source
from raw.published_judge_reliability
