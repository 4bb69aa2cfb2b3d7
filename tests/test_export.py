"""Stored play as files for other tools: what training read, and what the verifier knew, never in one file."""

import asyncio
import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from s3gym.cli import main
from s3gym.export.files import CANARY
from s3gym.games.trust import GAME as TRUST
from s3gym.protocol.asking import Asker
from s3gym.protocol.prompts import PROMPT_VERSION
from s3gym.protocol.rollout import play
from s3gym.records import Episode, SftRow, Step
from s3gym.transcript import Message
from tests.programmed import Programmed, part
from tests.sql.lab import SFT_ROW, Lab

SECRET = 777.125
"""Every reward of the folder: it can be found wherever it is."""
BETTER = "I see.\nAnswer: collaborate, Score: 2"
REPLIES = ("Let me think.\nAnswer: cheat, Score: 3", "No idea.", "Answer: collaborate, Score: 2")


class Played(NamedTuple):
    """A folder with two explored and two held-out episodes of trust, and what was asked in the explored ones."""

    data: Path
    lab: Lab
    explored: list[Episode]
    held_out: list[Episode]
    asked: list[list[tuple[Message, ...]]]


def episodes(lab: Lab, key: str, phase: str) -> tuple[list[Episode], list[list[tuple[Message, ...]]]]:
    made: list[Episode] = []
    steps: list[Step] = []
    asked = []
    for index in range(2):
        model = Programmed(*REPLIES)
        frame = part(stage_key=key, phase=phase, episode_index=index, seed=index)
        config = TRUST.exploration if phase == "exploration" else TRUST.evaluation
        episode, own = asyncio.run(play(TRUST, config, Asker(model), frame))
        made.append(replace(episode, final_score=SECRET))
        steps += [replace(step, verifier_reward=SECRET) for step in own]
        asked.append([request.messages for request in model.requests])
    lab.part(key, {"episodes": made, "steps": steps}, "trust")
    return made, asked


@pytest.fixture
def played(tmp_path: Path) -> Played:
    lab = Lab(tmp_path / "data")
    lab.add("trained", pathway="training", game="trust", prompt_version=PROMPT_VERSION)
    explored, asked = episodes(lab, "explored", "exploration")
    held_out, _ = episodes(lab, "heldout", "evaluation")
    lab.link("explore", "explored", 0, "trained")
    lab.link("evaluate", "heldout", 0, "trained")
    return Played(tmp_path / "data", lab, explored, held_out, asked)


def rows_of(played: Played) -> list[SftRow]:
    """One kept, one filtered and one corrected step of the second episode, and a kept one of the first."""
    first, second = (replace(SFT_ROW, episode_id=episode.episode_id) for episode in played.explored)
    return [
        replace(second, step_index=2, self_score=2.0, weight=0.5),
        replace(second, step_index=1, decision="filtered", reason="unusable_action", weight=None, self_score=None),
        replace(second, step_index=3, decision="corrected", reason="corrected", reply=BETTER),
        replace(first, step_index=0, self_score=3.0, weight=1.5),
    ]


def trained(played: Played, rows: list[SftRow] | None = None) -> Path:
    played.lab.train(3, rows_of(played) if rows is None else rows, cell_id="trained")
    played.lab.open()
    return played.data


def export(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["export", *map(str, arguments)])


def exported(data: Path, kind: str, out: Path, *options: str) -> list[dict[str, Any]]:
    result = export(kind, "--data", data, "--out", out, *options)
    assert result.exit_code == 0, result.output
    if out.suffix == ".parquet":
        table: list[dict[str, Any]] = pq.read_table(out).to_pylist()
        return table
    return [json.loads(line) for line in out.read_text(encoding="utf-8").split("\n")[:-1]]


# --- fine-tuning data ---------------------------------------------------------------------------------------


def test_a_row_is_the_prompt_as_it_was_asked_and_the_answer_that_is_trained_on(played: Played, tmp_path: Path) -> None:
    rows = exported(trained(played), "sft", tmp_path / "rows.jsonl")

    # the first episode's step 0, then the second's steps 2 and 3
    assert [tuple(row["prompt"]) for row in rows] == [played.asked[0][0], played.asked[1][2], played.asked[1][3]]
    answers = [REPLIES[0], REPLIES[2], BETTER]
    assert [row["completion"] for row in rows] == [[{"role": "assistant", "content": text}] for text in answers]
    origin = ["game", "model_id", "checkpoint", "episode_id", "step_index", "self_score", "decision", "weight"]
    assert [[row[name] for name in origin] for row in rows] == [
        ["trust", "m", 3, played.explored[0].episode_id, 0, 3.0, "kept", 1.5],
        ["trust", "m", 3, played.explored[1].episode_id, 2, 2.0, "kept", 0.5],
        ["trust", "m", 3, played.explored[1].episode_id, 3, 1.0, "corrected", 1.0],
    ]


