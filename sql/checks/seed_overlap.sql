-- Seeds that serve both phases of a game: held-out episodes would not be held out.
--
-- grain: game, base seed, seed
-- columns:
--   game       text
--   base_seed  integer
--   seed       integer
select
    cells.game,
    cells.base_seed,
    episodes.seed
from int_cell_episodes as episodes
inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
group by cells.game, cells.base_seed, episodes.seed
having count(distinct episodes.phase) > 1
