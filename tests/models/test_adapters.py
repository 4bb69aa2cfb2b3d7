"""Trained weights as folders: written whole or not at all, loaded whole or not at all, and beside the base."""

import asyncio
import hashlib
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from s3gym.config import TrainingSettings
from s3gym.models import load_model as model_named
from s3gym.models import local
from s3gym.models.base import Example, ModelError, Trainable, TrainingFailed, Weights
from s3gym.models.local.turns import Turns
from tests.models.test_local import REASON, ask, request_of, written

torch: Any = pytest.importorskip("torch", reason=REASON)
peft: Any = pytest.importorskip("peft", reason=REASON)

from safetensors.torch import load_file, save_file  # noqa: E402

from s3gym.models.local import adapters  # noqa: E402
from s3gym.models.local.loading import UnusableModel, read_model  # noqa: E402
from s3gym.models.local.weights import digest_of  # noqa: E402
from tests.models.test_training import ASKED, PLAIN, contents, made  # noqa: E402

ADAPTER = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("tiny") / "llama")


@pytest.fixture(scope="module")
def examples(tiny: Path) -> list[Example]:
    model = model_named(f"local:{tiny}")
    assert isinstance(model, Trainable)
    return [model.example(ASKED, reply) for reply in ("UP", "LEFT")]


@pytest.fixture(scope="module")
def trained(tiny: Path, examples: list[Example], tmp_path_factory: pytest.TempPathFactory) -> Weights:
    return made(tiny, examples, tmp_path_factory.mktemp("trained") / "weights")[0]


def answers(place: Path, *several: Weights, options: str = "") -> list[str]:
    """One answer with each."""
    model: Any = model_named(f"local:{place}{options}")

    async def each() -> list[str]:
        said = []
        for weights in several:
            async with model.with_weights(weights) as changed:
                said.append((await changed.complete(request_of("Where to?"))).text)
        return said

    return asyncio.run(each())


def copied(weights: Weights, folder: Path, tensors: dict[str, Any] | None = None) -> Weights:
    """The same in another folder, with other tensors."""
    folder.mkdir()
    for name, content in contents(weights.folder).items():
        (folder / name).write_bytes(content)
    if tensors is not None:
        save_file(tensors, folder / ADAPTER, metadata={"format": "pt"})
    return Weights(folder=folder, digest=digest_of(folder))


# --- what is written


def test_the_folder_is_what_peft_reads(tiny: Path, trained: Weights) -> None:
    assert contents(trained.folder).keys() == {
        ADAPTER,
        "adapter_config.json",
        "README.md",
        "s3gym.json",
    }  # nothing pickled
    config = json.loads((trained.folder / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["inference_mode"]) == (4, 8, True)
    assert config["base_model_name_or_path"] == str(tiny)
    assert config["target_modules"] == sorted(config["target_modules"])

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as missing keys
        theirs = peft.PeftModel.from_pretrained(read_model(tiny, "fp32", "cpu"), trained.folder).eval()

    model: Any = model_named(f"local:{tiny}")
    request = request_of("Where to?")
    tokens = torch.tensor([model.example(request.messages, "").tokens[:-1]])
    settings = {"attention_mask": torch.ones_like(tokens), "do_sample": False, "eos_token_id": None}
    by_them = theirs.generate(tokens, max_new_tokens=16, **settings)[0, tokens.shape[1] :]
    assert answers(tiny, trained) == [model._tokenizer.decode(by_them, skip_special_tokens=True)]


def test_the_card_says_what_the_weights_rest_on(tiny: Path, trained: Weights) -> None:
    card = (trained.folder / "README.md").read_text()

    base = model_named(f"local:{tiny}").identity()["weights"]
    assert card.startswith(f'---\nbase_model: "{tiny}"\nlibrary_name: "peft"\n')
    for told in (f"**Digest of the base model**: {base}", "**Game**: none", '"learning_rate": 0.01', "PeftModel"):
        assert told in card


def test_what_a_killed_training_left_goes_with_the_next(tiny: Path, examples: list[Example], tmp_path: Path) -> None:
    left = tmp_path / "weights.partial"
    left.mkdir()
    (left / "half.safetensors").write_bytes(b"half")
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "old.safetensors").write_bytes(b"of a training whose end was not noted")

    made(tiny, examples, folder)

    assert [path.name for path in tmp_path.iterdir()] == ["weights"]
    assert "old.safetensors" not in contents(folder)


