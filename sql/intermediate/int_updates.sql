-- Updates of trained cells: what their stages wrote of each, whether weights changed or not.
--
-- grain: cell, update
-- key: cell_id, checkpoint
-- columns:
--   cell_id     text
--   checkpoint  exploration episodes the update rests on
--   stage_key   text; joins stg_sft_rows and stg_training_steps
--   is_updated  true when weights changed; false when there were too few rows; null when the update failed
-- left out: updates that have not been made yet.
with written as (
    select stage_key from stg_experiences
    union distinct
    -- one that failed leaves the steps it considered, and no experience
    select stage_key from int_training_reasons
)

select
    cells.cell_id,
    links.checkpoint,
    links.stage_key,
    experiences.is_updated
from int_selected_cells as cells
inner join int_cell_links as links on cells.cell_id = links.cell_id
inner join written on links.stage_key = written.stage_key
left join stg_experiences as experiences
    on links.stage_key = experiences.stage_key and links.checkpoint = experiences.checkpoint
where cells.training is not null and links.stage = 'build_experience'
