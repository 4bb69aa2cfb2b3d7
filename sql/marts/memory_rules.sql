-- Memory rules: what a cell's memory says at a checkpoint, rule by rule, where each rule says it comes from, and how
-- the score moved while it was in force.
--
-- grain: cell, checkpoint, line of the memory text that is no heading
-- key: cell_id, checkpoint, line_number
-- columns:
--   cell_id             text
--   model_id            text
--   game                text
--   pathway             text
--   intervention        text
--   replicate           integer, from 0
--   checkpoint          exploration episodes behind the memory; the held-out episodes of this checkpoint read it
--   line_number         integer, from 1; within the text, empty lines included
--   heading             text; the heading above it, such as Retain; null where there is none
--   rule_text           text; without its bullet and its episodes
--   named_episodes      text; numbers of the episodes it says it comes from, from 1, in order and each once, such as
--       1, 3; null where it names none that exists
--   named_count         how many these are; 0 where it names none that exists
--   unknown_count       numbers it names that no episode behind the memory has
--   first_checkpoint    the first checkpoint at which this cell's memory has the rule, whatever its letter case,
--       spacing and final full stop
--   is_new              true where the checkpoint before has not got it, or there is none
--   score               game's unit; mean held-out score of this checkpoint; null when not valid
--   previous_score      game's unit; of the checkpoint before, the first being before any memory
--   score_change        game's unit; score - previous_score
-- formula: a rule is a line that is not empty; a heading is one of Retain, Avoid and Next, a line that ends in a colon,
--     or one that begins with #. Bullets are -, *, a dot or a number. Episodes stand in square brackets at the end of a
--     line: [episodes 1, 3], [episode 2] or [episodes 1-3]
-- left out: memories between checkpoints, which only one exploration episode reads; guides that stand in for a memory.
--     A rule and a change of the score beside it are no cause and effect: all rules of a memory are in force at once.
with memories as (
    select
        links.cell_id,
        experiences.checkpoint,
        unnest(string_split(replace(experiences.text, chr(13), ''), chr(10))) as written,
        generate_subscripts(string_split(experiences.text, chr(10)), 1) as line_number
    from int_cell_links as links
    inner join stg_experiences as experiences on links.stage_key = experiences.stage_key
    where links.stage = 'build_experience' and experiences.kind similar to 'memory(,.*)?'
),

lines as (
    select
        cell_id,
        checkpoint,
        line_number,
        trim(written) as written,
        regexp_full_match(trim(written), '([#*_]+ *)?(Retain|Avoid|Next)[*_]*:?[*_]*|#.*|.*:[*_]*', 'i')
        and not regexp_matches(written, '^\s*([-*•–]|\d+[.)])\s') as is_heading
    from memories
    where trim(written) != ''
),

headed as (
    select
        *,
        last_value(case when is_heading then trim(written, '#*_: ') end ignore nulls) over (
            partition by cell_id, checkpoint order by line_number
        ) as heading
    from lines
),

rules as (
    select
        cell_id,
        checkpoint,
        line_number,
        heading,
        regexp_replace(
            regexp_replace(written, '^([-*•–]|\d+[.)])\s+', ''), '\s*\[\s*episodes?\b[^\]]*\]\s*\.?$', '', 'i'
        ) as rule_text,
        regexp_extract_all(
            regexp_extract(written, '\[\s*episodes?\b([^\]]*)\]\s*\.?$', 1, 'i'), '\d+(\s*[-–]\s*\d+)?'
        ) as spans
    from headed
    where not is_heading
),

numbers as (
    select
        cell_id,
        checkpoint,
        line_number,
        heading,
        rule_text,
        list_sort(list_distinct(flatten(list_transform(
            spans,
            -- no span of a text is longer than a cell, whatever it says
            lambda span: range(
                coalesce(try_cast(regexp_extract(span, '^\d+') as bigint), 0),
                least(
                    coalesce(try_cast(regexp_extract(span, '\d+$') as bigint), 0),
                    coalesce(try_cast(regexp_extract(span, '^\d+') as bigint), 0) + checkpoint
                ) + 1
            )
        )))) as episodes
    from rules
),

worded as (
    select
        *,
        regexp_replace(lower(trim(rule_text, ' .')), '\s+', ' ', 'g') as wording,
        list_filter(episodes, lambda number: number between 1 and checkpoint) as known
    from numbers
),

checkpoints as (
    select
        cell_id,
        checkpoint,
        mean_score,
        lag(checkpoint) over (partition by cell_id order by checkpoint) as previous_checkpoint,
        lag(mean_score) over (partition by cell_id order by checkpoint) as previous_score
    from int_checkpoints
),

seen as (
    select
        cell_id,
        wording,
        checkpoint,
        min(checkpoint) over (partition by cell_id, wording) as first_checkpoint
    from worded
    group by cell_id, wording, checkpoint
)

select
    cells.cell_id,
    cells.model_id,
    cells.game,
    cells.pathway,
    cells.intervention,
    cells.replicate,
    worded.checkpoint,
    worded.line_number,
    worded.heading,
    worded.rule_text,
    nullif(array_to_string(worded.known, ', '), '') as named_episodes,
    len(worded.known) as named_count,
    len(worded.episodes) - len(worded.known) as unknown_count,
    seen.first_checkpoint,
    earlier.wording is null as is_new,
    checkpoints.mean_score as score,
    checkpoints.previous_score,
    checkpoints.mean_score - checkpoints.previous_score as score_change
from worded
inner join int_selected_cells as cells on worded.cell_id = cells.cell_id
inner join seen
    on worded.cell_id = seen.cell_id and worded.wording = seen.wording and worded.checkpoint = seen.checkpoint
left join checkpoints on worded.cell_id = checkpoints.cell_id and worded.checkpoint = checkpoints.checkpoint
left join seen as earlier
    on
        worded.cell_id = earlier.cell_id
        and worded.wording = earlier.wording
        and checkpoints.previous_checkpoint = earlier.checkpoint
