-- Published contest of memory against history, a row a game: one pair a model.
--
-- grain: game
-- key: game
-- columns:
--   game                  text
--   pair_count            models with both pathways
--   memory_win_count      of so many, those with the higher NABA under memory
--   history_win_count     those with the higher NABA under history
--   tie_count             those with the same
--   mean_naba_difference  episodes; NABA of memory minus that of history
--   source                text; and its licence
-- source: S3Gym, arXiv 2608.31100, table 7, CC BY 4.0; shipped as s3gym/reference/memory_vs_history.csv
select
    game,
    pair_count,
    memory_win_count,
    history_win_count,
    tie_count,
    mean_naba_difference,
    source
from raw.published_memory_vs_history
