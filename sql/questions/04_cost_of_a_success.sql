-- What does a held-out success cost, all that led to it included?
--
-- Only where somebody names a price; here history costs more and wins nothing over the control.
with spent as (
    select
        cell_id,
        sum(cost_usd) as cost_usd
    from cost
    group by cell_id
),

won as (
    select
        cell_id,
        count_if(is_success) as success_count
    from int_cell_episodes
    where phase = 'evaluation'
    group by cell_id
)

select
    cells.model_id,
    cells.game,
    cells.pathway,
    round(spent.cost_usd, 4) as cost_usd,
    won.success_count,
    round(spent.cost_usd / nullif(won.success_count, 0), 4) as usd_per_success
from int_selected_cells as cells
inner join spent on cells.cell_id = spent.cell_id
inner join won on cells.cell_id = won.cell_id
order by all
