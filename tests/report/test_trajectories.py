"""What the viewer holds: every step in brief, and which episodes whole where not all fit."""

import base64
import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from s3gym.report.sections import trajectories
from s3gym.warehouse import Warehouse
from tests.report import folder

EPISODES = Path(trajectories.__file__).with_suffix(".sql")


def _unpacked(html: str) -> dict[str, Any]:
    """What is packed in the section, by name."""
    packed = re.findall(r'id="trajectories-([\w-]+)">([^<]+)<', html)
    return {name: json.loads(zlib.decompress(base64.b64decode(content))) for name, content in packed}


def _said(html: str) -> str:
    return re.sub("<.*?>", "", html)


def test_a_small_run_is_held_whole_and_the_page_says_so(warehouse: Warehouse, page: Path) -> None:
    # per model: 4 held-out ones before, 4 after each of 2 cycles in 3 pathways, 4 exploration episodes in 2 pathways:
    # 4 + 24 + 8 = 36 of 3 steps; two models
    assert "All 72 episodes, 216 steps, are in this page with all that was seen and said." in page.read_text()


def test_a_step_is_held_as_it_was_stored(warehouse: Warehouse) -> None:
    held = _unpacked(trajectories.build(warehouse))
    row = warehouse.sql("""
        select * from stg_steps where action_status = 'ok' and self_score != verifier_reward
        order by episode_id, step_index limit 1
    """).to_dicts()[0]

    number, episode = next((n, e) for n, e in enumerate(held["index"]["episodes"]) if e["id"] == row["episode_id"])
    brief = held[f"cell-{episode['cells'][0]}"]["episodes"][episode["place"]]
    texts = held[f"whole-{number}"]["steps"][row["step_index"]]

    facts = ("action", "action_status", "self_score", "verifier_reward", "error_kind")
    assert {name: brief[name][row["step_index"]] for name in facts} == {name: row[name] for name in facts}
    # the reply's last line that names an answer ends with what is hostile, up to where that breaks the line
    assert brief["answer"][row["step_index"]] == row["reply"].split("\n")[-1][:200]
    assert texts == {name: row[name] for name in ("observation", "reply", "reasoning", "feedback", "error_message")}
    # the declared range is from -10 to 10
    gap = abs(row["self_score"] - row["verifier_reward"]) / 20
    assert episode["gaps"][row["step_index"]] == pytest.approx(1000 * gap, abs=0.5)


def test_where_not_all_fits_each_cell_has_something_whole_and_its_most_surprising_episode(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = sum(map(len, re.findall(r'id="trajectories-[\w-]+">([^<]+)<', trajectories.build(warehouse))))
    monkeypatch.setattr(trajectories, "ROOM", everything * 3 // 4)

    html = trajectories.build(warehouse)

    held = _unpacked(html)
    episodes = held["index"]["episodes"]
    whole = [number for number, episode in enumerate(episodes) if episode["whole"]]
    assert 0 < len(whole) < len(episodes) == 72
    assert f"seen and said it holds of {len(whole)} of 72 episodes" in _said(html)
    assert "Of 216 steps this page holds the action" in _said(html)
    assert sorted(name for name in held if name.startswith("whole")) == sorted(f"whole-{number}" for number in whole)
    for cell in range(len(held["index"]["cells"])):
        gaps = {n: max(g or 0 for g in e["gaps"]) for n, e in enumerate(episodes) if cell in e["cells"]}
        assert max(gaps.values()) == max(gap for number, gap in gaps.items() if number in whole)


def test_more_texts_than_can_be_read_are_cut_evenly_over_the_models(tmp_path: Path) -> None:
    # an episode of 3 steps of 20,000 characters and some words is about 61,000, so some 260 of 12 x 36 fit into
    # 16,000,000
    folder.make(tmp_path / "data", models=[f"m{i}" for i in range(12)], reply="x" * 24_000)

    chosen = Warehouse(tmp_path / "data", materialize=True).sql(EPISODES.read_text()).to_dicts()

    whole = [episode for episode in chosen if episode["whole"]]
    shares = Counter(episode["cell_ids"][0].split("-")[0] for episode in whole)
    replies = [step["reply"] for episode in whole for step in json.loads(episode["whole"])["steps"] if step["reply"]]
    assert 250 <= len(whole) <= 270
    assert len(chosen) == 12 * 36
    assert len(shares) == 12
    assert max(shares.values()) - min(shares.values()) <= 5  # less than a round of five kinds in each of three cells
    assert all(len(reply) == 20_000 + len(" [cut]") for reply in replies)
