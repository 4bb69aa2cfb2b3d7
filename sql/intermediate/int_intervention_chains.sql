-- The chains whose failing link is looked for: each cell without an intervention by itself, and together all those of a
-- model and game that carry experience as text.
--
-- grain: chain, cell
-- key: chain_id, cell_id
-- columns:
--   chain_id    text; the cell's id, or begins with '*'
--   cell_id     text; without an intervention, with a pathway other than none
--   pathway     text; of the chain: the cell's, or '*' for all that carry text
--   cell_count  cells of the chain, from 1
-- left out: '*' where there is but one such pathway. Of cells that differ in a setting that no column holds, '*' has
--     the latest.
with cells as (
    select
        cell_id,
        pathway,
        training is null as is_text,
        requested_at,
        concat_ws(
            '|',
            '*',
            comparison_id,
            exploration_config_id,
            exploration_episode_count,
            history_token_limit,
            history_cut,
            coalesce(explorer_id, '')
        ) as text_chain_id
    from int_selected_cells
    where intervention = 'main' and pathway != 'none'
),

latest as (
    select
        text_chain_id,
        cell_id
    from cells
    where is_text
    qualify row_number() over (
        partition by text_chain_id, pathway order by requested_at desc, cell_id asc
    ) = 1
),

several as (
    select
        text_chain_id as chain_id,
        cell_id,
        '*' as pathway,
        count(*) over (partition by text_chain_id) as cell_count
    from latest
)

select
    chain_id,
    cell_id,
    pathway,
    cell_count
from several
where cell_count > 1
union all
select
    cell_id as chain_id,
    cell_id,
    pathway,
    1 as cell_count
from cells
