"""Axes of segments, and their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from kernel_judge.inputs.seeded_inputs import Stream


def axes_of(lengths: Sequence[int], weights: int) -> dict[str, int]:
    """Return the variable axes of segments of these lengths."""
    return {
        "total_rows": sum(lengths),
        "num_weights": weights,
        "num_segments": len(lengths),
        "len_indptr": len(lengths) + 1,
    }


def segment_inputs(
    lengths: Sequence[int], weights: int, stream: Stream
) -> dict[str, torch.Tensor]:
    """Return seg_indptr and weight_indices, int64.

    Weights come in random order, all of them where there are segments enough.
    """
    order = stream.permutation(weights).tolist()
    indices = [order[place % weights] for place in range(len(lengths))]
    bounds = list(accumulate(lengths, initial=0))
    return {
        "seg_indptr": torch.tensor(bounds, dtype=torch.int64),
        "weight_indices": torch.tensor(indices, dtype=torch.int64),
    }
