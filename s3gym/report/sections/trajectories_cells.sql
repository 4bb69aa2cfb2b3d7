-- The cells whose episodes the viewer holds, and what their agents had read.
--
-- grain: cell
-- key: cell_id
-- columns:
--   cell_id   text
--   model_id  text
--   game      text
--   pathway   text; with the intervention and the replicate, where they are not the usual ones
--   memories  text; JSON, a list of [checkpoint, text] in order of checkpoints
with memories as (
    select
        cells.cell_id,
        list(json_array(experiences.checkpoint, experiences.text) order by experiences.checkpoint) as memories
    from int_selected_cells as cells
    inner join stg_cell_stages as links on cells.run_id = links.run_id and cells.cell_id = links.cell_id
    inner join stg_experiences as experiences on links.stage_key = experiences.stage_key
    where links.stage = 'build_experience' and experiences.text is not null
    group by cells.cell_id
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    concat_ws(
        ', ',
        cells.pathway,
        nullif(cells.intervention, 'main'),
        'replicate ' || nullif(cells.replicate, 0)
    ) as pathway,
    to_json(coalesce(memories.memories, [])) as memories
from int_selected_cells as cells
left join memories on cells.cell_id = memories.cell_id
order by cells.model_id, cells.game, cells.pathway, cells.intervention, cells.replicate, cells.cell_id
