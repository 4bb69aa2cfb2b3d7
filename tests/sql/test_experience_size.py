from dataclasses import replace

from tests.sql.lab import EXPERIENCE, Lab


def test_sizes_are_null_where_the_memory_could_not_be_built(lab: Lab) -> None:
    lab.add()
    for checkpoint in (3, 6):
        lab.link("build_experience", f"built-{checkpoint}", checkpoint)
    sizes = {"token_count": 90, "steps_kept": 12, "steps_dropped": 2, "tokens_dropped": 15}
    built = replace(EXPERIENCE, stage_key="built-3", checkpoint=3, **sizes)
    failed = replace(EXPERIENCE, stage_key="built-6", checkpoint=6, error_kind="timeout")
    lab.part("built", {"experiences": [built, failed]})
    query = "select checkpoint, token_count, steps_kept, steps_dropped, tokens_dropped, error_kind from experience_size"
    assert lab.open().sql(f"{query} order by checkpoint").rows() == [
        (3, 90, 12, 2, 15, None),
        (6, None, None, None, None, "timeout"),
    ]
