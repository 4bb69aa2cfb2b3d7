-- Where 0 and 1 of the normalised scale are: the mean scores of the random and the expert player.
--
-- grain: configuration
-- key: config_id
-- columns:
--   config_id     text; hash of game, version and configuration
--   random_mean   game's unit; null where not measured
--   expert_mean   game's unit; null where not measured
--   anchor_range  game's unit; expert_mean - random_mean, not 0; null where either is missing or they are equal
with players as (
    select
        config_id,
        -- a configuration that serves both phases may be measured twice; "evaluation" sorts first
        first(mean order by phase) filter (where player = 'random') as random_mean,
        first(mean order by phase) filter (where player = 'expert') as expert_mean
    from stg_anchors
    group by config_id
)

select
    config_id,
    random_mean,
    expert_mean,
    nullif(expert_mean - random_mean, 0) as anchor_range
from players
