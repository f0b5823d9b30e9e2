"""Structural tensors: indptr, indices and lengths, which kernels don't check."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import le
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.problems import Problem, error
from generator.problems.messages import quote
from kernel_judge.constraints import TensorValue

WORKLOAD_INDPTR = error("""workload-indptr: An indptr does not begin at 0, decreases, or
    ends at another number than its axis.
    Fix: Capture the workload again: such a tensor makes kernels read outside.
    Finds: qo_indptr is 0, 7, 5 where total_q is 5""")
WORKLOAD_INDICES = error("""workload-indices: An index leads out of the tensor that it
    is for.
    Fix: Capture the workload again: such an index makes kernels read outside.
    Finds: kv_indices has 512 where num_pages is 512""")
WORKLOAD_LAST_PAGE = error("""workload-last-page: A sequence's last page is empty or
    holds more tokens than a page.
    Fix: Write a length of 1 to page_size.
    Finds: kv_last_page_len has 65 where page_size is 64""")

_ENDS: Mapping[str, tuple[str, ...]] = {
    "qo_indptr": ("total_q",),
    "kv_indptr": ("num_kv_indices", "total_kv"),
    "cu_seqlens": ("total_seq_len",),
}
_LAST_PAGE = "kv_last_page_len"
# the least value, and the axes whose product none reaches; -1 is padding
_INDICES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "kv_indices": (0, ("num_pages",)),
    "positions": (0, ("max_seq_len",)),
    "block_table": (-1, ("num_pages",)),
    "sparse_indices": (-1, ("num_pages", "page_size")),
    "state_batch_indices": (-1, ("state_cache_size",)),
    "initial_state_indices": (-1, ("pool_size",)),
}


def has_role(name: str) -> bool:
    """Return whether the name of an input says that it is a structural tensor."""
    return name in _INDICES or name == _LAST_PAGE or _is_indptr(name)


def _is_indptr(name: str) -> bool:
    return name.endswith("indptr") or name == "cu_seqlens"


def check_structure(
    definition: LoadedDefinition, axes: Mapping[str, int], values: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield a Problem for each tensor that would make a kernel read outside of another."""
    for name, value in values.items():
        if not isinstance(value, TensorValue) or not value.values:
            continue
        rule, what = WORKLOAD_INDICES, None
        if _is_indptr(name):
            rule, what = WORKLOAD_INDPTR, _indptr(definition, axes, name, value.values)
        elif name == _LAST_PAGE and "page_size" in axes:
            size = axes["page_size"]
            what = _outside(value.values, 1, size, "has", "page_size")
            rule = WORKLOAD_LAST_PAGE
        elif name in _INDICES and axes.keys() >= set(_INDICES[name][1]):
            lowest, of = _INDICES[name]
            size = math.prod(axes[axis] for axis in of)
            what = _outside(
                value.values, lowest, size - 1, "has the index", " * ".join(of)
            )
        if what is not None:
            message = f"The input {quote(name)} {what}."
            yield rule.at(message, "workload", "inputs", name)


def _indptr(
    definition: LoadedDefinition,
    axes: Mapping[str, int],
    name: str,
    values: Sequence[int],
) -> str | None:
    if values[0] != 0:
        return f"begins at {values[0]}, not at 0"
    if not all(map(le, values, values[1:])):
        at = next(i for i in range(1, len(values)) if values[i] < values[i - 1])
        return f"decreases from {values[at - 1]} to {values[at]} at index {at}"
    # a constraint on the last element is a rule of its own
    if any(f"{name}[-1]" in constraint for constraint in definition.constraints):
        return None
    for axis in _ENDS.get(name, ()):
        if axis in axes and values[-1] != axes[axis]:
            return f"ends at {values[-1]}, but {axis} is {axes[axis]}"
    return None


def _outside(
    values: Sequence[int], lowest: int, highest: int, has: str, of: str
) -> str | None:
    for worst in (min(values), max(values)):
        if not lowest <= worst <= highest:
            allowed = f"{lowest} to {highest}"
            if highest < max(lowest, 0):
                allowed = "none: the axis is 0"
            return f"{has} {worst}; allowed is {allowed} ({of})"
    return None


def lengths(
    axes: Mapping[str, int], values: Mapping[str, Any]
) -> tuple[list[int], list[int]] | None:
    """Return the query and key lengths of the sequences, or None where not known.

    In decode, which has no qo_indptr, each sequence has one query.
    """
    kv = _steps(values.get("kv_indptr"))
    if kv is None:
        return None
    page = axes.get("page_size", 1)
    if page != 1:
        last = values.get(_LAST_PAGE)
        filled = last.values if isinstance(last, TensorValue) else None
        if filled is None or len(filled) != len(kv):
            return None
        kv = [(n - 1) * page + f if n else 0 for n, f in zip(kv, filled, strict=True)]
    q = _steps(values["qo_indptr"]) if "qo_indptr" in values else [1] * len(kv)
    return (q, kv) if q is not None and len(q) == len(kv) else None


def _steps(value: Any) -> list[int] | None:
    if not isinstance(value, TensorValue) or value.values is None:
        return None
    return [b - a for a, b in pairwise(value.values)]
