-- Where did exploration get better while the held-out scores did not?
--
-- Compared are the first and the last block of explored episodes, and the first and the last checkpoint.
with explored as (
    select
        cell_id,
        avg(final_score) filter (where checkpoint = 0) as first_score,
        arg_max(mean_score, checkpoint) as last_score
    from (
        select
            cell_id,
            checkpoint,
            final_score,
            avg(final_score) over (partition by cell_id, checkpoint) as mean_score
        from int_cell_episodes
        where phase = 'exploration'
    ) as blocks
    group by cell_id
)

select
    held_out.model_id,
    held_out.game,
    held_out.pathway,
    round(explored.last_score - explored.first_score, 2) as explored_gain,
    round(held_out.score_delta, 2) as held_out_gain
from improvement as held_out
inner join explored on held_out.cell_id = explored.cell_id
where explored.last_score > explored.first_score and held_out.score_delta <= 0
order by all
