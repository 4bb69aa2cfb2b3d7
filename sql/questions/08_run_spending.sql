-- What did the run spend, and on what?
--
-- Scripted players make no calls, and so are not in it.
select
    model_id,
    activity,
    call_count,
    prompt_tokens,
    completion_tokens,
    round(cost_usd, 4) as cost_usd,
    round(cost_usd / sum(cost_usd) over (), 3) as cost_share
from model_cost
order by cost_usd desc
