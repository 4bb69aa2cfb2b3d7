-- Steps considered for training, by what was decided and why.
--
-- grain: update, decision, reason
-- key: stage_key, decision, reason
-- columns:
--   stage_key            text; of the update
--   decision             text; kept, corrected or filtered
--   reason               text; the rule that decided
--   row_count            steps, from 1
--   trained_reply_tokens tokens the loss is taken on; null for filtered steps
select
    stage_key,
    decision,
    reason,
    count(*) as row_count,
    cast(sum(trained_reply_tokens) as bigint) as trained_reply_tokens
from stg_sft_rows
group by stage_key, decision, reason
