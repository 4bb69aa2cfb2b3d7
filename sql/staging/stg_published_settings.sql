-- Settings of the games as published, under the names that they have here; what is not published has no row.
--
-- grain: game, phase, setting
-- key: game, phase, setting
-- columns:
--   game           text
--   phase          text; exploration or evaluation
--   setting        text; a field of the game's configuration
--   setting_value  text; as JSON writes it
--   source         text; and its licence
-- source: S3Gym, arXiv 2608.31100, CC BY 4.0; shipped as s3gym/reference/settings.csv
select
    game,
    phase,
    setting,
    setting_value,
    source
from raw.published_settings
