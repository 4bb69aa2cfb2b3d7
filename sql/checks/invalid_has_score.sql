-- Episodes whose status and score contradict each other: an invalid one has no score, a valid one has.
--
-- grain: episode
-- columns:
--   stage_key    text
--   episode_id   text
--   status       text
--   final_score  game's unit
select
    stage_key,
    episode_id,
    status,
    final_score
from stg_episodes
where
    status not in ('valid', 'invalid')
    or (status = 'valid') != (final_score is not null)
    or (status = 'valid') != (is_success is not null)
