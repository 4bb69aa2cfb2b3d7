-- Which pathway helps which player in which game, and is it more than noise?
--
-- Gains are over the control on the same held-out instances, in the game's unit.
select
    model_id,
    game,
    pathway,
    round(gain, 2) as gain,
    round(p_holm, 4) as p_holm,
    verdict
from improvement_verdict
order by all
