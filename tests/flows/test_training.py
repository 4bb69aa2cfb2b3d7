"""The pathway training with a model small enough to be trained by every test run: the facts of its stages."""

import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from s3gym import registry, storage
from s3gym.config import ConfigError, load_config
from s3gym.plan import RunPlan, make_plan, missing
from s3gym.verification import verify_folder
from s3gym.warehouse import Warehouse
from tests.direct import measure_directly
from tests.flows.tables import contents

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "peft")), reason="needs the extra local"
)

EXPLORER = "player:steady?confidence=honest"
LEARNS = {"learning_rate": 0.005, "batch": 16}
REQUEST: dict[str, Any] = {
    "scale": "smoke",
    "models": [{"id": "local:tiny", "explorer": EXPLORER, "training": LEARNS}],
    "games": ["trust"],
    "pathways": ["none", "training"],
    "exploration_episodes": 6,
    "evaluation_interval": 3,
    "retrospective": False,
    "transfer_games": ["trust", "snake"],
}
HORIZON = "game.snake.evaluation.horizon=5"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two updates in trust, the last weights in snake too."""
    data = tmp_path_factory.mktemp("trained") / "data"
    measure_directly(data, HORIZON, **REQUEST)
    return data


def test_each_checkpoint_has_weights_of_its_own_and_every_explored_step_its_row(trained: Path) -> None:
    warehouse = Warehouse(trained)

    updates = warehouse.sql("select checkpoint, is_updated, path, source_episode_ids from stg_experiences").sort(
        "checkpoint"
    )
    assert updates["checkpoint"].to_list() == [3, 6] and updates["is_updated"].to_list() == [True, True]
    assert all((trained / path / "adapter_model.safetensors").is_file() for path in updates["path"])
    assert [len(ids) for ids in updates["source_episode_ids"]] == [3, 3]  # each on what was explored since the last
    rows = warehouse.sql("select checkpoint, count(*) as n from stg_sft_rows group by all order by all").rows()
    assert rows == [(3, 3 * 10), (6, 3 * 10)]
    odd = """
        select * from stg_sft_rows
        where (decision = 'filtered') <> (weight is null) or (decision = 'filtered') <> (trained_reply_tokens is null)
    """
    assert warehouse.sql(odd).rows() == []
    assert warehouse.sql("from training_updates where first_loss <= last_loss").rows() == []
    assert warehouse.sql("from sft_from_exploration").rows() == []


def test_prompts_of_a_trained_model_are_those_of_the_untrained_one(trained: Path) -> None:
    first_steps = "where phase = 'evaluation' and game = 'trust' and step_index = 0"
    asked = f"select count(distinct checkpoint), count(distinct prompt_tokens) from stg_steps {first_steps}"

    assert Warehouse(trained).sql(asked).row(0) == (3, 1)


def test_the_last_weights_are_tried_in_the_other_game_beside_the_start(trained: Path) -> None:
    rows = Warehouse(trained).sql("select target_game, checkpoint from transfer order by all").rows()

    assert rows == [("snake", 6), ("trust", 6)]


def test_a_folder_with_training_is_verified_and_a_changed_weight_is_found(trained: Path, tmp_path: Path) -> None:
    assert all(not verdict.problems for verdict in verify_folder(trained))

    data = tmp_path / "data"
    shutil.copytree(trained, data)
    (path,) = sorted(data.glob("weights/*/adapter_model.safetensors"))[:1]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert sum(bool(verdict.problems) for verdict in verify_folder(data)) == 1


def test_two_cold_runs_train_the_same_weights(trained: Path, tmp_path: Path) -> None:
    measure_directly(tmp_path / "data", HORIZON, **REQUEST)

    again, first = contents(tmp_path / "data"), contents(trained)
    for table in ("steps", "episodes", "experiences", "sft_rows"):
        assert again[table] == first[table], table


def test_with_too_few_rows_the_weights_stay_as_they_were(tmp_path: Path) -> None:
    data = tmp_path / "data"
    measure_directly(data, **{**REQUEST, "transfer": "off"}, training={"minimum_rows": 1000})

    warehouse = Warehouse(data)
    rows = warehouse.sql("select is_updated, path, content_hash from stg_experiences").rows()
    assert rows == [(False, None, None)] * 2
    assert warehouse.sql("from training_study").row(0, named=True)["updated_checkpoint_count"] == 0
    scores = "select count(distinct mean_score) from int_checkpoints"
    assert warehouse.sql(scores).item() == 1  # of one policy


def test_weights_that_were_let_go_are_made_again_when_something_rests_on_them(trained: Path, tmp_path: Path) -> None:
    from flows.weights import clear_weights, lost_weights, recall_weights

    data = tmp_path / "data"
    shutil.copytree(trained, data)
    plan = planned(training={"keep": "last"})
    (cell,) = [cell for cell in plan.cells if cell.subject.pathway.IS_TRAINED]
    clear_weights(data, cell.subject, cell.stages)

    assert len(list(data.glob("weights/*/"))) == 1 and not any(missing(data, stage) for stage in cell.stages)
    larger = planned(training={"keep": "last"}, evaluation_episodes=14)
    stages = next(cell for cell in larger.cells if cell.subject.pathway.IS_TRAINED).stages
    first = next(stage for stage in stages if stage.kind == "build_experience")
    assert lost_weights(data, stages) == {first.key}
    recall_weights(data, stages)
    assert missing(data, first) == [(0, 3)]


def planned(**values: Any) -> RunPlan:
    return make_plan(load_config(None, {**REQUEST, **values}, (HORIZON,)))


def test_what_cannot_be_trained_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match="player:random.*cannot be trained.*local:smollm2.*weights"):
        planned(models=["player:random"])
    with pytest.raises(ConfigError, match="openai/gpt-4o.*cannot be trained"):
        planned(models=["openai/gpt-4o"])


def test_without_peft_the_pathway_is_left_out_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "peft" else find(name))

    plan = planned()

    assert [cell.record.pathway for cell in plan.cells] == ["none"]
    (told,) = plan.left_out
    assert "local:tiny, pathway training, is left out" in told and '".[local]"' in told
    with pytest.raises(ConfigError, match=r"\.\[local\]"):
        planned(pathways=["training"])


PLAIN_PEFT = """
import json, sys
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
base, adapter, asked = sys.argv[1], sys.argv[2], json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(base)
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter).eval()
def score(prompt, answer):
    ids = tokenizer(prompt + answer, add_special_tokens=False, return_tensors="pt").input_ids
    count = len(tokenizer(prompt, add_special_tokens=False).input_ids)
    with torch.inference_mode():
        scores = model(ids).logits[0, count - 1 : -1].log_softmax(-1)
    return scores.gather(1, ids[0, count:, None]).sum().item()
