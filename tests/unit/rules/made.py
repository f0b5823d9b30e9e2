"""Parts of a dataset that tests bend: blobs, paged attention, solutions, traces."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_FORMATS = {"I32": "i", "I64": "q", "F16": "e", "F32": "f", "U8": "B", "I8": "b"}
Values = tuple[str, Sequence[int], Sequence[float]]


def tensor_file(tensors: Mapping[str, Values]) -> bytes:
    """Return a safetensors file of tensors, each as dtype, shape and values."""
    header, body = {}, b""
    for key, (dtype, shape, values) in tensors.items():
        assert math.prod(shape) == len(values)
        data = struct.pack(f"<{len(values)}{_FORMATS[dtype]}", *values)
        offsets = [len(body), len(body) + len(data)]
        header[key] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


PAGED = "gqa_paged/gqa_paged_prefill_causal_h2_kv1_d128_ps4"
NAME = PAGED.split("/")[1]
PAGED_BLOBS = f"blob/workloads/{PAGED}"
_BF16 = "bfloat16"
PAGED_DEFINITION: dict[str, Any] = {
    "name": NAME,
    "op_type": "gqa_paged",
    "axes": {
        "num_qo_heads": {"type": "const", "value": 2},
        "num_kv_heads": {"type": "const", "value": 1},
        "head_dim": {"type": "const", "value": 128},
        "page_size": {"type": "const", "value": 4},
        "total_q": {"type": "var"},
        "batch_size": {"type": "var"},
        "len_indptr": {"type": "var"},
        "num_pages": {"type": "var"},
        "num_kv_indices": {"type": "var"},
    },
    "inputs": {
        "q": {"shape": ["total_q", "num_qo_heads", "head_dim"], "dtype": _BF16},
        "cache": {
            "shape": ["num_pages", "page_size", "num_kv_heads", "head_dim"],
            "dtype": _BF16,
        },
        "qo_indptr": {"shape": ["len_indptr"], "dtype": "int32"},
        "kv_indptr": {"shape": ["len_indptr"], "dtype": "int32"},
        "kv_indices": {"shape": ["num_kv_indices"], "dtype": "int32"},
        "kv_last_page_len": {"shape": ["batch_size"], "dtype": "int32"},
    },
    "outputs": {
        "output": {"shape": ["total_q", "num_qo_heads", "head_dim"], "dtype": _BF16}
    },
    "constraints": [
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ],
    "reference": (
        "import torch\n\n\n"
        "def run(q, cache, qo_indptr, kv_indptr, kv_indices, kv_last_page_len):\n"
        "    return q\n"
    ),
}
PAGED_VALUES: dict[str, list[int]] = {
    "qo_indptr": [0, 2, 3],
    "kv_indptr": [0, 2, 3],
    "kv_indices": [7, 0, 3],
    "kv_last_page_len": [1, 4],
}


def paged(
    dataset: Any,
    *changes: Mapping[str, Any],
    definition: Mapping[str, Any] | None = None,
) -> None:
    """Write the paged definition and a workload with a blob for each of `changes`.

    A change replaces values of the blob, or axes where the key is in capitals.
    """
    value = {**PAGED_DEFINITION, **(definition or {})}
    dataset.definition(PAGED, **value)
    lines = []
    for number, change in enumerate(changes or ({},)):
        tensors = {
            **PAGED_VALUES,
            **{k: v for k, v in change.items() if k in PAGED_VALUES},
        }
        path = f"{PAGED_BLOBS}/{number}.safetensors"
        dataset.write(
            path, tensor_file({k: ("I32", [len(v)], v) for k, v in tensors.items()})
        )
        axes = {
            "total_q": tensors["qo_indptr"][-1],
            "batch_size": len(tensors["kv_last_page_len"]),
            "len_indptr": len(tensors["kv_indptr"]),
            "num_pages": 8,
            "num_kv_indices": len(tensors["kv_indices"]),
        }
        axes |= {k: v for k, v in change.items() if k in axes}
        inputs: dict[str, Any] = {"q": {"type": "random"}, "cache": {"type": "random"}}
        for key in tensors:
            inputs[key] = {"type": "safetensors", "path": path, "tensor_key": key}
        workload = {"uuid": f"u{number}", "axes": axes, "inputs": inputs}
        lines.append({"definition": NAME, "workload": workload})
    dataset.workloads(*lines, name=PAGED)


SOLUTION_PATH = "solutions/{author}/gemm/gemm_n8_k4/{name}.json"


def solution(dataset: Any, **changes: Any) -> str:
    """Write a solution of the gemm with fields changed; return its path."""
    source = "import flashinfer\n\n\ndef run(A, B, alpha, C):\n    C.copy_(A @ B.T)\n"
    value: dict[str, Any] = {
        "name": "fast",
        "definition": "gemm_n8_k4",
        "author": "baseline",
        "spec": {
            "language": "python",
            "target_hardware": ["cuda"],
            "entry_point": "main.py::run",
        },
        "sources": [{"path": "main.py", "content": source}],
    }
    path = changes.pop("at", None)
    value.update(changes)
    if path is None:
        path = SOLUTION_PATH.format(author=value["author"], name=value["name"])
    dataset.write(path, json.dumps(value))
    return str(path)


def source_of(code: str) -> list[dict[str, str]]:
    """Return the sources of a solution in one file."""
    return [{"path": "main.py", "content": code}]


TRACES = "traces/baseline/gemm/gemm_n8_k4.jsonl"


def trace(dataset: Any, at: str = TRACES, times: int = 1, **changes: Any) -> None:
    """Write a baseline and a trace of it; `evaluation` and others may be changed."""
    workload = {
        "uuid": "one",
        "axes": {"M": 3},
        "inputs": {"A": {"type": "random"}, "B": {"type": "random"}},
    }
    evaluation = {
        "status": "PASSED",
        "environment": {"hardware": "H100"},
        "timestamp": "2026-01-01T00:00:00",
        "correctness": {"max_relative_error": 0.0, "max_absolute_error": 0.0},
        "performance": {
            "latency_ms": 1.0,
            "reference_latency_ms": 2.0,
            "speedup_factor": 2.0,
        },
    }
    value: dict[str, Any] = {
        "definition": "gemm_n8_k4",
        "workload": {**workload, **changes.pop("workload", {})},
        "solution": "fast",
        "evaluation": evaluation,
    }
    if isinstance(changes.get("evaluation"), dict):
        changes["evaluation"] = {**evaluation, **changes["evaluation"]}
    solution(dataset)
    value.update(changes)
    dataset.write(at, (json.dumps(value) + "\n") * times)


Break = Callable[[Any, Any], Any]
