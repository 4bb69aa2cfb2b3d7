"""Training in this process: tiny random models learn answers, told by bytes, tokens and numbers worked by hand."""

import asyncio
import json
import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from s3gym.config import TrainingSettings
from s3gym.errors import MissingPackage
from s3gym.models import load_model as model_named
from s3gym.models import local
from s3gym.models.base import Change, Example, Trainable, TrainingFailed, Weights
from s3gym.transcript import Message
from tests.models.test_local import REASON, SMALL, ask, request_of, tokenizer, written

torch: Any = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("peft", reason=REASON)

from s3gym.models.local import training  # noqa: E402
from s3gym.models.local.engine import Engine  # noqa: E402
from s3gym.models.local.loading import UnusableModel, read_model  # noqa: E402
from s3gym.models.local.weights import digest_of  # noqa: E402

ASKED: tuple[Message, ...] = ({"role": "user", "content": "Where to?"},)
PLAIN = TrainingSettings(rank=4, alpha=8, epochs=2, batch=2, batch_tokens=64, learning_rate=1e-2, warmup=0.0)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("tiny") / "llama")


@pytest.fixture(scope="module")
def examples(tiny: Path) -> list[Example]:
    """Five answers of different lengths."""
    model = model_named(f"local:{tiny}")
    assert isinstance(model, Trainable)
    return [model.example(ASKED, reply) for reply in ("UP", "LEFT", "DOWN, I think", "RIGHT", "UP" * 20)]


def made(
    place: Path,
    examples: Sequence[Example],
    folder: Path,
    settings: TrainingSettings = PLAIN,
    *,
    start: Weights | None = None,
    seed: int = 7,
    options: str = "",
) -> tuple[Weights, list[Change]]:
    """Trains the model in ``place``."""
    model, changes = model_named(f"local:{place}{options}"), list[Change]()
    assert isinstance(model, Trainable)
    digest = asyncio.run(
        model.train(
            examples, settings, start=start, seed=seed, folder=folder, card={"Game": "none"}, on_update=changes.append
        )
    )
    return Weights(folder=folder, digest=digest), changes


def speaking(place: Path) -> Path:
    """A model that can also come to an end: ``written`` leaves the marks out of what it says."""
    model = read_model(place, "fp32", "cpu")
    with torch.no_grad():
        head = model.get_output_embeddings().weight
        head[256:] = 0.4 * torch.randn(4, head.shape[1], generator=torch.Generator().manual_seed(0))
    model.save_pretrained(place)
    return place


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fitted(place: Path, examples: Sequence[Example], settings: TrainingSettings) -> tuple[dict[str, Any], list[Change]]:
    """All of a model after training in place, and what was told."""
    model, changes = read_model(place, "fp32", "cpu"), list[Change]()
    training.fit(model, examples, settings, seed=7, tell=changes.append)
    return {name: tensor.detach().clone() for name, tensor in model.named_parameters()}, changes


