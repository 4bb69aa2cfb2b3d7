-- Mean scores of the reference players: those shipped with the package, and the folder's own, which come first.
--
-- grain: game, configuration, phase, player
-- key: game, config_id, phase, player
-- columns:
--   game                text
--   config_id           text; hash of game, version and configuration
--   phase               text; whose configuration: exploration or evaluation
--   player              text; at least random and expert
--   mean                game's unit; of the final score
--   standard_deviation  game's unit; from 0
--   standard_error      game's unit; 0 when exact
--   episode_count       episodes; 0 when exact
--   game_version        integer, from 1
with measured as (
    select
        game,
        config_id,
        phase,
        player,
        mean,
        standard_deviation,
        standard_error,
        episode_count,
        game_version,
        1 as preference
    from raw.anchors
    union all
    select
        game,
        config_id,
        phase,
        player,
        mean,
        standard_deviation,
        standard_error,
        episode_count,
        game_version,
        2 as preference
    from raw.shipped_anchors
)

select
    game,
    config_id,
    phase,
    player,
    mean,
    standard_deviation,
    standard_error,
    episode_count,
    game_version
from measured
qualify row_number() over (partition by game, config_id, phase, player order by preference asc, episode_count desc) = 1
