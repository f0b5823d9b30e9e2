"""Measure the workloads of attention: longest sequences, batches, queries without a key.

    python tools/workload_lengths.py [DIR]

Of each op_type of attention: definitions, those with a sequence of 32,768 tokens or
more, those of them of which a kernel is on record as compared live at such a workload,
the longest sequence and the largest batch; then the share of prefill queries that see a
key. The last two lines say whether a fifth of the definitions has such a one, and 95 %
of the queries see a key, and whether a fifth ran live; exit status 1 where not.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import LastFolder
from generator.dataset.tensors import open_tensor_file
from generator.dataset.workload_files import workloads_of
from generator.dataset.workload_identity import workload_identity
from generator.results.evidence import runs_in
from generator.results.sources import is_live_kernel
from generator.rules.basis import basis_in

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
    live: int = 0
    tokens: int = 0
    batch: int = 0
    queries: int = 0
    seeing: int = 0


def main(arguments: list[str]) -> int:
    """Print the table, and whether all shares are reached."""
    root = Path(arguments[0]) if arguments else ROOT
    ran = ran_live(root)
    lengths = {op_type: lengths_of(root, op_type, ran) for op_type in OP_TYPES}
    print("op_type             definitions  32k  ran live  longest  batch")
    for op_type, one in lengths.items():
        print(
            f"{op_type:18} {one.definitions:12} {one.long:4} {one.live:9} "
            f"{one.tokens:8} {one.batch:6}"
        )
    definitions, long, live, queries, seeing = (
        sum(getattr(one, name) for one in lengths.values())
        for name in ("definitions", "long", "live", "queries", "seeing")
    )
    print(f"{seeing} of {queries} queries of paged and ragged prefill see a key")
    shares = [n / max(definitions, 1) for n in (long, live)]
    enough = [shares[0] >= SHARE and seeing >= SEEING * queries, shares[1] >= SHARE]
    tokens = f"a sequence of {LONG} tokens or more"
    said = [
        f"{long} of {definitions} definitions ({shares[0]:.0%}) have {tokens}",
        f"{live} of {definitions} ({shares[1]:.0%}) ran live at such a workload",
    ]
    for holds, line in zip(enough, said, strict=True):
        print(f"{'ok' if holds else 'FAILED'}: {line}")
    return 0 if all(enough) else 1


def ran_live(root: Path) -> Mapping[tuple[str, str], Collection[str]]:
    """Return, by name and hash of a definition, the workloads at which a kernel passed."""
    ran: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in runs_in(root):
        for name, entry in run.definitions.items():
            for source, evidence in entry.sources.items():
                if is_live_kernel(source) and evidence.verdict == "PASSED":
                    compared = evidence.compared.get("workload", ())
                    ran[name, entry.sha256].update(compared)
    return ran


def lengths_of(
    root: Path, op_type: str, ran: Mapping[tuple[str, str], Collection[str]]
) -> Lengths:
    """Return what the workloads of an op_type have; `ran` is what `ran_live` returns."""
    lengths = Lengths()
    for path in sorted((root / "definitions" / op_type).glob("*.json")):
        definition = json.loads(path.read_text("utf-8"))
        page = definition["axes"].get("page_size", {}).get("value", 1)
        longest, long = 0, set()
        for workload in workloads_of(root, op_type, path.stem):
            rows = rows_of(root, workload, page)
            tokens = max(keys for _, keys in rows)
            longest = max(longest, tokens)
            if tokens >= LONG:
                long.add(workload_identity(workload))
            lengths.batch = max(lengths.batch, len(rows))
            if "qo_indptr" in workload["inputs"]:
                causal = "noncausal" not in path.stem
                lengths.queries += sum(q for q, _ in rows)
                lengths.seeing += sum(
                    min(q, n) if causal else q * (n > 0) for q, n in rows
                )
        lengths.definitions += 1
        lengths.long += bool(long)
        basis = basis_in(root, path.relative_to(root).as_posix())
        lengths.live += bool(long.intersection(ran.get((path.stem, basis), ())))
        lengths.tokens = max(lengths.tokens, longest)
    return lengths


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
