"""The caches of an append: their names, and their slots in one order for both layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.op_types.page_append.names import ROWS
from kernel_judge.definition import Definition


def cache_names(definition: Definition) -> list[str]:
    """Return the inputs that are caches, in their order."""
    return [name for name in definition.interface.inputs if name in ROWS]


def is_hnd(definition: Definition) -> bool:
    """Return whether a page holds its heads one after the other, not its tokens."""
    spec = definition.interface.input_specs[cache_names(definition)[0]]
    return (spec.shape or ())[1] == "num_kv_heads"


def by_token(definition: Definition, cache: torch.Tensor) -> torch.Tensor:
    """Return a cache, or its output, as a view [num_pages, page_size, …]."""
    return cache.transpose(1, 2) if is_hnd(definition) else cache


def page_size_of(definition: Definition, inputs: Mapping[str, Any]) -> int:
    """Return the slots of a page, which MLA's interface has as a variable."""
    return int(by_token(definition, inputs[cache_names(definition)[0]]).shape[1])