def test_the_name_appears_only_when_all_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "part" / "weights"

    with pytest.raises(RuntimeError), adapters.writing(folder) as partial:
        (partial / "half").write_bytes(b"half")
        assert not folder.exists()
        raise RuntimeError("killed")

    assert list(folder.parent.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_before_training(
    tiny: Path, examples: list[Example], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = tmp_path / "file" / "weights"

    with pytest.raises(TrainingFailed, match=f"cannot be written to {folder} .*make the folder writable"):
        made(tiny, examples, folder)


# --- what is loaded


def test_ten_adapters_later_the_base_is_what_it_was(tiny: Path, trained: Weights, tmp_path: Path) -> None:
    on_disk = contents(tiny)
    model: Any = model_named(f"local:{tiny}")
    request = request_of("Where to?", max_output_tokens=64)
    before = ask(model, request)[0].text
    engine = model._engine()
    held = digest_in_memory(engine._model)
    tensors = load_file(trained.folder / ADAPTER)
    several = [
        copied(trained, tmp_path / str(index), {key: value * index for key, value in tensors.items()})
        for index in range(10)
    ]

    said = answers(tiny, *several)

    assert len(set(said)) > 5 and said[0] == before[: len(said[0])]  # times 0 is no adapter at all
    assert model._engine() is engine and digest_in_memory(engine._model) == held and contents(tiny) == on_disk
    assert ask(model_named(f"local:{tiny}?cache=0"), request)[0].text == before == in_a_fresh_process(tiny)
    kept = [key for key in local._engines if key[0] == model.identity()["weights"] and key[1] == model.options]
    assert sorted(key[2] is not None for key in kept) == [False, True]  # the base, and the last


def digest_in_memory(model: Any) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def in_a_fresh_process(place: Path) -> str:
    code = (
        "from tests.models.test_local import ask, request_of; from s3gym.models import load_model; "
        f"print(ask(load_model('local:{place}'), request_of('Where to?', max_output_tokens=64))[0].text.encode().hex())"
    )
    return bytes.fromhex(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    ).decode()


def test_loading_draws_no_random_numbers_and_drops_nothing_out(
    tiny: Path, examples: list[Example], tmp_path: Path
) -> None:
    weights, _ = made(tiny, examples, tmp_path / "dropping", PLAIN.model_copy(update={"dropout": 0.5}))
    before = torch.get_rng_state()

    for options in ("", "?dtype=bf16"):  # added into the weights, and beside them
        assert len(set(answers(tiny, weights, weights, options=f"{options}"))) == 1

    assert torch.equal(torch.get_rng_state(), before)


def test_in_half_precision_an_adapter_stays_beside_the_weights(tiny: Path, trained: Weights) -> None:
    model: Any = model_named(f"local:{tiny}?dtype=bf16")

    async def engine() -> Any:
        async with model.with_weights(trained) as changed:
            return changed._engine()._model

    loaded = asyncio.run(engine())

    dtypes = {("lora" in name, tensor.dtype) for name, tensor in loaded.named_parameters()}
    assert dtypes == {(True, torch.float32), (False, torch.bfloat16)}
    assert not loaded.training


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("missing", "1 keys missing .base_model.model.model.layers.0"),
        ("left over", "1 left over .base_model.model.nowhere"),
        ("shape", "does not fit"),
        ("base", "was trained on weights 0123, and here are"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(
    change: str, told: str, tiny: Path, trained: Weights, tmp_path: Path
) -> None:
    tensors = load_file(trained.folder / ADAPTER)
    first = sorted(tensors)[0]
    if change == "missing":
        del tensors[first]
    elif change == "left over":
        tensors["base_model.model.nowhere.lora_A.weight"] = tensors[first].clone()
    elif change == "shape":
        tensors[first] = tensors[first][:, :-1].contiguous()
    wrong = copied(trained, tmp_path / "wrong", tensors)
    if change == "base":
        (wrong.folder / "s3gym.json").write_text('{"weights": "0123"}')

    with pytest.raises(UnusableModel, match=told):
        answers(tiny, wrong)


def test_weights_that_are_gone_or_others_are_not_used(tiny: Path, trained: Weights, tmp_path: Path) -> None:
    other = Weights(folder=trained.folder, digest="0" * 64)
    gone = Weights(folder=tmp_path / "gone", digest=trained.digest[::-1])

    with pytest.raises(UnusableModel, match=f"holds weights {trained.digest}, expected 0000.*train anew"):
        answers(tiny, other)
    with pytest.raises(UnusableModel, match="no trained weights in .*gone; restore"):
        answers(tiny, gone)


def test_training_goes_on_from_an_adapter_of_the_same_form(
    tiny: Path, examples: list[Example], trained: Weights, tmp_path: Path
) -> None:
    fresh, told = made(tiny, examples, tmp_path / "fresh")
    on, told_on = made(tiny, examples, tmp_path / "on", start=trained)

    assert fresh.digest == trained.digest != on.digest
    assert told_on[0].loss < told[-1].loss < told[0].loss  # it begins where the other ended
    with pytest.raises(TrainingFailed, match="has rank 4 and alpha 8, the settings say 2 and 8; .*start = 'base'"):
        made(tiny, examples, tmp_path / "x", PLAIN.model_copy(update={"rank": 2}), start=trained)


def test_other_weights_are_another_identity_under_the_same_name(tiny: Path, trained: Weights) -> None:
    model: Any = model_named(f"local:{tiny}")

    async def identities() -> tuple[str, dict[str, Any]]:
        async with model.with_weights(trained) as changed:
            return changed.model_id, changed.identity()

    name, identity = asyncio.run(identities())
    assert name == model.model_id
    assert identity == {**model.identity(), "trained": trained.digest}


def test_an_error_of_a_call_with_weights_is_one_of_any_call(tiny: Path, trained: Weights) -> None:
    model: Any = model_named(f"local:{tiny}")

    async def too_long() -> None:
        async with model.with_weights(trained) as changed:
            await changed.complete(request_of("x" * 2000))

    with pytest.raises(ModelError, match="context_window"):
        asyncio.run(too_long())


def test_who_wants_other_weights_waits_and_who_wants_the_same_does_not() -> None:
    turns, order = Turns(), list[str]()

    async def hold(thing: str, name: str, release: asyncio.Event) -> None:
        async with turns.hold("place", thing):
            order.append(name)
            await release.wait()
            order.append(f"-{name}")

    async def play() -> None:
        first, second = asyncio.Event(), asyncio.Event()
        second.set()
        one = asyncio.create_task(hold("a", "one", first))
        await asyncio.sleep(0)
        same = asyncio.create_task(hold("a", "same", first))
        other = asyncio.create_task(hold("b", "other", second))
        await asyncio.sleep(0.2)
        assert order == ["one", "same"]
        first.set()
        await asyncio.gather(one, same, other)

    asyncio.run(play())

    assert order == ["one", "same", "-one", "-same", "other", "-other"]


def test_the_settings_of_a_card_are_all_of_them(trained: Weights) -> None:
    card = (trained.folder / "README.md").read_text()

    assert all(f'"{name}"' in card for name in TrainingSettings.model_fields)
