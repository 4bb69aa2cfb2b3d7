"""Chooses among answers by how likely a model is to write them, all of them in one pass.

Answers that begin alike share their beginning: they are a tree behind the prompt, in which a token attends to the
prompt and to what leads to it, and stands where it would stand if its answer were written alone.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

Choices = tuple[tuple[int, ...], ...]
"""The tokens of each answer; none begins with another whole one."""


class Tree(NamedTuple):
    """The tokens of all answers but the last of each, which nothing follows."""

    tokens: list[int]
    depths: list[int]
    """Tokens between the prompt and each."""
    seen: Tensor
    """[tokens, tokens]: which lead to it, itself included."""
    steps: Tensor
    """[choices, longest]: the row of the token before each of an answer's; row 0 is the prompt's last. -1: no more."""
    written: Tensor
    """[choices, longest]: the tokens of the answers; 0 where there are no more."""


@lru_cache(maxsize=64)  # some games have the same answers at every step
def tree_of(choices: Choices) -> Tree:
    """The tree of some answers."""
    longest = max(map(len, choices))
    paths: dict[tuple[int, ...], list[int]] = {(): []}
    tokens: list[int] = []
    steps = torch.full((len(choices), longest), -1)
    written = torch.zeros(len(choices), longest, dtype=torch.long)
    for index, choice in enumerate(choices):
        written[index, : len(choice)] = torch.tensor(choice)
        rows = [0]
        for stop in range(1, len(choice)):
            beginning = choice[:stop]
            if beginning not in paths:
                paths[beginning] = [*paths[beginning[:-1]], len(tokens)]
                tokens.append(beginning[-1])
            rows.append(paths[beginning][-1] + 1)
        steps[index, : len(rows)] = torch.tensor(rows)
    leading = [path for path in paths.values() if path]
    seen = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    seen[[path[-1] for path in leading for _ in path], [token for path in leading for token in path]] = True
    return Tree(tokens, [len(path) - 1 for path in leading], seen, steps, written)


def mask(tree: Tree, start: int, stop: int) -> Tensor:
    """What is attended to where a prompt is computed from ``start`` to its end, ``stop``, and the tree behind it.

    Returns:
        [1, 1, stop - start + tokens, stop + tokens]
    """
    size = len(tree.tokens)
    seen = torch.ones(stop - start + size, stop + size, dtype=torch.bool).tril(start)
    seen[stop - start :, stop:] = tree.seen
    return seen[None, None]


def likelihoods(tree: Tree, logits: Tensor) -> Tensor:
    """Log-likelihood of each answer, in nats.

    Args:
        tree: the answers.
        logits: [1 + tokens, vocabulary], after the prompt and after each token of the tree.
    """
    chances = torch.log_softmax(logits.double(), dim=-1)
    each = chances[tree.steps.clamp(min=0), tree.written]
    return torch.where(tree.steps < 0, 0.0, each).sum(dim=1)