for messages, answers in asked:
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    print(max(answers, key=lambda answer: score(prompt, answer)))
"""


def test_plain_peft_in_another_process_answers_as_the_run_did(trained: Path) -> None:
    from s3gym.models.local.weights import find
    from s3gym.protocol.trajectories import prompts
    from s3gym.records import Step

    game = registry.load("s3gym.games", "trust", "game").GAME
    (stage,) = [
        s
        for s in planned().stages()
        if s.kind == "evaluate" and s.checkpoint == 6 and s.experience and not s.is_transfer
    ]
    steps = [Step(**row) for row in storage.read_part(trained, "steps", "trust", stage.whole)]
    own = [step for step in steps if step.episode_id == steps[0].episode_id]
    answers = [f"Answer: {action}, Score: none" for action in ("collaborate", "cheat")]
    asked = [(messages, answers) for messages in prompts(game, game.evaluation, own)]
    assert stage.experience is not None
    path = storage.read_part(trained, "experiences", "trust", stage.experience.whole)[0]["path"]

    command = [sys.executable, "-c", PLAIN_PEFT, str(find("tiny").folder(True)), str(trained / path)]
    done = subprocess.run(command, input=json.dumps(asked), text=True, capture_output=True, timeout=120, check=True)

    assert done.stdout.splitlines() == [step.reply for step in own]


KILLED = """
import os, signal, sys
from pathlib import Path
from s3gym.models.local import adapters, training
from tests.flows.test_training import HORIZON, REQUEST
from tests.direct import measure_directly

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

point, data = sys.argv[1:]
if point == "training":
    training.learning_rate = lambda step, *rest: die() if step == 1 else 0.001
else:
    adapters.write_card = die
measure_directly(Path(data), HORIZON, **REQUEST)
"""


@pytest.mark.parametrize("point", ["training", "saving"])
def test_killed_while_it_trains_a_run_ends_with_the_same_weights(point: str, trained: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    killed = subprocess.run([sys.executable, "-c", KILLED, point, str(data)], timeout=120, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not list(data.glob("manifests/build*"))

    measure_directly(data, HORIZON, **REQUEST)

    again, first = contents(data), contents(trained)
    for table in ("steps", "episodes", "experiences", "sft_rows", "training_steps"):
        assert again[table] == first[table], table
    assert sorted(path.name for path in data.glob("weights/*")) == sorted(p.name for p in trained.glob("weights/*"))
