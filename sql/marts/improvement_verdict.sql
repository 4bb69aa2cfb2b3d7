-- Whether a cell improved, in one word, and the numbers that it rests on.
--
-- grain: cell with a pathway other than none
-- key: cell_id
-- columns:
--   cell_id         text
--   model_id        text
--   game            text
--   pathway         text
--   intervention    text
--   replicate       integer, from 0
--   verdict         text; improves_beyond_noise, worse, no_improvement_shown or too_few_episodes; null where the noise
--       floors have not been computed
--   evidence        text; control: against the pathway none on the same instances; checkpoints: against its own start,
--       where there is no such cell; null where neither can be had
--   gain            game's unit; mean_difference of control_gain, or gain of noise_floor
--   gain_low        game's unit; 95 % interval, of control_gain or metric_intervals; null where there is none
--   gain_high       game's unit
--   p_value         above 0 to 1; two-sided, of the noise floor of gain
--   p_holm          above 0 to 1; corrected for the number of cells compared
--   smallest_p      above 0 to 1; two-sided and corrected, that the clearest outcome of so many episodes could have
--   compared_count  cells of the run that are judged with it, from 1: those without an intervention, or those with one
-- formula: p_value = min(1, 2 min(p above, p below)); p_holm by Holm's steps over the cells of a run without an
--     intervention, and apart from them over those with one. Beyond noise (either way): p_holm <= 0.05, and the
--     interval excludes 0. Too few: smallest_p > 0.05, or nothing to compare, or a difference to the control with
--     nothing left to vary. No more than 5 % of runs in which experience changes nothing hold a cell without an
--     intervention that is called improved or worse.
-- source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70
-- left out: auc_plus, which is above 0 for most agents that never change. Not shown is not the same as not there.
with floors as (
    select
        cells.cell_id,
        cells.run_id,
        cells.intervention = 'main' as is_main,
        floors.null_kind,
        floors.observed,
        least(1, 2 * least(floors.p_above, floors.p_below)) as p_value,
        floors.smallest_p
    from int_selected_cells as cells
    inner join stg_noise_floors as floors on cells.cell_id = floors.cell_id
    where floors.metric = 'gain' and cells.pathway != 'none'
    qualify row_number() over (
        partition by cells.cell_id order by floors.observed is not null desc, floors.null_kind = 'control' desc
    ) = 1
),

ranked as (
    select
        cell_id,
        run_id,
        is_main,
        null_kind,
        observed,
        p_value,
        smallest_p,
        count(*) over (partition by run_id, is_main) as compared_count,
        row_number() over (partition by run_id, is_main order by p_value asc, cell_id asc) as p_rank
    from floors
    where observed is not null
),

corrected as (
    select
        cell_id,
        null_kind,
        observed,
        p_value,
        compared_count,
        least(1, max((compared_count - p_rank + 1) * p_value) over (partition by run_id, is_main order by p_rank))
            as p_holm,
        least(1, 2 * compared_count * smallest_p) as smallest_p
    from ranked
),

evidence as (
    select
        corrected.*,
        case corrected.null_kind when 'control' then gains.mean_difference else corrected.observed end as gain,
        case corrected.null_kind when 'control' then gains.difference_low else own.low end as gain_low,
        case corrected.null_kind when 'control' then gains.difference_high else own.high end as gain_high,
        case corrected.null_kind
            when 'control' then gains.is_beyond_noise
            -- instances that are all there is have no interval, and p does not need one
            else coalesce(own.low > 0 or own.high < 0, true)
        end as is_beyond_noise
    from corrected
    left join control_gain as gains on corrected.cell_id = gains.cell_id
    left join stg_intervals as own
        on
            corrected.cell_id = own.cell_id
            and own.scope = 'cell'
            and own.contrast = 'own'
            and own.metric = 'gain'
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    case
        when floors.cell_id is null then null
        when evidence.p_holm <= 0.05 and evidence.is_beyond_noise and evidence.gain > 0 then 'improves_beyond_noise'
        when evidence.p_holm <= 0.05 and evidence.is_beyond_noise and evidence.gain < 0 then 'worse'
        when evidence.smallest_p <= 0.05 and evidence.is_beyond_noise is not null then 'no_improvement_shown'
        else 'too_few_episodes'
    end as verdict,
    evidence.null_kind as evidence,
    evidence.gain,
    evidence.gain_low,
    evidence.gain_high,
    evidence.p_value,
    evidence.p_holm,
    evidence.smallest_p,
    evidence.compared_count
from int_selected_cells as cells
left join floors on cells.cell_id = floors.cell_id
left join evidence on cells.cell_id = evidence.cell_id
where cells.pathway != 'none'
