-- Which explored episodes surprise their agent most?
--
-- The gap is how far self-scores are from rewards, as a share of the range of rewards. s3gym replay shows an episode.
select
    cells.model_id,
    cells.pathway,
    steps.episode_id,
    count(*) as step_count,
    round(
        avg(abs(steps.self_score - steps.verifier_reward) / (cells.reward_max - cells.reward_min)), 3
    ) as mean_gap
from int_cell_steps as steps
inner join int_selected_cells as cells on steps.cell_id = cells.cell_id
where steps.phase = 'exploration' and steps.self_score is not null and steps.verifier_reward is not null
group by cells.model_id, cells.pathway, steps.episode_id
order by mean_gap desc, cells.model_id asc, cells.pathway asc, steps.episode_id asc
limit 5