def test_a_conversation_is_prompt_and_answer_together(played: Played, tmp_path: Path) -> None:
    apart = exported(trained(played), "sft", tmp_path / "rows.jsonl")
    together = exported(played.data, "sft", tmp_path / "talk.jsonl", "--format", "messages")

    assert [row["messages"] for row in together] == [row["prompt"] + row["completion"] for row in apart]
    assert not {"prompt", "completion"} & set(together[0])


@pytest.mark.parametrize("options", [["sft"], ["sft", "--format", "messages"], ["trajectories"]], ids=" ".join)
def test_both_kinds_of_file_hold_the_same(played: Played, tmp_path: Path, options: list[str]) -> None:
    kind, *more = options
    lines = exported(trained(played), kind, tmp_path / "a.jsonl", *more)

    assert lines == exported(played.data, kind, tmp_path / "a.parquet", *more)
    assert list(lines[0]) == pq.read_schema(tmp_path / "a.parquet").names
    assert {row["canary"] for row in lines} == {CANARY}


def test_no_reward_is_in_fine_tuning_data(played: Played, tmp_path: Path) -> None:
    exported(trained(played), "sft", tmp_path / "rows.jsonl")
    exported(played.data, "trajectories", tmp_path / "all.jsonl")

    assert str(SECRET) in (tmp_path / "all.jsonl").read_text(encoding="utf-8")
    text = (tmp_path / "rows.jsonl").read_text(encoding="utf-8")
    assert not any(word in text for word in (str(SECRET), "verifier", "final_score"))


@pytest.mark.parametrize("phase", ["evaluation", "exploration"])
def test_a_held_out_episode_cannot_be_exported_whatever_its_rows_say(
    played: Played, tmp_path: Path, phase: str
) -> None:
    # given an update that names a held-out episode, and steps that call themselves explored
    episode = played.held_out[0]
    _, steps = asyncio.run(play(TRUST, TRUST.evaluation, Asker(Programmed(*REPLIES)), part(stage_key="heldout")))
    renamed = [replace(step, episode_id=episode.episode_id, phase=phase) for step in steps]
    played.lab.part("heldout", {"episodes": played.held_out, "steps": renamed}, "trust")
    trained(played, [*rows_of(played), replace(SFT_ROW, episode_id=episode.episode_id)])

    refused = export("sft", "--data", played.data, "--out", tmp_path / "rows.jsonl")

    assert refused.exit_code == 2 and f"{episode.episode_id} and 0 more are no exploration" in refused.output
    assert not (tmp_path / "rows.jsonl").exists()


def test_another_cells_episodes_are_no_rows_of_this_run(played: Played, tmp_path: Path) -> None:
    trained(played)
    played.lab.add("other", run="later", pathway="history")
    played.lab.open()

    assert "no row was trained on" in export("sft", "--data", played.data, "--out", tmp_path / "a.jsonl").output
    assert len(exported(played.data, "sft", tmp_path / "a.jsonl", "--run", "run-1")) == 3


def test_prompts_that_this_version_words_otherwise_are_not_made_up(played: Played, tmp_path: Path) -> None:
    old = [replace(episode, game_version=99) for episode in played.explored]
    played.lab.part("older", {"episodes": old}, "trust")
    (played.data / "tables" / "episodes" / "trust" / "older.parquet").rename(
        played.data / "tables" / "episodes" / "trust" / "explored.parquet"
    )

    refused = export("sft", "--data", trained(played), "--out", tmp_path / "rows.jsonl")

    assert refused.exit_code == 2 and "version 99 of trust" in refused.output


# --- trajectories -------------------------------------------------------------------------------------------


def test_an_episode_is_a_row_with_its_steps(played: Played, tmp_path: Path) -> None:
    rows = exported(trained(played), "trajectories", tmp_path / "all.jsonl")

    assert [row["phase"] for row in rows] == ["evaluation"] * 2 + ["exploration"] * 2
    row = rows[2]
    assert row["episode_id"] == played.explored[0].episode_id
    assert row["rules"] == TRUST.rules(TRUST.exploration)
    assert (row["model_id"], row["pathways"], row["cell_ids"]) == ("m", ["training"], ["trained"])
    assert (row["verifier_final_score"], row["seed"], row["status"]) == (SECRET, 0, "valid")
    steps = row["steps"]
    assert [step["step_index"] for step in steps] == list(range(played.explored[0].step_count))
    assert [(step["reply"], step["self_score"]) for step in steps[:3]] == list(zip(REPLIES, [3, None, 2], strict=True))
    assert {step["verifier_reward"] for step in steps} == {SECRET}
    assert all(step["observation"] and step["feedback"] for step in steps)


@pytest.mark.parametrize("phase", ["exploration", "evaluation"])
def test_a_phase_can_be_asked_for(played: Played, tmp_path: Path, phase: str) -> None:
    rows = exported(trained(played), "trajectories", tmp_path / "all.jsonl", "--phase", phase)

    assert [row["phase"] for row in rows] == [phase] * 2


