-- Exploration episodes that a cell's agent was asked to look back at: what it believes, and what the verifier says.
--
-- grain: cell, judged episode
-- key: cell_id, stage_key, episode_id
-- columns:
--   cell_id               text
--   stage_key             text; of the judging stage
--   episode_id            text; of the episode judged
--   is_answered           true unless the call failed
--   expected_final_score  game's unit; null where none could be read
--   success_belief        probability, 0 to 1; null where none could be read
--   final_score           game's unit; the verifier's; null where the episode is not valid
--   is_success            true or false; null where the episode is not valid
select
    links.cell_id,
    judgments.stage_key,
    judgments.episode_id,
    judgments.error_kind is null as is_answered,
    judgments.expected_final_score,
    judgments.success_belief,
    episodes.final_score,
    episodes.is_success
from int_cell_links as links
inner join stg_judgments as judgments on links.stage_key = judgments.stage_key
left join int_cell_episodes as episodes
    on
        links.cell_id = episodes.cell_id
        and judgments.episode_id = episodes.episode_id
        and episodes.phase = 'exploration'
where links.stage = 'self_judge'
