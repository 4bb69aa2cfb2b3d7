"""Trained weights as folders that peft or transformers loads without us; safetensors only.

A folder appears whole or not at all. Loading compares every key and shape: peft itself only warns of missing ones.
"""

import json
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peft
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from s3gym.config import TrainingSettings
from s3gym.models.base import TrainingFailed, Weights
from s3gym.models.local.loading import DTYPES, UnusableModel
from s3gym.models.local.weights import digest_of

CONFIG, ADAPTER = "adapter_config.json", "adapter_model.safetensors"
ORIGIN = "s3gym.json"
"""What the weights were trained on, for programs; the head of their own file comes out in another order each time."""
_REMEDY = "restore the folder, or remove it and run again to train anew"

_peft: Any = peft  # its types are not read


@dataclass(frozen=True, slots=True)
class Base:
    """The untrained model."""

    folder: Path
    digest: str
    name: str
    """By which others find it: an id on the hub where it has one."""
    revision: str | None
    """Its commit on the hub."""


def fresh(model: Any, settings: TrainingSettings) -> Any:
    """``model`` with a new adapter on all its linear layers but the last; random numbers are torch's own."""
    config = _peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    with _quiet():
        return _peft.get_peft_model(model, config)


def resumed(model: Any, start: Weights, base: Base, settings: TrainingSettings) -> Any:
    """``model`` with the adapter ``start``, to be trained on.

    Raises:
        TrainingFailed: it is of another form or base, or not whole.
    """
    try:
        adapted = _adapted(model, start, base, is_trainable=True)
    except UnusableModel as error:
        raise TrainingFailed(f"{error}; or begin anew with training.start = 'base'") from None
    config = adapted.peft_config["default"]
    if (config.r, config.lora_alpha) != (settings.rank, settings.alpha):
        raise TrainingFailed(
            f"{start.folder} has rank {config.r} and alpha {config.lora_alpha}, the settings say {settings.rank} and "
            f"{settings.alpha}; set them back, or begin anew with training.start = 'base'"
        )
    return adapted


def applied(model: Any, weights: Weights, base: Base) -> Any:
    """``model`` computing with an adapter: a model of transformers, ready to answer.

    In fp32 the adapter is added into the weights, which is as exact and faster; in bf16 it would be rounded away.

    Raises:
        UnusableModel: the adapter is of another base, or not whole.
    """
    adapted = _adapted(model, weights, base, is_trainable=False)
    return (adapted.merge_and_unload() if model.dtype == DTYPES["fp32"] else adapted.get_base_model()).eval()


def is_adapter(folder: Path) -> bool:
    """Whether weights need those they were trained on beside them."""
    return (folder / CONFIG).is_file()


def check(weights: Weights) -> None:
    """Raises UnusableModel unless the folder holds the weights that are meant."""
    if not any(weights.folder.glob("*.safetensors")):
        raise UnusableModel(f"no trained weights in {weights.folder}; {_REMEDY}")
    found = digest_of(weights.folder)
    if found != weights.digest:
        raise UnusableModel(f"{weights.folder} holds weights {found}, expected {weights.digest}; {_REMEDY}")


@contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder`` to write into, which takes its name when all went well, else goes.

    Raises:
        TrainingFailed: it cannot be written.
    """
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)  # of a training that was killed
        partial.mkdir(parents=True)
        yield partial
        for path in (*partial.iterdir(), partial):
            _sync(path)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        _sync(folder.parent)
    except OSError as error:
        told = f"weights cannot be written to {folder} ({error.strerror or error})"
        raise TrainingFailed(f"{told}; make the folder writable, free space on its disk, or choose another") from None
    except SafetensorError as error:  # how its writer tells of a full disk
        raise TrainingFailed(f"weights cannot be written to {folder} ({error}); free space on its disk") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_adapter(model: Any, base: Base, folder: Path) -> None:
    """Writes the adapter of ``model`` in PEFT's format; equal adapters as equal bytes."""
    state = {key: tensor.cpu().contiguous() for key, tensor in _state(model).items()}
    save_file(state, folder / ADAPTER, metadata={"format": "pt"})
    told = model.peft_config["default"].to_dict()
    told |= {"base_model_name_or_path": base.name, "revision": base.revision, "inference_mode": True}
    # sets have another order in every process
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in told.items()}
    (folder / CONFIG).write_text(json.dumps(plain, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write_whole(model: Any, tokenizer: Any, dtype: str, folder: Path) -> None:
    """Writes a model trained whole, as transformers saves it, in the dtype it is computed in."""
    model.to(DTYPES[dtype]).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_card(folder: Path, base: Base, settings: TrainingSettings, card: Mapping[str, str]) -> None:
    """Writes the README of the folder, and for programs a part of it: what the weights rest on, how to load them."""
    origin = {"name": base.name, "revision": base.revision, "weights": base.digest}
    (folder / ORIGIN).write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    is_whole = settings.method == "full"
    head = {
        "base_model": base.name,
        "library_name": "transformers" if is_whole else "peft",
        "tags": ["s3gym", *([] if is_whole else ["lora"])],
    }
    code = (
        "model = AutoModelForCausalLM.from_pretrained(folder)"
        if is_whole
        else f'model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("{base.name}"), folder)'
    )
    facts = {
        "Base model": base.name,
        "Revision of the base model": base.revision or "none",
        "Digest of the base model": base.digest,
        **card,
    }
    lines = [
        "---",
        *(f"{key}: {json.dumps(value)}" for key, value in head.items()),
        "---",
        "# Weights from an agent's own experience",
        "",
        "Trained by s3gym on answers that the agent itself scored highly.",
        "",
        *(f"- **{name}**: {' '.join(text.split())}" for name, text in facts.items()),
        "",
        "Settings:",
        "",
        "```json",
        json.dumps(settings.model_dump(mode="json"), indent=2),
        "```",
        "",
        "```python",
        code,
        "```",
        "",
    ]
    (folder / "README.md").write_text("\n".join(lines), encoding="utf-8")


def _adapted(model: Any, weights: Weights, base: Base, is_trainable: bool) -> Any:
    """``model`` with an adapter on it, nothing of which is missing or left over."""
    path = weights.folder / ADAPTER
    lacking = [name for name in (CONFIG, ADAPTER, ORIGIN) if not (weights.folder / name).is_file()]
    if lacking:
        raise UnusableModel(f"{weights.folder} is no adapter of ours: it lacks {', '.join(lacking)}")
    try:
        with safe_open(path, "pt") as file:
            there = {key: list(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118 - no mapping
    except SafetensorError as error:
        raise UnusableModel(f"{path} cannot be read: {error}") from None
    try:
        trained_on = json.loads((weights.folder / ORIGIN).read_text(encoding="utf-8"))["weights"]
    except (ValueError, KeyError, TypeError):
        raise UnusableModel(f"{weights.folder / ORIGIN} is damaged; {_REMEDY}") from None
    if trained_on != base.digest:
        raise UnusableModel(f"{weights.folder} was trained on weights {trained_on}, and here are {base.digest}")
    # drawn on no device and then replaced, so that nobody's random numbers are touched
    settings = {"is_trainable": is_trainable, "low_cpu_mem_usage": True}
    try:
        with _quiet():  # it only warns of missing keys; they are compared below
            adapted = _peft.PeftModel.from_pretrained(model, weights.folder, **settings)
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        raise UnusableModel(f"{weights.folder} does not fit {base.name}: {error}") from None
    wanted = {key: list(tensor.shape) for key, tensor in _state(adapted).items()}
    if there != wanted:
        missing, left = sorted(wanted.keys() - there.keys()), sorted(there.keys() - wanted.keys())
        raise UnusableModel(
            f"{weights.folder} does not fit {base.name}: {len(missing)} keys missing ({', '.join(missing[:2])}), "
            f"{len(left)} left over ({', '.join(left[:2])})"
        )
    return adapted


def _state(adapted: Any) -> dict[str, Any]:
    """The adapter's tensors by name; its look at the hub, for embeddings that none of ours has, is left out."""
    state: dict[str, Any] = _peft.get_peft_model_state_dict(adapted, save_embedding_layers=False)
    return state


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's warnings to itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _sync(path: Path) -> None:
    """Makes sure that what was written survives a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
