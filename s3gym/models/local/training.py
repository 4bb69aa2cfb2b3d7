"""Trains a local model: a plain loop over answers, the loss on their tokens alone.

The same examples, settings and seed give the same bytes on one machine. What is trained is a copy read from disk, never
the model that answers. Says nothing of which answers are worth training on.
"""

import gc
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from s3gym.config import TrainingSettings
from s3gym.models.base import Change, Example, TrainingFailed, Weights
from s3gym.models.local import adapters
from s3gym.models.local.adapters import Base
from s3gym.models.local.loading import BUILDING, UnusableModel, read_model
from s3gym.models.local.weights import digest_of

_LESS = "lower training.batch_tokens or training.row_tokens, or set training.checkpointing = true"


class Stopped(Exception):
    """Nobody waits for the weights any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One training."""

    base: Base
    examples: Sequence[Example]
    settings: TrainingSettings
    start: Weights | None
    seed: int
    dtype: str
    """``fp32`` or ``bf16``, in which the untrained weights are held and numbers computed; what is trained is fp32."""
    device: str
    folder: Path
    card: Mapping[str, str]


def train(task: Task, tokenizer: Any, on_update: Callable[[Change], None], is_stopped: Callable[[], bool]) -> str:
    """The digest of the weights it leaves in ``task.folder``.

    Raises:
        TrainingFailed: as ``models.base.Trainable.train``.
        Stopped: ``is_stopped`` said so; nothing is left.
    """
    with adapters.writing(task.folder) as partial:
        try:
            _make(task, tokenizer, on_update, is_stopped, partial)
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
            told = f"no memory to train in ({_first_line(error)})"
            raise TrainingFailed(f"{told}; {_LESS}, or take a smaller model") from None
        finally:
            gc.collect()
            _give_back(task.device)
        return digest_of(partial)


def _make(
    task: Task, tokenizer: Any, on_update: Callable[[Change], None], is_stopped: Callable[[], bool], folder: Path
) -> None:
    """Reads, trains and writes; its tensors go with it."""
    is_whole, settings = task.settings.method == "full", task.settings
    source = task.start.folder if is_whole and task.start else task.base.folder
    if task.start is not None:
        try:
            adapters.check(task.start)
        except UnusableModel as error:
            raise TrainingFailed(str(error)) from None
    with _seeded(task.seed, task.device):
        with BUILDING:
            model = read_model(source, "fp32" if is_whole else task.dtype, task.device)
            _check(task.examples, model)
            if not is_whole and task.start is None:
                torch.manual_seed(task.seed)
                model = adapters.fresh(model, settings)
            elif not is_whole and task.start is not None:
                model = adapters.resumed(model, task.start, task.base, settings)
        is_mixed = is_whole and task.dtype == "bf16"
        fit(model, task.examples, settings, seed=task.seed, is_mixed=is_mixed, tell=on_update, is_stopped=is_stopped)
    if is_whole:
        adapters.write_whole(model, tokenizer, task.dtype, folder)
    else:
        adapters.write_adapter(model, task.base, folder)
    adapters.write_card(folder, task.base, settings, task.card)


