-- Which held-out instances has nobody ever solved?
select
    cells.game,
    episodes.instance_id,
    count(*) as episode_count,
    count(distinct cells.model_id) as model_count,
    max(episodes.final_score) as best_score
from int_cell_episodes as episodes
inner join int_selected_cells as cells on episodes.cell_id = cells.cell_id
where episodes.phase = 'evaluation' and episodes.is_valid
group by cells.game, episodes.instance_id
having not bool_or(episodes.is_success)
order by all
