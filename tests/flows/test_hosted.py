"""A hosted model through the whole chain, against a real HTTP server on loopback."""

from pathlib import Path

from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse
from tests.flows.conftest import run
from tests.flows.test_kill import plays
from tests.models.loopback import CANARY, Loopback


def request(loopback: Loopback) -> dict[str, object]:
    model = {"id": "openai/loopback", "base_url": loopback.base_url}
    return {"scale": "smoke", "games": ["trust"], "models": [model], "pathways": ["none", "memory"]}


def test_a_hosted_model_is_measured_paid_once_and_leaves_no_key(
    prefect_api: str, loopback: Loopback, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    loopback.handler = plays

    outcome = run(data, **request(loopback))

    assert outcome.failures == []
    # 3 evaluations of 7 matches of 10 rounds, 3 explored matches, 3 memory texts, 3 looks back
    asked = 3 * 7 * 10 + 3 * 10 + 3 + 3
    assert len(loopback.requests) == asked
    assert all(not verdict.problems for verdict in verify_folder(data))
    tokens = Warehouse(data).sql("select sum(prompt_tokens), sum(completion_tokens) from stg_steps").row(0)
    assert tokens == (20 * 240, 5 * 240)  # what the server reports for each call
    files = [path for path in data.rglob("*") if path.is_file()]
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]

    for manifest in (data / "manifests").iterdir():
        manifest.unlink()  # everything is made again, from the journal
    again = run(data, **request(loopback))
    assert again.task_count > 0 and again.failures == []
    assert len(loopback.requests) == asked
