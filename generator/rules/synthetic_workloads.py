"""Signs that the workloads of a file were made up instead of captured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from generator.problems import Problem, note, warning
from generator.problems.messages import plural, quote

WORKLOAD_NO_KEYS = note("""workload-no-keys: Some queries see no key at all, so their
    output is a convention (0, -inf).
    Fix: Check that the workload is meant so, and that the reference says what happens.
    Finds: a causal prefill of 5 queries over 3 keys""")
WORKLOAD_DUPLICATE_CONTENT = warning("""workload-duplicate-content: Two workloads of a
    file have the same axes and inputs.
    Fix: Keep one of them.
    Finds: the same line under two uuids""")
WORKLOAD_SWEEP = warning("""workload-sweep: The axes of all workloads are one regular
    sweep, not what inference does.
    Fix: Capture workloads from real inference.
    Finds: batch_size is 1, 2, 4, 8, 16 and nothing else varies""")
WORKLOAD_BATCH_ONE = warning("""workload-batch-one: All workloads have a batch of one.
    Fix: Capture workloads from a server under load.
    Finds: batch_size is 1 in all 12 lines""")
WORKLOAD_EQUAL_LENGTHS = warning("""workload-equal-lengths: In each workload all
    sequences are equally long, unlike in real inference.
    Fix: Capture workloads from real inference.
    Finds: qo_indptr is 0, 128, 256, 384 and the like in all lines""")

_DRAFTS = 64
"""Tokens of a draft at most: one, or one tree, which is as large in each sequence."""
_FEW = 4
"""Fewer workloads than this show no pattern."""

_BATCH = {"batch_size": 1, "num_seqs": 1, "len_indptr": 2, "len_cu_seqlens": 2}
"""Axes that count sequences, and their size for a batch of one."""

_SHOWN = 10
_CANONICAL = json.JSONEncoder(sort_keys=True)


@dataclass
class FileSigns:
    """Gather the axes and lengths of the lines of one file."""

    axes: list[Mapping[str, int]] = field(default_factory=list)
    without_keys: list[int] = field(default_factory=list)
    batches: int = 0
    equal_batches: int = 0
    _first: dict[frozenset[tuple[str, int]], tuple[int, Any]] = field(
        default_factory=dict
    )
    _seen: dict[bytes, int] = field(default_factory=dict)

    def add_lengths(self, q: list[int], kv: list[int], causal: bool, line: int) -> None:
        """Add the lengths of one workload's sequences."""
        need = q if causal else [min(n, 1) for n in q]
        if any(wanted > has for wanted, has in zip(need, kv, strict=True)):
            self.without_keys.append(line)
        shown = kv if max(q, default=0) <= _DRAFTS else q
        if len(shown) > 1:
            self.batches += 1
            self.equal_batches += len(set(shown)) == 1

    def add(
        self, workload: Mapping[str, Any], contents: Mapping[str, str], number: int
    ) -> Iterator[Problem]:
        """Add a line; yield a Problem where an earlier line has the same content.

        `contents` maps the path of a blob to the digest of what is in it.
        """
        self.axes.append(workload["axes"])
        inputs = {
            name: [contents.get(source["path"], source["path"]), source["tensor_key"]]
            if source["type"] == "safetensors"
            else source
            for name, source in workload["inputs"].items()
        }
        axes = frozenset(workload["axes"].items())
        first, of_first = self._first.setdefault(axes, (number, inputs))
        if first == number:
            return
        # only of lines with equal axes: most have none like them
        self._seen.setdefault(_digest([workload["axes"], of_first]), first)
        alike = self._seen.setdefault(_digest([workload["axes"], inputs]), number)
        if alike != number:
            message = f"The axes and inputs are those of line {alike}."
            yield WORKLOAD_DUPLICATE_CONTENT.at(message, "workload")

    def check(self) -> Iterator[Problem]:
        """Yield the Problems of the file as a whole."""
        if self.without_keys:
            shown = ", ".join(map(str, self.without_keys[:_SHOWN]))
            more = ", ..." if len(self.without_keys) > _SHOWN else ""
            message = (
                f"{plural(len(self.without_keys), 'workload')} of {len(self.axes)} "
            )
            message += f"have queries that see no key: lines {shown}{more}."
            yield WORKLOAD_NO_KEYS.at(message)
        if len(self.axes) < _FEW:
            return
        shared = [x for x in self.axes[0] if all(x in axes for axes in self.axes)]
        columns = {axis: [axes[axis] for axes in self.axes] for axis in shared}
        moving = {k: v for k, v in columns.items() if len(set(v)) > 1}
        if moving and all(_is_regular(values) for values in moving.values()):
            names = ", ".join(quote(axis) for axis in moving)
            message = f"The axes {names} are a regular sweep in all workloads."
            yield WORKLOAD_SWEEP.at(message)
        for axis, one in _BATCH.items():
            if set(columns.get(axis, ())) == {one}:
                message = f"The axis {quote(axis)} is {one} in all workloads."
                yield WORKLOAD_BATCH_ONE.at(message)
                break
        if self.batches >= _FEW and self.batches == self.equal_batches:
            message = f"All {self.batches} batches have sequences of equal length."
            yield WORKLOAD_EQUAL_LENGTHS.at(message)


def _digest(content: Any) -> bytes:
    text = _CANONICAL.encode(content)
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _is_regular(values: list[int]) -> bool:
    """Return whether distinct values are one arithmetic or geometric progression."""
    distinct = sorted(set(values))
    if len(distinct) < _FEW or len(distinct) != len(values):
        return False
    pairs = list(pairwise(distinct))
    if len({b - a for a, b in pairs}) == 1:
        return True
    return distinct[0] > 0 and all(b * distinct[0] == a * distinct[1] for a, b in pairs)
