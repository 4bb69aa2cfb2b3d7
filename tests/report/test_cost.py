"""The section on cost: there when something was asked, and plain about what nobody knows."""

import re
from dataclasses import replace
from pathlib import Path

from s3gym.records import CallFacts
from s3gym.report.render import render_text
from s3gym.report.sections import cost
from s3gym.warehouse import Warehouse
from tests.report import folder
from tests.sql.lab import EXPERIENCE, Lab


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<.*?>", " ", html))


def remembered(data: Path, *calls: CallFacts) -> Warehouse:
    """A cell whose only calls are these memory texts."""
    lab = Lab(data)
    lab.add()
    lab.link("build_experience", "b", 3)
    rows = []
    for number, call in enumerate(calls):
        given = {name: getattr(call, name) for name in CallFacts.__dataclass_fields__}
        rows.append(replace(EXPERIENCE, stage_key="b", checkpoint=number, **given))
    lab.part("b", {"experiences": rows})
    return lab.open()


def test_a_run_of_scripted_players_alone_has_no_such_section(tmp_path: Path) -> None:
    folder.make(tmp_path / "data", models=["player:myopic"])

    text = render_text(Warehouse(tmp_path / "data"))

    assert 'id="summary"' in text
    assert 'id="cost"' not in text


def test_only_models_that_were_asked_are_in_it(warehouse: Warehouse) -> None:
    told = words(cost.build(warehouse))

    assert "openai/gpt-4.1" in told
    assert "player:myopic" not in told


def test_dollars_are_told_with_how_many_calls_they_are_of(tmp_path: Path) -> None:
    priced = CallFacts(prompt_tokens=1000, cached_tokens=250, cost_usd=0.5, failed_attempts=3, failed_cost_usd=0.25)
    told = words(cost.build(remembered(tmp_path / "data", priced, CallFacts(prompt_tokens=10, failed_attempts=0))))

    assert "0.5000 dollars for the calls below" in told
    assert "0.2500 dollars for failed attempts" in told
    assert "3 failed calls" in told and "1,010 prompt tokens" in told
    assert "0.5000 (of 1 calls)" in told
    assert "25 % (of 1 calls)" in told.replace("&nbsp;", " ")  # 250 of 1000; the other call says nothing of a cache
    assert "Nobody knows what 1 of the answers cost" in told


def test_where_every_price_is_known_there_is_no_warning(tmp_path: Path) -> None:
    told = words(cost.build(remembered(tmp_path / "data", CallFacts(cost_usd=0.5, failed_attempts=0))))

    assert "Nobody knows" not in told
    assert "of 1 calls" not in told
