-- Memory against history by game: how often each is ahead, beside the published contest.
--
-- grain: game with a cell under memory or history
-- key: game
-- columns:
--   game                            text
--   pair_count                      pairs with a NABA on both sides, from 0
--   memory_win_count                of these, pairs with the higher NABA under memory
--   history_win_count               pairs with the higher NABA under history
--   tie_count                       pairs with the same
--   mean_naba_difference            episodes; NABA of memory minus that of history; null without pairs
--   published_pair_count            models; all that is published is null where the game was not
--   published_memory_win_count      models
--   published_history_win_count     models
--   published_tie_count             models
--   published_mean_naba_difference  episodes
--   source                          text; of the published row, and its licence
-- source: S3Gym, arXiv 2608.31100, table 7, CC BY 4.0; see stg_published_memory_vs_history and memory_vs_history
-- left out: interventions; pairs of which a side has no NABA. A win by a hair counts like any other: coins give one
--     side five of seven or more in 45 % of contests. A published pair is a model, one of ours a model and replicate.
with pairs as (
    select
        game,
        count(winner) as pair_count,
        count(*) filter (where winner = 'memory') as memory_win_count,
        count(*) filter (where winner = 'history') as history_win_count,
        count(*) filter (where winner = 'tie') as tie_count,
        avg(naba_difference) as mean_naba_difference
    from memory_vs_history
    where intervention = 'main'
    group by game
)

select
    pairs.game,
    pairs.pair_count,
    pairs.memory_win_count,
    pairs.history_win_count,
    pairs.tie_count,
    pairs.mean_naba_difference,
    published.pair_count as published_pair_count,
    published.memory_win_count as published_memory_win_count,
    published.history_win_count as published_history_win_count,
    published.tie_count as published_tie_count,
    published.mean_naba_difference as published_mean_naba_difference,
    published.source
from pairs
left join stg_published_memory_vs_history as published on pairs.game = published.game
