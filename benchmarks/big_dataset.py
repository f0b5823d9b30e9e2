"""Make a large dataset of three op_types, the same bytes for the same arguments.

    python benchmarks/big_dataset.py DIR --definitions 10000 --workloads 20

A third are matrix products, a third norms, a third paged attention, whose workloads
have a blob each. References are the repository's own; every one is a text of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
MODELS = (
    "definitions/gemm/gemm_n4096_k4096.json",
    "definitions/rmsnorm/rmsnorm_h4096.json",
    "definitions/gqa_paged/gqa_paged_decode_return_lse_h32_kv8_d128_ps1.json",
)


def main() -> None:
    """Write the dataset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--definitions", type=int, default=10_000)
    parser.add_argument("--workloads", type=int, default=20)
    options = parser.parse_args()
    make(options.directory, options.definitions, options.workloads)


def make(root: Path, definitions: int, workloads: int) -> None:
    """Write `definitions` definitions with `workloads` workloads each under `root`."""
    models = [json.loads((REPOSITORY / path).read_text("utf-8")) for path in MODELS]
    for number in range(definitions):
        chance = random.Random(number)
        model = models[number % len(models)]
        definition = variant(model, number)
        op_type, name = definition["op_type"], definition["name"]
        write(root / f"definitions/{op_type}/{name}.json", json.dumps(definition))
        lines = [
            json.dumps(line)
            for line in workload_lines(root, definition, workloads, chance)
        ]
        write(root / f"workloads/{op_type}/{name}.jsonl", "\n".join(lines) + "\n")


def variant(model: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the model with a size, a name and a reference text of its own."""
    axes = {name: dict(axis) for name, axis in model["axes"].items()}
    axis = {"gemm": "N", "rmsnorm": "hidden_size", "gqa_paged": "page_size"}
    op_type = model["op_type"]
    sizes = {"gemm": 8 * (number + 1), "rmsnorm": 8 * (number + 1), "gqa_paged": 1}
    axes[axis[op_type]]["value"] = sizes[op_type]
    name = {
        "gemm": f"gemm_n{sizes[op_type]}_k4096",
        "rmsnorm": f"rmsnorm_h{sizes[op_type]}",
        "gqa_paged": f"gqa_paged_decode_return_lse_h32_kv8_d{number}_ps1",
    }[op_type]
    if op_type == "gqa_paged":
        axes["head_dim"]["value"] = number
    # another text than those that are published: rules on calls would object
    tags = [t for t in model["tags"] if not t.startswith(("model:", "fi_api:"))]
    reference = model["reference"] + f"\n\nVARIANT = {number}\n"
    if op_type == "rmsnorm":
        tags.append("model:mamba")
    changes = {"name": name, "axes": axes, "tags": tags, "reference": reference}
    return {**model, **changes}


def workload_lines(
    root: Path, definition: dict[str, Any], count: int, chance: random.Random
) -> Iterator[dict[str, Any]]:
    """Yield workloads with distinct sizes; those of attention write their blob."""
    op_type, name = definition["op_type"], definition["name"]
    random_input = {"type": "random"}
    for number, size in enumerate(chance.sample(range(2, 200), count)):
        inputs: dict[str, Any] = dict.fromkeys(definition["inputs"], random_input)
        var = [n for n, axis in definition["axes"].items() if axis["type"] == "var"]
        axes = dict.fromkeys(var, size)
        if op_type == "gqa_paged":
            path = f"blob/workloads/{op_type}/{name}/{number}.safetensors"
            lengths = [chance.randint(1, 9) for _ in range(size)]
            total = sum(lengths)
            indptr = [sum(lengths[:i]) for i in range(size + 1)]
            indices = chance.sample(range(2 * total), total)
            write_blob(root / path, {"kv_indptr": indptr, "kv_indices": indices})
            axes |= {"len_indptr": size + 1, "num_kv_indices": total}
            axes["num_pages"] = 2 * total
            for key in ("kv_indptr", "kv_indices"):
                inputs[key] = {"type": "safetensors", "path": path, "tensor_key": key}
            inputs["sm_scale"] = {"type": "scalar", "value": 0.125}
            inputs["return_lse"] = {"type": "scalar", "value": True}
        workload = {"uuid": f"{name}-{number}", "axes": axes, "inputs": inputs}
        yield {"definition": name, "workload": workload}


def write_blob(path: Path, tensors: dict[str, list[int]]) -> None:
    """Write int32 tensors of one axis as a safetensors file."""
    header, body = {}, b""
    for key, values in tensors.items():
        data = struct.pack(f"<{len(values)}i", *values)
        offsets = [len(body), len(body) + len(data)]
        header[key] = {"dtype": "I32", "shape": [len(values)], "data_offsets": offsets}
        body += data
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def write(path: Path, text: str) -> None:
    """Write a file, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
