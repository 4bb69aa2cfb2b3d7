from dataclasses import replace

from tests.sql.lab import EXPERIENCE, Lab


def test_sizes_are_null_where_the_memory_could_not_be_built(lab: Lab) -> None:
    lab.add()
    for checkpoint in (3, 6):
        lab.link("build_experience", f"built-{checkpoint}", checkpoint)
    sizes = {"token_count": 90, "steps_kept": 12, "steps_dropped": 2, "tokens_dropped": 15}
    built = replace(EXPERIENCE, stage_key="built-3", checkpoint=3, **sizes)
    nothing = dict.fromkeys(sizes)
    failed = replace(EXPERIENCE, stage_key="built-6", checkpoint=6, error_kind="timeout", **nothing)
    lab.part("built", {"experiences": [built, failed]})
    rows = lab.open().sql("from experience_size order by checkpoint").to_dicts()
    assert [{name: r[name] for name in ("checkpoint", *sizes, "error_kind")} for r in rows] == [
        {"checkpoint": 3, **sizes, "error_kind": None},
        {"checkpoint": 6, **nothing, "error_kind": "timeout"},
    ]
