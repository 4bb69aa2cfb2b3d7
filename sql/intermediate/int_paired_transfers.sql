-- Evaluation episodes with what a cell had learnt beside those on the same instances before it had learnt anything.
--
-- grain: cell, target game, checkpoint, seed
-- key: cell_id, target_game, checkpoint, seed
-- columns:
--   cell_id        text; a cell that was evaluated in other games
--   target_game    text; the game played, which may be the cell's own
--   checkpoint     exploration episodes behind the agent, from 1
--   seed           integer; of the instance played at this checkpoint and at checkpoint 0
--   stratum        text; the instance where a game has so few that each checkpoint plays them all, else empty
--   cluster_id     text; pairs of one cluster are not independent: here each pair is its own
--   difference_id  text; joins int_differences: all pairs of a cell, target game and checkpoint
--   difference     target game's unit; final score with the experience minus that without
-- left out: invalid episodes, with their partners; evaluation sets drawn afresh at each checkpoint, which share no
--     instance. Only cells say that a game has few instances: where no cell of the folder plays the target game by
--     itself, its instances count as drawn at random, which makes an interval too wide rather than too narrow.
with shared_games as (
    select distinct game
    from stg_cells
    where is_instances_shared
),

evaluations as (
    select
        episodes.cell_id,
        episodes.target_game,
        episodes.checkpoint,
        episodes.seed,
        episodes.final_score,
        case when shared_games.game is not null then episodes.instance_id else '' end as stratum
    from int_target_episodes as episodes
    left join shared_games on episodes.target_game = shared_games.game
    where episodes.is_valid
)

select
    trained.cell_id,
    trained.target_game,
    trained.checkpoint,
    trained.seed,
    trained.stratum,
    cast(trained.seed as varchar) as cluster_id,
    concat_ws('|', 'transfer', trained.cell_id, trained.target_game, trained.checkpoint) as difference_id,
    trained.final_score - untrained.final_score as difference
from evaluations as trained
inner join evaluations as untrained
    on
        trained.cell_id = untrained.cell_id
        and trained.target_game = untrained.target_game
        and trained.seed = untrained.seed
where trained.checkpoint > 0 and untrained.checkpoint = 0
