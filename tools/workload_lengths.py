"""Measure the workloads of attention: longest sequences, batches, queries without a key.

    python tools/workload_lengths.py [DIR]

Of each op_type of attention: definitions, those with a sequence of 32,768 tokens or
more, the longest sequence and the largest batch; then the share of prefill queries that
see a key. The last line says whether a fifth of the definitions has such a one, and 95
% of the queries see a key; exit status 1 where not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import LastFolder
from generator.dataset.tensors import open_tensor_file
from generator.dataset.workload_files import workloads_of

ROOT = Path(__file__).parent.parent
OP_TYPES = (
    *("block_sparse", "chunked_attention", "dsa_paged", "gqa_paged", "gqa_ragged"),
    *("gqa_single", "mla_paged", "mla_ragged", "pod"),
)
LONG, SHARE, SEEING = 32_768, 0.2, 0.95


@dataclass
class Lengths:
    """Count what workloads of a dataset have."""

    definitions: int = 0
    long: int = 0
    tokens: int = 0
    batch: int = 0
    queries: int = 0
    seeing: int = 0


def main(arguments: list[str]) -> int:
    """Print the table, and whether both shares are reached."""
    root = Path(arguments[0]) if arguments else ROOT
    found = {op_type: lengths_of(root, op_type) for op_type in OP_TYPES}
    print("op_type             definitions  32k  longest  batch")
    for op_type, one in found.items():
        print(
            f"{op_type:18} {one.definitions:12} {one.long:4} {one.tokens:8} {one.batch:6}"
        )
    definitions, long, queries, seeing = (
        sum(getattr(one, name) for one in found.values())
        for name in ("definitions", "long", "queries", "seeing")
    )
    print(f"{seeing} of {queries} queries of paged and ragged prefill see a key")
    share = long / max(definitions, 1)
    enough = share >= SHARE and seeing >= SEEING * queries
    print(
        f"{'ok' if enough else 'FAILED'}: {long} of {definitions} definitions "
        f"({share:.0%}) have a sequence of {LONG} tokens or more"
    )
    return 0 if enough else 1


def lengths_of(root: Path, op_type: str) -> Lengths:
    """Return what the workloads of an op_type have."""
    found = Lengths()
    for path in sorted((root / "definitions" / op_type).glob("*.json")):
        definition = json.loads(path.read_text("utf-8"))
        page = definition["axes"].get("page_size", {}).get("value", 1)
        longest = 0
        for workload in workloads_of(root, op_type, path.stem):
            rows = rows_of(root, workload, page)
            longest = max(longest, *(keys for _, keys in rows))
            found.batch = max(found.batch, len(rows))
            if "qo_indptr" in workload["inputs"]:
                causal = "noncausal" not in path.stem
                found.queries += sum(q for q, _ in rows)
                found.seeing += sum(
                    min(q, n) if causal else q * (n > 0) for q, n in rows
                )
        found.definitions += 1
        found.long += longest >= LONG
        found.tokens = max(found.tokens, longest)
    return found


def rows_of(
    root: Path, workload: Mapping[str, Any], page: int
) -> list[tuple[int, int]]:
    """Return queries and keys of each sequence; one sequence where no indptr splits it."""
    axes, inputs = workload["axes"], workload["inputs"]
    if "kv_indptr" not in inputs:
        keys = axes.get("kv_len", page * axes.get("max_num_pages", 0))
        return [(1, keys)] * axes.get("batch_size", 1)
    pages = [b - a for a, b in pairwise(tensor_of(root, inputs["kv_indptr"]))]
    last = [page] * len(pages)
    if "kv_last_page_len" in inputs:
        last = tensor_of(root, inputs["kv_last_page_len"])
    keys = [
        (n - 1) * page + end if n else 0 for n, end in zip(pages, last, strict=True)
    ]
    queries = [1] * len(keys)
    if "qo_indptr" in inputs:
        queries = [b - a for a, b in pairwise(tensor_of(root, inputs["qo_indptr"]))]
    return [*zip(queries, keys, strict=True)]


def tensor_of(root: Path, stated: Mapping[str, Any]) -> list[int]:
    """Return the numbers of a tensor that a workload points to."""
    with closing(LastFolder(root)) as folder:
        file = open_tensor_file(folder, stated["path"])
    file.read_header()
    numbers = file.integers(stated["tensor_key"])
    if numbers is None:
        raise ValueError(f"{stated['path']}: {stated['tensor_key']} can't be read")
    return list(numbers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
