-- Who believes in successes that were none?
--
-- Belief is what the agent says when it looks back at an explored episode.
select
    model_id,
    game,
    sum(belief_count) as belief_count,
    round(sum(mean_belief * belief_count) / sum(belief_count), 2) as mean_belief,
    round(sum(success_count) / sum(belief_count), 2) as success_share,
    round(sum(over_claiming * belief_count) / sum(belief_count), 2) as over_claiming
from retrospective_reliability
group by model_id, game
order by over_claiming desc, model_id asc, game asc