# --- what is trained on


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_example_is_what_the_engine_read_and_wrote(
    temperature: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_named(f"local:{_ending(tmp_path)}")
    assert isinstance(model, Trainable)
    jobs: list[Any] = []
    new: list[list[int]] = []
    submit, end = Engine.submit, Engine._end

    def submitted(engine: Engine, job: Any) -> Any:
        jobs.append(job)
        return submit(engine, job)

    def ended(engine: Engine, rows: Any, outcome: Any) -> None:
        new.extend(row.new for row in rows)
        end(engine, rows, outcome)

    monkeypatch.setattr(Engine, "submit", submitted)
    monkeypatch.setattr(Engine, "_end", ended)
    request = request_of("Where to?", temperature=temperature, seed=3, max_output_tokens=900)
    (completion,) = ask(model, request)
    assert completion.facts.finish_reason == "stop"

    example = model.example(request.messages, completion.text, completion.reasoning)

    assert example.tokens[: example.prompt_count] == jobs[0].tokens
    assert example.tokens[example.prompt_count :] == new[0]
    assert (completion.facts.prompt_tokens, completion.facts.completion_tokens) == (
        example.prompt_count,
        len(example.tokens) - example.prompt_count,
    )


def _ending(folder: Path) -> Path:
    """A model that comes to an end: only letters and the mark that ends an answer are ever likely."""
    place = written(folder / "ending", initializer_range=0.02)
    model = read_model(place, "fp32", "cpu")
    with torch.no_grad():
        head = model.get_output_embeddings().weight
        head[:] = 0
        head[65:90] = torch.randn(25, head.shape[1], generator=torch.Generator().manual_seed(0))
        head[256] = torch.randn(head.shape[1], generator=torch.Generator().manual_seed(2)) * 2
    model.save_pretrained(place)
    return place


def test_a_reply_that_can_be_written_in_two_ways_is_told_by_its_number_of_tokens() -> None:
    from tokenizers import models

    from s3gym.models.local.examples import example_of

    merging = tokenizer()
    letters = merging.get_vocab()
    with_pair = {**{k: v for k, v in letters.items() if v < 256}, "UP": 300}
    merging.backend_tokenizer.model = models.BPE(vocab=with_pair, merges=[("U", "P")])
    prompt = merging.apply_chat_template(list(ASKED), add_generation_prompt=True, tokenize=False)

    example = example_of(merging, frozenset({256}), ASKED, prompt, "UP", None)

    # the model wrote U, P and the end: 3 tokens; read again it is UP and the end
    assert example.tokens[example.prompt_count :] == [300, 256]


@pytest.mark.parametrize(
    ("opening", "reply", "reasoning", "expected"),
    [
        ("", "UP", None, "UP"),
        ("", " UP\n", None, " UP\n"),
        ("", "UP", "hm", "<think>\nhm\n</think>\n\nUP"),
        ("<think>\n", "UP", "hm", "hm\n</think>\n\nUP"),
        ("<think>", "UP", "hm", "\nhm\n</think>\n\nUP"),
        ("<think>\n", "UP", None, "\n</think>\n\nUP"),
        ("", "UP<|end|>", None, "UP<|end|>"),  # as text, not as the mark
    ],
)
def test_a_thought_is_put_back_where_it_was_taken_from(
    opening: str, reply: str, reasoning: str | None, expected: str
) -> None:
    from s3gym.models._thinking import strip_thinking
    from s3gym.models.local.examples import example_of

    fast = tokenizer()
    prompt = fast.apply_chat_template(list(ASKED), add_generation_prompt=True, tokenize=False) + opening

    example = example_of(fast, frozenset({256}), ASKED, prompt, reply, reasoning)

    said = example.tokens[example.prompt_count :]
    assert said == [*expected_bytes(expected), 256]
    again = strip_thinking(opening.strip() + expected)
    assert again == (reply, reasoning)


def expected_bytes(text: str) -> list[int]:
    """A token a byte; the alphabet of byte-level tokenizers is in another order than the bytes."""
    fast = tokenizer()
    return list(fast(text, add_special_tokens=False, split_special_tokens=True).input_ids)


def test_a_template_that_writes_the_conversation_anew_is_refused(tmp_path: Path) -> None:
    place = written(tmp_path / "anew")
    (place / "chat_template.jinja").write_text(
        "{% if add_generation_prompt %}Q: {% else %}All: {% endif %}{{ messages[0]['content'] }}<|assistant|>"
    )
    model = model_named(f"local:{place}")
    assert isinstance(model, Trainable)

    with pytest.raises(UnusableModel, match="in another way than without"):
        model.example(ASKED, "UP")


def test_a_template_whose_end_ends_nothing_is_refused(tmp_path: Path) -> None:
    place = written(tmp_path / "endless")
    template = (place / "chat_template.jinja").read_text()
    (place / "chat_template.jinja").write_text(template.replace("<|end|>", "<|none|>"))
    model = model_named(f"local:{place}")
    assert isinstance(model, Trainable)

    with pytest.raises(UnusableModel, match="'<|none|>', which does not end one".replace("|", r"\|")):
        model.example(ASKED, "UP")


# --- the loop


def test_the_loss_is_the_mean_over_reply_tokens_by_weight(tiny: Path, examples: list[Example]) -> None:
    rows = [examples[0], replace(examples[2], weight=3.0)]
    plain = read_model(tiny, "fp32", "cpu")
    total = count = 0.0
    for row in rows:  # each alone, by the library
        with torch.no_grad():
            chances = torch.log_softmax(plain(torch.tensor([row.tokens])).logits[0], -1)
        for position in range(row.prompt_count, len(row.tokens)):
            total -= row.weight * float(chances[position - 1, row.tokens[position]])
            count += row.weight
    # "UP" and its end are 3 tokens of weight 1, "DOWN, I think" and its end 14 of weight 3
    assert count == 3 + 14 * 3

    _, changes = fitted(tiny, rows, PLAIN)

    assert changes[0].loss == pytest.approx(total / count, rel=1e-5)
    assert (changes[0].row_count, changes[0].token_count) == (2, sum(len(row.tokens) for row in rows))


def test_a_batch_gives_the_same_in_whatever_parts_it_is_computed(tiny: Path, examples: list[Example]) -> None:
    whole, told = fitted(tiny, examples, PLAIN.model_copy(update={"batch": 5, "batch_tokens": 10_000}))

    for limit in (1, 60):
        split, told_split = fitted(tiny, examples, PLAIN.model_copy(update={"batch": 5, "batch_tokens": limit}))
        assert [change.loss for change in told_split] == pytest.approx([change.loss for change in told], rel=1e-5)
        assert told_split[0].gradient_norm == pytest.approx(told[0].gradient_norm, rel=1e-4)
        assert all(torch.allclose(split[name], whole[name], atol=1e-3) for name in whole)


def test_parts_hold_rows_of_like_length_up_to_the_limit() -> None:
    rows = [Example(tokens=[0] * size, prompt_count=1) for size in (10, 3, 30, 9, 4)]

    sizes = [[len(row.tokens) for row in part] for part in training.parts(rows, 20)]

    # 30 alone is more than 20; 10 + 9 filled up are 20; 4 + 3 are 8
    assert sizes == [[30], [10, 9], [4, 3]]


def test_the_rate_rises_and_falls_and_is_never_nothing() -> None:
    settings = TrainingSettings(learning_rate=1.0, warmup=0.4)

    rates = [training.learning_rate(step, 5, settings) for step in range(5)]

    # 2 of 5 steps rise: 1/2, 2/2; then 3 fall: 3/3, 2/3, 1/3
    assert rates == pytest.approx([1 / 2, 1, 1, 2 / 3, 1 / 3])


def test_epochs_count_passes_over_the_rows(tiny: Path, examples: list[Example]) -> None:
    _, changes = fitted(tiny, examples, PLAIN)

    # five rows, two a step: 2/5, 4/5, 5/5, then again
    assert [change.epoch for change in changes] == pytest.approx([0.4, 0.8, 1.0, 1.4, 1.8, 2.0])
    assert [change.row_count for change in changes] == [2, 2, 1, 2, 2, 1]
    assert all(change.peak_memory_bytes and change.seconds > 0 for change in changes)


def test_answers_are_learnt(tmp_path: Path) -> None:
    place = speaking(written(tmp_path / "speaking"))
    model = model_named(f"local:{place}")
    assert isinstance(model, Trainable)
    request = request_of("Where to?")
    (before,) = ask(model, request)
    example = model.example(request.messages, "UP, of course")
    settings = PLAIN.model_copy(update={"epochs": 40, "rank": 8, "alpha": 16})

    weights, changes = made(place, [example], tmp_path / "trained", settings)

    assert changes[-1].loss < 0.1 < changes[0].loss
    (after,) = asyncio.run(_asked(model, weights, request))
    assert (after.text, after.facts.finish_reason) == ("UP, of course", "stop")
    assert ask(model_named(f"local:{place}"), request)[0].text == before.text != after.text


async def _asked(model: Any, weights: Weights, *requests: Any) -> list[Any]:
    async with model.with_weights(weights) as changed:
        return [await changed.complete(request) for request in requests]


def test_the_same_seed_gives_the_same_bytes_and_leaves_nobodys_random_numbers_changed(
    tiny: Path, examples: list[Example], tmp_path: Path
) -> None:
    settings = PLAIN.model_copy(update={"dropout": 0.2})
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, _ = made(tiny, examples, tmp_path / "first", settings)
    assert torch.equal(torch.get_rng_state(), before)

    torch.manual_seed(2)
    again, _ = made(tiny, examples, tmp_path / "again", settings)
    other, _ = made(tiny, examples, tmp_path / "other", settings, seed=8)

    assert contents(first.folder) == contents(again.folder)
    assert first.digest == again.digest != other.digest
    assert first.digest == digest_of(first.folder)


def test_computing_twice_changes_nothing_but_memory(tiny: Path, examples: list[Example], tmp_path: Path) -> None:
    settings = PLAIN.model_copy(update={"dropout": 0.2})
    plain, told = made(tiny, examples, tmp_path / "plain", settings)
    _, twice = made(tiny, examples, tmp_path / "twice", settings.model_copy(update={"checkpointing": True}))

    assert [change.loss for change in twice] == pytest.approx([change.loss for change in told], rel=1e-5)


def test_a_model_trained_whole_answers_with_what_it_learnt(tmp_path: Path) -> None:
    place = speaking(written(tmp_path / "speaking"))
    untouched = contents(place)
    model = model_named(f"local:{place}")
    assert isinstance(model, Trainable)
    request = request_of("Where to?")
    settings = PLAIN.model_copy(update={"method": "full", "epochs": 30, "learning_rate": 3e-3})
    examples = [model.example(request.messages, "UP, of course")]

    weights, _ = made(place, examples, tmp_path / "whole", settings)
    more, _ = made(place, examples, tmp_path / "more", settings, start=weights)

    assert [done.text for done in asyncio.run(_asked(model, weights, request))] == ["UP, of course"]
    assert more.digest != weights.digest
    assert contents(place) == untouched
    names = {path.name for path in weights.folder.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja", "README.md"} <= names


def test_half_precision_trains_adapters_in_full_precision(tiny: Path, examples: list[Example], tmp_path: Path) -> None:
    from safetensors.torch import load_file

    weights, changes = made(tiny, examples, tmp_path / "half", options="?dtype=bf16")

    adapter = load_file(weights.folder / "adapter_model.safetensors")
    assert {tensor.dtype for tensor in adapter.values()} == {torch.float32}
    assert all(math.isfinite(change.loss) for change in changes)


# --- what goes wrong


@pytest.mark.parametrize("failures", [1, 2])
def test_parts_are_halved_once_when_the_memory_does_not_suffice(
    failures: int, tiny: Path, examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PLAIN.model_copy(update={"batch": 5, "batch_tokens": 120, "epochs": 1})
    expected, _ = fitted(tiny, examples, settings)
    weighted, sizes = training._weighted_sum, list[int]()

    def scarce(model: Any, group: Sequence[Example]) -> Any:
        sizes.append(len(group))
        if len(sizes) in (2, 4)[:failures]:  # in the middle of the batch, and of its repetition
            raise torch.OutOfMemoryError("no room\nat all")
        return weighted(model, group)

    monkeypatch.setattr(training, "_weighted_sum", scarce)

    if failures == 1:
        got, changes = fitted(tiny, examples, settings)
        assert all(torch.allclose(got[name], expected[name], atol=1e-3) for name in got)
        assert len(changes) == 1
    else:
        with pytest.raises(TrainingFailed, match="no memory for 60 tokens at once, after halving .* = 120; lower"):
            fitted(tiny, examples, settings)


def test_a_loss_that_is_no_number_ends_training_and_leaves_nothing(
    tiny: Path, examples: list[Example], tmp_path: Path
) -> None:
    wild = PLAIN.model_copy(update={"learning_rate": 1e30, "gradient_norm": 1e30, "epochs": 5})

    with pytest.raises(
        TrainingFailed, match=r"step \d+ of 15 has loss .*expected finite.*lower training.learning_rate"
    ):
        made(tiny, examples, tmp_path / "wild", wild)

    assert list(tmp_path.iterdir()) == []


def test_tokens_that_the_model_has_no_row_for_are_told(tmp_path: Path, examples: list[Example]) -> None:
    place = written(tmp_path / "small", vocab_size=257)

    with pytest.raises(TrainingFailed, match="the tokenizer gives token 25[89], the model knows 0 to 256"):
        made(place, examples, tmp_path / "trained")


def test_a_row_beyond_the_context_is_told(tiny: Path, tmp_path: Path) -> None:
    row = Example(tokens=[65] * (SMALL["max_position_embeddings"] + 1), prompt_count=5)  # type: ignore[operator]

    with pytest.raises(TrainingFailed, match="a row has 1025 tokens, the model reads 1024; lower training.row_tokens"):
        made(tiny, [row], tmp_path / "trained")


def test_rows_without_weight_are_nothing_to_learn_from(tiny: Path, examples: list[Example], tmp_path: Path) -> None:
    with pytest.raises(TrainingFailed, match="no row has a weight above 0"):
        made(tiny, [replace(row, weight=0.0) for row in examples], tmp_path / "trained")


def test_weights_that_changed_since_the_run_began_are_not_trained(tmp_path: Path, examples: list[Example]) -> None:
    place = written(tmp_path / "base")
    model = model_named(f"local:{place}")
    assert isinstance(model, Trainable)
    before = model.training_identity()["weights"]
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-3}))
    now = model_named(f"local:{place}").identity()["weights"]

    with pytest.raises(TrainingFailed, match=f"they were {before} and are {now}; restore them"):
        asyncio.run(
            model.train(
                examples, PLAIN, start=None, seed=0, folder=tmp_path / "x", card={}, on_update=lambda change: None
            )
        )


