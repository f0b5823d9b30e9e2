"""Masks of trees of draft tokens, which speculative decoding verifies at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from kernel_judge.definition import Case
from kernel_judge.inputs.seeded_inputs import Stream

# of the deviation of a bell-shaped draw: one key of eight before the tree is hidden
_HIDDEN = 1.2


def mask_rows(
    mask: torch.Tensor, shapes: Sequence[tuple[int, int]]
) -> list[torch.Tensor]:
    """Return each sequence's part of a mask, bool [Σ queries · keys].

    `shapes` are (queries, keys) of the sequences; a part is bool [queries, keys].
    """
    ends = list(accumulate(queries * keys for queries, keys in shapes))
    parts = torch.tensor_split(mask, ends[:-1])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


BOTH_WAYS = "seen-both-ways"
"""The case in which queries see keys behind their own, as those of one image do."""


def tree_masks(case: Case, stream: Stream) -> torch.Tensor:
    """Return the masks of sequences whose last keys are a tree: bool [Σ queries · keys].

    A query sees itself and its ancestors, and most keys before the tree: what it does
    not see of them shows a reference that takes them all. Queries before the first key
    see none.
    """
    lengths = zip(case.params["q_lens"], case.params["kv_lens"], strict=True)
    parts = [
        _tree(q_len, kv_len, stream.child(f"mask {i}"))
        for i, (q_len, kv_len) in enumerate(lengths)
    ]
    if case.name == BOTH_WAYS:
        for part in parts:
            part[1:-1, 1 - len(part) : -1] = True
    return torch.cat([part.flatten() for part in parts])


def _tree(q_len: int, kv_len: int, stream: Stream) -> torch.Tensor:
    mask = torch.zeros(q_len, kv_len, dtype=torch.bool)
    nodes = min(q_len, kv_len)
    before, first = kv_len - nodes, q_len - nodes
    mask[first:, :before] = stream.child("holes").values((nodes, before)) < _HIDDEN
    for node in range(nodes):
        # one of the nodes before, or -1: a child of the last key before the tree
        parent = stream.child(f"parent {node}").integers(-1, node, 1)[0]
        if parent >= 0:
            mask[first + node, before:] = mask[first + parent, before:]
        mask[first + node, before + node] = True
    return mask
