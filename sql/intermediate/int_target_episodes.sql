-- Held-out episodes in which what a cell learnt was tried, in other games and, at the same checkpoints, in its own.
-- Those of a shared stage, such as another game before any experience, appear once in each cell that uses it.
--
-- grain: cell, target game, checkpoint, episode
-- key: cell_id, target_game, checkpoint, episode_id
-- columns:
--   cell_id          text; a cell that was evaluated in other games
--   target_game      text; the game played, which may be the cell's own
--   checkpoint       exploration episodes behind the agent, from 0, all of them in the cell's own game
--   episode_id       text
--   seed             integer; of the instance
--   instance_id      text
--   config_id        text; hash of game, version and configuration, joins int_anchors
--   requested_count  evaluation episodes asked for in this game at this checkpoint
--   is_valid         true unless a call failed
--   final_score      target game's unit; null when not valid
-- formula: config_id = the first 16 digits of SHA-256 of "game version configuration", as games make it
-- left out: evaluations in other games that have no episode yet: until one is played nothing says which game it is.
with links as (
    select
        cells.cell_id,
        cells.game,
        links.stage_key,
        links.checkpoint,
        links.episode_count
    from int_selected_cells as cells
    inner join int_cell_links as links on cells.cell_id = links.cell_id
    where links.stage = 'transfer'
),

chosen as (
    select distinct
        cell_id,
        checkpoint
    from links
)

select
    links.cell_id,
    episodes.game as target_game,
    links.checkpoint,
    episodes.episode_id,
    episodes.seed,
    episodes.instance_id,
    left(sha256(concat_ws(' ', episodes.game, episodes.game_version, episodes.config)), 16) as config_id,
    links.episode_count as requested_count,
    episodes.status = 'valid' as is_valid,
    episodes.final_score
from links
inner join stg_episodes as episodes on links.stage_key = episodes.stage_key
where episodes.episode_index < links.episode_count and episodes.game != links.game
union all
select
    own.cell_id,
    cells.game as target_game,
    own.checkpoint,
    own.episode_id,
    own.seed,
    own.instance_id,
    cells.evaluation_config_id as config_id,
    checkpoints.requested_count,
    own.is_valid,
    own.final_score
from int_cell_episodes as own
inner join chosen on own.cell_id = chosen.cell_id and own.checkpoint = chosen.checkpoint
inner join int_selected_cells as cells on own.cell_id = cells.cell_id
inner join int_checkpoints as checkpoints
    on own.cell_id = checkpoints.cell_id and own.checkpoint = checkpoints.checkpoint
where own.phase = 'evaluation'