def fit(
    model: Any,
    examples: Sequence[Example],
    settings: TrainingSettings,
    *,
    seed: int,
    is_mixed: bool = False,
    tell: Callable[[Change], None] = lambda change: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Trains what of ``model`` wants gradients, in place.

    Args:
        model: of transformers, or with an adapter of peft.
        examples: those of weight 0 are left out.
        settings: how.
        seed: of the order of the examples; dropout follows torch's own state.
        is_mixed: whether fp32 weights are computed with in bf16.
        tell: told after each step.
        is_stopped: asked before each part.

    Raises:
        TrainingFailed: a loss or gradient that is not finite, or no memory even for half parts.
        Stopped: as told.
    """
    rows = [example for example in examples if example.weight > 0]
    if not rows:
        raise TrainingFailed("no row has a weight above 0, so there is nothing to learn; look at training.rule")
    device = model.device.type
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    order = torch.Generator().manual_seed(seed)
    batches = list(_batches(rows, settings, order))
    limit, is_halved = settings.batch_tokens, False
    _begin_measuring(device)
    model.train()
    if settings.checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
    for step, (epoch, batch) in enumerate(batches):
        started = time.perf_counter()
        rate = learning_rate(step, len(batches), settings)
        for group in optimizer.param_groups:
            group["lr"] = rate
        while True:
            drawn = _random_state(device)
            loss = _gradients(model, parts(batch, limit), is_mixed, is_stopped)
            if loss is not None:
                break
            if is_halved:
                told = f"no memory for {limit} tokens at once, after halving training.batch_tokens"
                raise TrainingFailed(f"{told} = {settings.batch_tokens}; {_LESS}")
            limit, is_halved = max(1, limit // 2), True
            optimizer.zero_grad()
            _give_back(device)
            _set_random_state(device, drawn)
        norm = float(torch.nn.utils.clip_grad_norm_(trained, settings.gradient_norm))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise TrainingFailed(
                f"step {step + 1} of {len(batches)} has loss {loss:g} and gradient norm {norm:g}, expected finite "
                f"numbers; lower training.learning_rate (= {settings.learning_rate:g}) or use dtype=fp32"
            )
        optimizer.step()
        optimizer.zero_grad()
        tell(
            Change(
                epoch=epoch,
                row_count=len(batch),
                token_count=sum(len(row.tokens) for row in batch),
                loss=loss,
                gradient_norm=norm,
                learning_rate=rate,
                seconds=time.perf_counter() - started,
                peak_memory_bytes=_peak_memory(device),
            )
        )


def learning_rate(step: int, count: int, settings: TrainingSettings) -> float:
    """Of step ``step`` of ``count``, from 0: rises linearly over the share ``warmup`` of them, then falls towards 0.

    The first step has more than 0 and so has the last.
    """
    rising = round(settings.warmup * count)
    share = (step + 1) / rising if step < rising else (count - step) / (count - rising)
    return settings.learning_rate * share


def parts(batch: Sequence[Example], limit: int) -> list[list[Example]]:
    """The rows of a step in groups computed at once: of like length, filled up at most ``limit`` tokens.

    A longer row is a part by itself.
    """
    made: list[list[Example]] = []
    for row in sorted(batch, key=lambda row: -len(row.tokens)):
        if made and len(made[-1][0].tokens) * (len(made[-1]) + 1) <= limit:
            made[-1].append(row)
        else:
            made.append([row])
    return made


def _batches(
    rows: Sequence[Example], settings: TrainingSettings, order: torch.Generator
) -> Iterator[tuple[float, list[Example]]]:
    """Of each step its rows, and the passes over all rows when it is done."""
    for epoch in range(settings.epochs):
        shuffled = [rows[index] for index in torch.randperm(len(rows), generator=order).tolist()]
        for first in range(0, len(rows), settings.batch):
            batch = shuffled[first : first + settings.batch]
            yield epoch + (first + len(batch)) / len(rows), batch


def _gradients(
    model: Any, groups: Sequence[Sequence[Example]], is_mixed: bool, is_stopped: Callable[[], bool]
) -> float | None:
    """The loss of a whole batch, its gradients added up in the parameters; None when the memory does not suffice."""
    total = sum(row.weight * (len(row.tokens) - row.prompt_count) for group in groups for row in group)
    loss = 0.0
    try:
        for group in groups:
            if is_stopped():
                raise Stopped
            with torch.autocast(model.device.type, torch.bfloat16, enabled=is_mixed):
                share = _weighted_sum(model, group) / total
            share.backward()
            loss += float(share.detach())
    except Exception as error:
        if _is_out_of_memory(error):
            return None
        raise
    return loss


def _weighted_sum(model: Any, group: Sequence[Example]) -> Tensor:
    """Cross-entropy of all reply tokens in nats, each times the weight of its row, summed.

    Rows are filled up at their end: there no position of theirs can see the filling, so no mask is needed, and they
    are computed as alone.
    """
    device, longest = model.device, max(len(row.tokens) for row in group)
    tokens = torch.zeros(len(group), longest, dtype=torch.long)
    weights = torch.zeros(len(group), longest - 1)  # of the prediction made at each position
    for index, row in enumerate(group):
        tokens[index, : len(row.tokens)] = torch.tensor(row.tokens)
        weights[index, row.prompt_count - 1 : len(row.tokens) - 1] = row.weight
    kept = weights.any(dim=0).nonzero()[:, 0]  # positions at which some row says something
    weights, targets = weights[:, kept], tokens[:, kept + 1]
    is_said = weights > 0
    output = model(input_ids=tokens.to(device), use_cache=False, logits_to_keep=kept.to(device))
    logits = output.logits[is_said.to(output.logits.device)].float()
    losses = torch.nn.functional.cross_entropy(logits, targets[is_said].to(logits.device), reduction="none")
    return cast(Tensor, (losses * weights[is_said].to(losses.device)).sum())


def _check(examples: Sequence[Example], model: Any) -> None:
    known = model.get_input_embeddings().weight.shape[0]
    highest = max(max(example.tokens) for example in examples)
    if highest >= known:
        raise TrainingFailed(
            f"the tokenizer gives token {highest}, the model knows 0 to {known - 1}: they do not belong together; "
            "give the tokenizer that the weights were trained with"
        )
    longest = max(len(example.tokens) for example in examples)
    config = model.config.get_text_config()
    if longest > config.max_position_embeddings:
        raise TrainingFailed(
            f"a row has {longest} tokens, the model reads {config.max_position_embeddings}; lower training.row_tokens"
        )


@contextmanager
def _seeded(seed: int, device: str) -> Iterator[None]:
    """Torch's random numbers begin at ``seed``, and go on afterwards as if nothing had been."""
    devices = range(torch.cuda.device_count()) if device == "cuda" else ()
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        if device == "cuda":
            torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _random_state(device: str) -> tuple[Tensor, list[Tensor]]:
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if device == "cuda" else []


def _set_random_state(device: str, state: tuple[Tensor, list[Tensor]]) -> None:
    torch.set_rng_state(state[0])
    if device == "cuda":
        torch.cuda.set_rng_state_all(state[1])


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _give_back(device: str) -> None:
    if device == "cuda":
        torch.cuda.empty_cache()


def _begin_measuring(device: str) -> None:
    for index in range(torch.cuda.device_count()) if device == "cuda" else ():
        torch.cuda.reset_peak_memory_stats(index)


def _peak_memory(device: str) -> int:
    """Bytes: of all GPUs since training began, or of this process since it began."""
    if device == "cuda":
        return sum(torch.cuda.max_memory_allocated(index) for index in range(torch.cuda.device_count()))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
