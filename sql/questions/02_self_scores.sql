-- Does a self-score predict the reward?
--
-- auroc is the chance that a rewarded step was scored higher than one that was not; 0.5 is a coin, null is no pair.
select
    model_id,
    game,
    sum(scored_count) as scored_count,
    round(min(auroc), 3) as worst_auroc,
    round(max(auroc), 3) as best_auroc
from judge_discrimination
where phase = 'exploration'
group by model_id, game
order by all
