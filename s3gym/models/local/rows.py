"""Keys and values of sequences of different lengths, and the attention that reads each of them alone.

A sequence is never padded to the length of another: what it attends to is a tensor of its own, so an answer
cannot depend on who else is computed at the same time. Everything between two attentions works on a fixed
number of rows, in which no row reads another.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, Cache
from transformers.integrations.sdpa_attention import sdpa_attention_forward

ATTENTION = "s3gym_rows"
"""Name under which transformers finds ``attend``."""
GROWTH = 256
"""Positions a full buffer grows by, at least; it grows by half where that is more."""

Block = dict[int, tuple[Tensor, Tensor]]
"""Layer to keys and values, each [heads, positions, size]."""


class KeysAndValues:
    """Those of one sequence, in buffers that grow."""

    def __init__(self) -> None:
        self.length = 0
        """Positions that count; what lies behind them is overwritten."""
        self._buffers: dict[int, tuple[Tensor, Tensor]] = {}

    def extended(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values of ``layer`` with new ones ([heads, new positions, size]) at the end.

        ``length`` stays: it moves when all layers have theirs.
        """
        stop = self.length + keys.shape[-2]
        new = (keys, values)
        buffers = self._buffers.get(layer)
        if buffers is None or buffers[0].shape[-2] < stop:
            room = max(stop, self.length + max(GROWTH, self.length // 2))
            grown = tuple(tensor.new_empty(tensor.shape[0], room, tensor.shape[2]) for tensor in new)
            if buffers is not None:
                for larger, smaller in zip(grown, buffers, strict=True):
                    larger[:, : self.length] = smaller[:, : self.length]
            buffers = self._buffers[layer] = (grown[0], grown[1])
        for buffer, tensor in zip(buffers, new, strict=True):
            buffer[:, self.length : stop] = tensor
        return buffers[0][:, :stop], buffers[1][:, :stop]

    def block(self, start: int, stop: int) -> Block:
        """A copy of the positions ``start`` to ``stop``."""
        return {
            layer: (keys[:, start:stop].clone(), values[:, start:stop].clone())
            for layer, (keys, values) in self._buffers.items()
        }

    def append(self, block: Block) -> None:
        """Adds positions computed earlier."""
        for layer, (keys, values) in block.items():
            self.extended(layer, keys, values)
        self.length += next(iter(block.values()))[0].shape[-2]


class Prefixes:
    """Blocks of prompts computed earlier, found by all tokens up to their end; the ones unused longest go first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.held_bytes = 0
        self._blocks: OrderedDict[bytes, tuple[Block, int]] = OrderedDict()

    def find(self, key: bytes) -> Block | None:
        """The block of ``key``, which becomes the last to go."""
        if key not in self._blocks:
            return None
        self._blocks.move_to_end(key)
        return self._blocks[key][0]

    def keep(self, key: bytes, block: Block) -> None:
        """Keeps a block, at the cost of others when there is no room."""
        size = sum(tensor.nbytes for pair in block.values() for tensor in pair)
        if key in self._blocks or size > self.most_bytes:
            return
        self._blocks[key] = (block, size)
        self.held_bytes += size
        while self.held_bytes > self.most_bytes:
            self.held_bytes -= self._blocks.popitem(last=False)[1][1]


def block_keys(tokens: Sequence[int], size: int) -> Iterable[bytes]:
    """For each whole block of ``tokens``, a key that names it and all before it."""
    key = b""
    for start in range(0, len(tokens) - size + 1, size):
        key = sha256(key + repr(tokens[start : start + size]).encode()).digest()
        yield key


class Rows(Cache):  # type: ignore[misc]  # its types are not read
    """The cache of one forward pass over several sequences; a row without one is a stand-in that reads nothing."""

    def __init__(self, sequences: Sequence[KeysAndValues | None]) -> None:
        super().__init__(layers=[])
        self.sequences = sequences

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """Takes the new keys and values of all rows; gives what each row attends to, None for a stand-in."""
        pairs = [
            (None, None) if sequence is None else sequence.extended(layer_idx, keys, values)
            for sequence, keys, values in zip(self.sequences, key_states, value_states, strict=True)
        ]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """0: positions are always given."""
        return 0


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: list[Tensor | None],
    value: list[Tensor | None],
    attention_mask: Tensor | None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """The library's attention, row by row: each query sees all positions of its own sequence up to its own.

    With a mask [1, 1, queries, positions], which the library makes none of, it sees what the mask says.
    """
    if kwargs.get("s_aux") is not None:
        raise ValueError("attention sinks")
    results: list[Tensor | None] = []
    for asking, keys, values in zip(query, key, value, strict=True):
        if keys is None or values is None:
            results.append(None)
            continue
        if attention_mask is None:
            seen = _seen(asking.shape[1], keys.shape[1], sliding_window, asking.device)
        else:
            seen = _latest(attention_mask, sliding_window)
        results.append(sdpa_attention_forward(module, asking[None], keys[None], values[None], seen, **kwargs)[0])
    pattern = next(result for result in results if result is not None)
    blank = torch.zeros_like(pattern)
    return torch.cat([blank if result is None else result for result in results]), None


def _seen(asking: int, length: int, window: int | None, device: torch.device) -> Tensor | None:
    """Which of ``length`` positions the last ``asking`` of them see; None for all, or for all up to their own."""
    if (window is None or window >= length) and asking in (1, length):
        return None
    seen = torch.ones(1, 1, asking, length, dtype=torch.bool, device=device).tril(length - asking)
    return seen if window is None else seen.triu(length - asking - window + 1)


def _latest(seen: Tensor, window: int | None) -> Tensor:
    """Of what each query sees, the last ``window`` positions."""
    return seen if window is None else seen & (seen.flip(-1).cumsum(-1).flip(-1) <= window)


AttentionInterface.register(ATTENTION, attend)
