-- Transfer: what experience from one game is worth in another. Compared is the same model on the same held-out
-- instances, with the experience and without; the game that it was made in stands among the targets.
--
-- grain: cell, target game, checkpoint
-- key: cell_id, target_game, checkpoint
-- columns:
--   cell_id                text; a cell that was evaluated in other games
--   model_id               text
--   game                   text; the source, in which the cell explored
--   pathway                text
--   intervention           text
--   replicate              integer, from 0
--   target_game            text; the game played
--   is_own_game            true where the target is the source
--   checkpoint             exploration episodes behind the experience, from 1
--   initial_score          target game's unit; mean at checkpoint 0; null unless every episode asked for is valid
--   score                  target game's unit; mean with the experience; the same
--   requested_count        evaluation episodes asked for at this checkpoint
--   episode_count          episodes played to the end
--   invalid_count          episodes lost to a failed call; the rest of requested_count has not been played
--   pair_count             pairs of episodes on the same instance, with the experience and without
--   cluster_count          independent ones among them
--   stratum_count          1; where each checkpoint plays all instances the game has (trust), their number
--   mean_difference        target game's unit; of the paired final scores; null without pairs
--   standard_error         target game's unit, above 0; null where nothing is left to vary
--   difference_low         target game's unit; 95 % t interval, cluster_count - stratum_count degrees of freedom
--   difference_high        target game's unit
--   normalised_difference  as a share of the way from the random to the expert player; null without anchors
--   is_beyond_noise        true when the interval excludes 0; null when nothing can be said
--   is_negative            true when the whole interval is below 0: the experience did harm; null the same
-- formula: see int_differences
-- source: Liang and Zeger (1986), Biometrika 73, 13-22; Cochran (1977), Sampling Techniques, chapter 5, for strata
-- left out: pairs with an invalid side; targets of which no episode has been played. Differences of two games have two
--     units: normalised_difference alone compares them.
with pairings as (
    select distinct
        cell_id,
        target_game,
        checkpoint,
        difference_id
    from int_paired_transfers
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    trained.target_game,
    trained.target_game = cells.game as is_own_game,
    trained.checkpoint,
    untrained.mean_score as initial_score,
    trained.mean_score as score,
    trained.requested_count,
    trained.valid_count as episode_count,
    trained.invalid_count,
    coalesce(differences.pair_count, 0) as pair_count,
    coalesce(differences.cluster_count, 0) as cluster_count,
    coalesce(differences.stratum_count, 0) as stratum_count,
    differences.mean_difference,
    differences.standard_error,
    differences.difference_low,
    differences.difference_high,
    differences.mean_difference / anchors.anchor_range as normalised_difference,
    differences.is_beyond_noise,
    case
        when differences.is_beyond_noise is not null
            then differences.is_beyond_noise and differences.mean_difference < 0
    end as is_negative
from int_selected_cells as cells
inner join int_target_scores as trained on cells.cell_id = trained.cell_id and trained.checkpoint > 0
left join int_target_scores as untrained
    on
        trained.cell_id = untrained.cell_id
        and trained.target_game = untrained.target_game
        and untrained.checkpoint = 0
left join pairings
    on
        trained.cell_id = pairings.cell_id
        and trained.target_game = pairings.target_game
        and trained.checkpoint = pairings.checkpoint
left join int_differences as differences on pairings.difference_id = differences.difference_id
left join int_anchors as anchors on trained.config_id = anchors.config_id