def test_a_cancelled_training_stops_and_leaves_nothing(tiny: Path, examples: list[Example], tmp_path: Path) -> None:
    model = model_named(f"local:{tiny}")
    assert isinstance(model, Trainable)
    endless = PLAIN.model_copy(update={"epochs": 10**5})

    async def cancelled() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(
            model.train(
                examples,
                endless,
                start=None,
                seed=0,
                folder=tmp_path / "trained",
                card={},
                on_update=lambda change: begun.set(),
            )
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    local._trainer.submit(lambda: None).result(30)  # once the thread is free

    assert list(tmp_path.iterdir()) == []


def test_trainings_of_a_process_come_one_after_the_other(
    tiny: Path, examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, at_once, most = training.fit, threading.Semaphore(1), list[bool]()

    def watched(*arguments: Any, **settings: Any) -> None:
        most.append(at_once.acquire(blocking=False))
        fit(*arguments, **settings)
        at_once.release()

    monkeypatch.setattr(training, "fit", watched)
    model = model_named(f"local:{tiny}")
    assert isinstance(model, Trainable)

    async def both() -> None:
        await asyncio.gather(
            *(
                model.train(
                    examples, PLAIN, start=None, seed=0, folder=tmp_path / name, card={}, on_update=lambda change: None
                )
                for name in "ab"
            )
        )

    asyncio.run(both())

    assert most == [True, True]


def test_what_changes_the_weights_is_in_the_identity_of_training(tiny: Path) -> None:
    def identity(options: str = "") -> dict[str, Any]:
        model = model_named(f"local:{tiny}{options}")
        assert isinstance(model, Trainable)
        return model.training_identity()

    plain = identity()
    assert {"training", "weights", "peft", "torch", "transformers", "dtype", "device"} <= plain.keys()
    assert identity("?batch=1&cache=0") == plain != identity("?dtype=bf16")


@pytest.mark.parametrize("module", ["peft", "torch"])
def test_what_training_needs_is_told_before_it_begins(module: str, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else find_spec(name))
    model = model_named(f"local:{tiny}")
    assert isinstance(model, Trainable)

    with pytest.raises(MissingPackage, match=rf'{module}: pip install -c constraints.txt "\.\[local\]"'):
        model.training_identity()
