-- Instances that serve both phases of a game which has enough of them to keep the phases apart.
--
-- grain: game, base seed, instance
-- columns:
--   game         text
--   base_seed    integer
--   instance_id  text
select
    cells.game,
    cells.base_seed,
    episodes.instance_id
from int_cell_episodes as episodes
inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
where not cells.is_instances_shared
group by cells.game, cells.base_seed, episodes.instance_id
having count(distinct episodes.phase) > 1
