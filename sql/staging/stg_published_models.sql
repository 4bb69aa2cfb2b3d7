-- Which of our model names mean a published model; any other name is another model.
--
-- grain: name
-- key: model_id
-- columns:
--   model_id         text; as the user writes it, litellm's name
--   published_model  text
-- source: litellm's list of models; shipped as s3gym/reference/models.csv
-- left out: dated names: which of them were measured is not published.
select
    model_id,
    published_model
from raw.published_models
