-- Game ranks: models and pathways compared across games, by ranks within each game and by games improved.
--
-- grain: contestant (model, pathway, intervention, explorer)
-- key: model_id, pathway, intervention, explorer_id
-- columns:
--   model_id              text
--   pathway               text; other than none
--   intervention          text
--   explorer_id           text; who explored: the model itself, or another in its place
--   game_count            games that it was measured in
--   judged_game_count     games with a verdict
--   improved_game_count   of judged_game_count: more than half of the replicates improve beyond noise
--   worse_game_count      of judged_game_count: more than half get worse beyond noise
--   too_few_game_count    of judged_game_count: more than half have too few episodes to say
--   change_game_count     games with a rank by score_delta (last less first score) among others
--   mean_change_rank      from 1, the highest; over change_game_count games; null where there is none
--   mean_change_standing  0 to 1; over the same games: share of the others that are below, ties count half
--   naba_game_count       games with a rank by NABA among others
--   mean_naba_rank        from 1; over naba_game_count games; null where there is none
--   mean_naba_standing    0 to 1; over the same games
-- formula: means of ranks_by_game over games, each game counting once. Standings stay comparable where games have
--     different numbers of contestants, ranks only where all have the same.
-- source: ranks and counts, never means of scores, across games: S3Gym, arXiv 2608.31100
-- left out: games where nobody else was measured, from ranks and standings. A contestant that played fewer games is
--     compared on those alone: see game_count. An interval: games are not drawn at random from anything.
select
    model_id,
    pathway,
    intervention,
    explorer_id,
    count(*) as game_count,
    count(*) filter (where judged_count > 0) as judged_game_count,
    count(*) filter (where 2 * improved_count > judged_count) as improved_game_count,
    count(*) filter (where 2 * worse_count > judged_count) as worse_game_count,
    count(*) filter (where 2 * too_few_count > judged_count) as too_few_game_count,
    count(change_standing) as change_game_count,
    avg(change_rank) filter (where change_standing is not null) as mean_change_rank,
    avg(change_standing) as mean_change_standing,
    count(naba_standing) as naba_game_count,
    avg(naba_rank) filter (where naba_standing is not null) as mean_naba_rank,
    avg(naba_standing) as mean_naba_standing
from ranks_by_game
group by model_id, pathway, intervention, explorer_id