def test_an_episode_of_several_cells_is_one_row_and_says_who_played(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add("a", {0: [1.0, 2.0, 3.0]}, {0: [1.0]}, start="y0", budget=2, explorer_id="player:expert")
    lab.add("b", {0: [1.0, 2.0, 3.0]}, start="y0", budget=2, pathway="memory")
    lab.transfer(3, "trust", [1.0], "a")
    lab.open()

    rows = exported(tmp_path / "data", "trajectories", tmp_path / "all.parquet")

    # the third episode at checkpoint 0 belongs to a larger budget
    assert [(row["game"], row["episode_id"], row["cell_ids"], row["model_id"]) for row in rows] == [
        ("snake", "y0/0", ["a", "b"], "m"),
        ("snake", "y0/1", ["a", "b"], "m"),
        ("snake", "a-explore-0/0", ["a"], "player:expert"),
        ("trust", "a-transfer-trust-3/0", ["a"], "m"),
    ]
    assert rows[0]["pathways"] == ["history", "memory"]


def test_rules_of_a_game_that_is_not_there_are_null(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "data")
    lab.add("a", {0: [1.0]}, game="gone")
    lab.open()

    assert exported(tmp_path / "data", "trajectories", tmp_path / "all.jsonl")[0]["rules"] is None


# --- the file -----------------------------------------------------------------------------------------------


def test_the_name_decides_the_format(played: Played, tmp_path: Path) -> None:
    refused = export("trajectories", "--data", trained(played), "--out", tmp_path / "all.csv")

    assert refused.exit_code == 2 and ".jsonl or .parquet" in refused.output


def test_a_file_is_written_over_only_when_forced(played: Played, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    out.write_text("mine")

    refused = export("sft", "--data", trained(played), "--out", out)

    assert refused.exit_code == 2 and "--force" in refused.output and out.read_text() == "mine"
    assert len(exported(played.data, "sft", out, "--force")) == 3


@pytest.mark.parametrize(("kind", "said"), [("sft", "no row was trained on"), ("trajectories", "no episode")])
def test_nothing_to_export_is_said_and_no_file_is_made(tmp_path: Path, kind: str, said: str) -> None:
    lab = Lab(tmp_path / "data")
    lab.add()
    lab.open()

    refused = export(kind, "--data", tmp_path / "data", "--out", tmp_path / "a.jsonl")

    assert refused.exit_code == 2 and said in refused.output
    assert not (tmp_path / "a.jsonl").exists()


def test_the_canary_is_the_one_the_readme_asks_for() -> None:
    assert f"`{CANARY}`" in (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


# --- the libraries that read it -----------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("datasets") is None, reason="datasets is not installed")
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_datasets_loads_every_export(played: Played, tmp_path: Path, ending: str) -> None:
    from datasets import load_dataset

    kinds = [["sft"], ["sft", "--format", "messages"], ["trajectories"]]
    for number, (kind, *options) in enumerate(kinds):
        out = tmp_path / f"{number}.{ending}"
        rows = exported(trained(played) if not number else played.data, kind, out, *options)
        reader = "json" if ending == "jsonl" else ending
        loaded = load_dataset(reader, data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
        assert loaded.to_list() == rows


@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="trl is not installed")
@pytest.mark.parametrize("form", ["messages", "prompt-completion"])
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_trl_trains_on_the_rows_as_they_are(played: Played, tmp_path: Path, ending: str, form: str) -> None:
    from datasets import load_dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    out = tmp_path / f"rows.{ending}"
    rows = exported(trained(played), "sft", out, "--format", form)
    letters = sorted({letter for row in rows for letter in json.dumps(row)} | {"\n"})
    words = {word: number for number, word in enumerate(["<pad>", "<eos>", "<user>", "<assistant>", *letters])}
    raw = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    raw.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<user>", "<assistant>"]})
    tokenizer.chat_template = (
        "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}<eos>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=8192,
        )
    )
    settings = SFTConfig(
        output_dir=str(tmp_path / "trl"), max_length=8192, max_steps=1, report_to=[], use_cpu=True, save_strategy="no"
    )
    reader = "json" if ending == "jsonl" else ending
    data = load_dataset(reader, data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))

    trainer = SFTTrainer(model=model, args=settings, train_dataset=data, processing_class=tokenizer)

    encoded = trainer.train_dataset[0]
    learnt = "".join(tokenizer.convert_ids_to_tokens([token for token in encoded["labels"] if token != -100]))
    is_apart = form == "prompt-completion"
    # apart, the loss is on the answer alone; in a conversation TRL takes it on everything
    question = rows[0]["prompt" if is_apart else "messages"][0]["content"]
    assert learnt == (f"{REPLIES[0]}<eos>" if is_apart else f"<user>{question}<eos><assistant>{REPLIES[0]}<eos>")
    assert trainer.train().training_loss > 0
