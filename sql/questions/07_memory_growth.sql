-- How fast does what an agent gets to read grow?
select
    model_id,
    game,
    pathway,
    checkpoint,
    token_count,
    round((token_count - lag(token_count, 1, 0) over cell) / (checkpoint - lag(checkpoint, 1, 0) over cell), 1)
        as tokens_per_episode
from experience_size
window cell as (partition by cell_id order by checkpoint)
order by all
