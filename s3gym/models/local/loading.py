"""Loads and converts with transformers, quietly, and makes sure that our attention computes what the library's does."""

import threading
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from torch import Tensor

from s3gym.errors import Explained
from s3gym.models.local.rows import ATTENTION, KeysAndValues, Rows

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
AGREEMENT = {"fp32": 0.9999, "bf16": 0.99}
"""Least correlation of our logits with the library's; rounding alone leaves more."""
_SERVE_IT = "serve it with a program of its own, such as vLLM, and use hosted_vllm/<name> with base_url"

BUILDING = threading.Lock()
"""Held while a model is read or an adapter put on it: both libraries change what all threads build modules with, and
a new adapter draws its weights from numbers that all threads share."""

_library: Any = transformers  # it is typed here and there only
_library.logging.set_verbosity_error()
_library.logging.disable_progress_bar()


class UnusableModel(Explained):
    """Weights are there, but cannot be used as a chat model; the message says why and what to do."""


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer in ``folder``, which must bring a chat template."""
    try:
        tokenizer = _library.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UnusableModel(f"{folder} has no tokenizer that transformers reads: {error}") from None
    if not tokenizer.chat_template:
        raise UnusableModel(f"{folder} has no chat template: a base model; give an instruct or chat model")
    return tokenizer


def read_model(folder: Path, dtype: str, device: str) -> Any:
    """The model in ``folder`` on the CPU or spread over all GPUs, as the library computes it."""
    try:
        return _library.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=DTYPES[dtype],
            device_map=None if device == "cpu" else "auto",
            local_files_only=True,
            use_safetensors=True,
        ).eval()
    except (OSError, ValueError) as error:
        raise UnusableModel(f"{folder} cannot be loaded: {error}") from None


def load_model(folder: Path, dtype: str, device: str, adapt: Callable[[Any], Any] | None = None) -> Any:
    """The model in ``folder`` with our attention; ``adapt`` puts trained weights on it first."""
    model = read_model(folder, dtype, device)
    if adapt is not None:
        model = adapt(model)
    if _is_stretching(model.config):
        raise UnusableModel(
            f"{folder}: {_kind(model)} turns its positions by the longest row beside it, so answers would depend on "
            f"their company; {_SERVE_IT}"
        )
    with torch.inference_mode():
        expected = _logits_of_the_library(model)
        model.set_attn_implementation(ATTENTION)
        try:
            agreement = _correlation(_our_logits(model), expected)
        except Exception as error:  # noqa: BLE001 - whatever an unknown architecture does not go along with
            raise UnusableModel(f"{folder}: {_kind(model)} cannot be computed here ({error}); {_SERVE_IT}") from None
    if not agreement >= AGREEMENT[dtype]:
        raise UnusableModel(
            f"{folder}: {_kind(model)} does more than attend to keys and values, so its numbers would be wrong here "
            f"(correlation {agreement:.4f} with its own); {_SERVE_IT}"
        )
    return model


def _is_stretching(config: Any) -> bool:
    """Whether rotary frequencies follow the longest sequence that is computed."""
    told = repr([getattr(config, name, None) for name in ("rope_parameters", "rope_scaling")])
    return any(kind in told for kind in ("'dynamic'", "'longrope'"))


def stop_tokens(folder: Path, tokenizer: Any) -> frozenset[int]:
    """The tokens that end an answer of the model in ``folder``, whose weights need not be there."""
    try:
        generation = _library.GenerationConfig.from_pretrained(folder, local_files_only=True)
    except OSError:  # it has no file of its own
        config = _library.AutoConfig.from_pretrained(folder, local_files_only=True)
        generation = _library.GenerationConfig.from_model_config(config)
    declared = generation.eos_token_id
    several = declared if isinstance(declared, list) else [declared]
    return frozenset(token for token in (*several, tokenizer.eos_token_id) if token is not None)


def convert_gguf(path: Path, folder: Path) -> None:
    """Writes the model and tokenizer of a GGUF file as a folder in fp32, which loads in a second and can be trained."""
    source = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    try:
        with redirect_stderr(StringIO()):  # its progress bar does not know that bars are off
            tokenizer = _library.AutoTokenizer.from_pretrained(**source)
            loaded = _library.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    except ValueError as error:
        raise OSError(str(error)) from None
    plain = loaded.config.__class__.from_dict(
        {key: value for key, value in loaded.config.to_dict().items() if key != "quantization_config"}
    )
    # a model that was loaded quantised refuses to be saved
    model = _library.AutoModelForCausalLM.from_config(plain, dtype=torch.float32)
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


_TOKENS, _FIRST_PART = 20, 12


def _logits_of_the_library(model: Any) -> Tensor:
    """[vocabulary], after ``_TOKENS`` tokens at once."""
    tokens = torch.arange(_TOKENS, device=model.device)[None]
    return cast(Tensor, model(input_ids=tokens, use_cache=False).logits[0, -1].float().cpu())


def _our_logits(model: Any) -> Tensor:
    """The same by two blocks of a prompt and a step beside a stand-in."""
    sequence, last = KeysAndValues(), _TOKENS - 1
    for start, stop in ((0, _FIRST_PART), (_FIRST_PART, last)):
        part = torch.arange(start, stop, device=model.device)[None]
        model(input_ids=part, position_ids=part, cache=Rows([sequence]), use_cache=True)
        sequence.length = stop
    step = torch.tensor([[last], [0]], device=model.device)
    output = model(input_ids=step, position_ids=step, cache=Rows([sequence, None]), use_cache=True)
    return cast(Tensor, output.logits[0, -1].float().cpu())


def _correlation(ours: Tensor, theirs: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([ours, theirs]))[0, 1])


def _kind(model: Any) -> str:
    return str(model.config.model_type)
