"""One case for each rule on contents: blobs, workloads, tags, neighbours."""

from __future__ import annotations

import json
from typing import Any

from generator.rules.basis import basis_of_bytes
from tests.audits import AUDIT, audited, entry, write_audit
from tests.unit.conftest import DEFINITION
from tests.unit.rules.made import (
    PAGED,
    PAGED_DEFINITION,
    SOLUTION_PATH,
    Break,
    paged,
    tensor_file,
)

D = "definitions/gemm/gemm_n8_k4.json"
W = "workloads/gemm/gemm_n8_k4.jsonl"
PD = f"definitions/{PAGED}.json"
PW = f"workloads/{PAGED}.jsonl"
S = SOLUTION_PATH.format(author="baseline", name="fast")
OTHER = "definitions/gemm/other.json"
RUN = "def run(A, B, alpha=1.0):\n"
A_BLOB = "blob/workloads/gemm/gemm_n8_k4/a.safetensors"
Case = tuple[Break, str, str, int | None]


def _tags(*tags: str) -> Break:
    return lambda d, w: d.definition(tags=list(tags))


def _proven(d: Any, w: Any) -> None:
    """Leave status:unverified on a definition that agreed with FlashInfer."""
    d.definition(tags=["status:unverified"])
    basis = basis_of_bytes((d.root / D).read_bytes(), D)
    proven = {"sha256": basis, "sources": {"flashinfer/x": {"verdict": "PASSED"}}}
    run = {"date": "2026-01-01", "machine": {}, "definitions": {"gemm_n8_k4": proven}}
    d.write(
        "verification/2026-01-01_gpu.json", json.dumps({"format": 1, "runs": [run]})
    )


def _source(body: str) -> Break:
    return lambda d, w: d.definition(reference=body)


def _blob(content: bytes, key: str = "A") -> Break:
    """Return what gives the input A by a blob with this content."""

    def write(d: Any, w: Any) -> None:
        d.write(A_BLOB, content)
        blob = {"type": "safetensors", "path": A_BLOB, "tensor_key": key}
        d.workloads(w(inputs={"A": blob, "B": {"type": "random"}}))

    return write


def _a(dtype: str, *shape: int, rows: int = 12) -> bytes:
    return tensor_file({"A": (dtype, shape, [0] * rows)})


def _paged(*changes: dict[str, Any]) -> Break:
    return lambda d, w: paged(d, *changes)


def _axes(*rows: int) -> Break:
    lines = [(str(i), {"M": rows[i]}) for i in range(len(rows))]
    return lambda d, w: d.workloads(*(w(uuid=u, axes=a) for u, a in lines))


def _other(**changes: Any) -> Break:
    return lambda d, w: d.definition(**{"name": "other", **changes})


def _huge_tensor(d: Any, w: Any) -> None:
    """Make a sparse blob: its header is right, its values are not looked at."""
    rows = 40 * 1024 * 1024
    d.definition(
        inputs={
            "A": {"shape": ["M", "K"], "dtype": "float16"},
            "positions": {"shape": ["M", "K"], "dtype": "int32"},
        },
        reference="import torch\n\n\ndef run(A, positions):\n    return A\n",
    )
    header = {
        "positions": {
            "dtype": "I32",
            "shape": [rows, 4],
            "data_offsets": [0, rows * 16],
        }
    }
    text = json.dumps(header).encode()
    d.write(A_BLOB, len(text).to_bytes(8, "little") + text)
    with (d.root / A_BLOB).open("r+b") as stream:
        stream.truncate(8 + len(text) + rows * 16)
    blob = {"type": "safetensors", "path": A_BLOB, "tensor_key": "positions"}
    d.workloads(
        w(axes={"M": rows}, inputs={"A": {"type": "random"}, "positions": blob})
    )


def _head_dims(d: Any, w: Any) -> None:
    paged(d, definition={"tags": ["model:toy"]})
    axes = {"head_dim": {"type": "const", "value": 8}, "M": {"type": "var"}}
    tensor = {"x": {"shape": ["M", "head_dim"], "dtype": "float16"}}
    d.definition(
        name="zz_d8",
        op_type="gqa_paged",
        tags=["model:toy"],
        axes=axes,
        inputs=tensor,
        outputs={"y": tensor["x"]},
        reference="def run(x):\n    return x\n",
    )


def _eps(d: Any, w: Any) -> None:
    row = {"shape": ["M", "hidden_size"], "dtype": "bfloat16"}
    for name, eps in (("rmsnorm_h4096", "1e-5"), ("rmsnorm_h4096_b", "1e-6")):
        d.definition(
            name=name,
            op_type="rmsnorm",
            tags=["model:llama-3.1-8b"],
            axes={
                "M": {"type": "var"},
                "hidden_size": {"type": "const", "value": 4096},
            },
            inputs={"x": row},
            outputs={"y": row},
            reference=f"EPS = {eps}\n\n\ndef run(x):\n    return x\n",
        )


LENGTHS = {"qo_indptr": [0, 2, 4], "kv_indptr": [0, 1, 2], "kv_indices": [0, 1]}
EQUAL = [{**LENGTHS, "num_pages": n, "kv_last_page_len": [4, 4]} for n in (2, 3, 5, 9)]
ONE = {"qo_indptr": [0, 1], "kv_indptr": [0, 1], "kv_indices": [0]}
ALONE = [{**ONE, "num_pages": n, "kv_last_page_len": [4]} for n in (2, 3, 5, 9)]


def _inputs(name: str, dtype: str) -> Break:
    """Return what gives the causal paged definition an input of this name and dtype."""
    tensor = {"shape": ["num_kv_indices"], "dtype": dtype}
    inputs = {**PAGED_DEFINITION["inputs"], name: tensor}
    return lambda d, w: paged(d, definition={"inputs": inputs})


ASSERTS = RUN + "    _, k = A.shape\n    assert k == 5\n    return A\n"
REFERENCE_BODY = DEFINITION["reference"].replace("alpha=1.0", "alpha, C")

MORE: dict[str, Case] = {
    "path-case": (
        lambda d, w: (
            d.write("blob/workloads/A/b/c", ""),
            d.write("blob/workloads/a/b/c", ""),
        ),
        "blob/workloads/a",
        "",
        None,
    ),
    "path-unportable": (
        lambda d, w: d.write("definitions/gemm/what?.txt", ""),
        "definitions/gemm/what?.txt",
        "",
        None,
    ),
    "reference-assert": (_source(ASSERTS), D, "/reference", 3),
    "reference-in-place": (
        _source(RUN + "    A.add_(1)\n    return A\n"),
        D,
        "/reference",
        2,
    ),
    "reference-global": (
        _source("import torch\n" + RUN + "    torch.manual_seed(0)\n    return A\n"),
        D,
        "/reference",
        3,
    ),
    "reference-token-loop": (
        _source(RUN + "    for i in range(A.shape[0]):\n        pass\n    return A\n"),
        D,
        "/reference",
        2,
    ),
    "workload-size": (_axes(9 * 10**12), W, "/workload/axes", 1),
    "blob-format": (_blob(b"data"), W, "/workload/inputs/A/path", 1),
    "blob-key": (_blob(_a("F16", 3, 4), "a"), W, "/workload/inputs/A/path", 1),
    "blob-shape": (_blob(_a("F16", 4, 3)), W, "/workload/inputs/A/path", 1),
    "blob-dtype": (_blob(_a("F32", 3, 4)), W, "/workload/inputs/A/path", 1),
    "blob-unread": (_huge_tensor, W, "/workload/inputs/positions/path", 1),
    "blob-unused": (lambda d, w: d.write(A_BLOB, _a("F16", 3, 4)), A_BLOB, "", None),
    "workload-indptr": (
        _paged({"qo_indptr": [1, 2, 3]}),
        PW,
        "/workload/inputs/qo_indptr",
        1,
    ),
    "workload-indices": (
        _paged({"kv_indices": [7, 8, 3]}),
        PW,
        "/workload/inputs/kv_indices",
        1,
    ),
    "workload-last-page": (
        _paged({"kv_last_page_len": [0, 4]}),
        PW,
        "/workload/inputs/kv_last_page_len",
        1,
    ),
    "workload-constraint": (_paged({"kv_indptr": [0, 2, 2]}), PW, "/workload", 1),
    "constraint-unchecked": (
        lambda d, w: d.definition(constraints=["A.mean() < M"]),
        D,
        "/constraints/0",
        None,
    ),
    "workload-no-keys": (_paged({"qo_indptr": [0, 6, 7]}), PW, "", None),
    "workload-duplicate-content": (
        lambda d, w: d.workloads(w(), w(uuid="two")),
        W,
        "/workload",
        2,
    ),
    "workload-sweep": (_axes(1, 2, 4, 8, 16), W, "", None),
    "workload-batch-one": (_paged(*ALONE), PW, "", None),
    "workload-equal-lengths": (_paged(*EQUAL), PW, "", None),
    "tag-form": (_tags("decode"), D, "/tags/0", None),
    "tag-unknown": (_tags("fused", "stages:decode"), D, "/tags/1", None),
    "tag-synonym": (_tags("quant:fp8"), D, "/tags/0", None),
    "tag-value": (_tags("tp:two"), D, "/tags/0", None),
    "tag-duplicate": (_tags("tp:1", "tp:1"), D, "/tags/1", None),
    "tag-conflict": (_tags("status:reference", "status:unverified"), D, "/tags", None),
    "tag-model": (_tags("model:toy"), D, "/tags/0", None),
    "tag-evidence": (_tags("status:verified"), D, "/tags/0", None),
    "tag-stale": (_proven, D, "/tags/0", None),
    "audit-file": (
        lambda d, w: write_audit(d.root, {"gemm_n8_k4": {}}),
        AUDIT,
        "/definitions/gemm_n8_k4",
        None,
    ),
    "audit-missing": (lambda d, w: write_audit(d.root, {}), D, "", None),
    "audit-stale": (
        lambda d, w: write_audit(d.root, {"gemm_n8_k4": entry()}),
        D,
        "",
        None,
    ),
    "audit-survivors": (lambda d, w: audited(d.root, D, "a"), D, "", None),
    "cross-duplicate": (_other(), OTHER, "", None),
    "cross-near-duplicate": (
        _other(reference="def run(A, B, alpha=1.0):\n    return B\n"),
        OTHER,
        "",
        None,
    ),
    "cross-constant": (
        _eps,
        "definitions/rmsnorm/rmsnorm_h4096_b.json",
        "",
        None,
    ),
    "model-figures": (
        lambda d, w: paged(d, definition={"tags": ["model:kimi-k2", "tp:1"]}),
        PD,
        "/axes/num_qo_heads/value",
        None,
    ),
    "cross-model": (
        _head_dims,
        "definitions/gqa_paged/zz_d8.json",
        "/axes/head_dim/value",
        None,
    ),
    "op-interface": (
        _inputs("kv_indices", "float32"),
        PD,
        "/inputs/kv_indices/dtype",
        None,
    ),
    "op-unsupported": (_inputs("custom_mask", "bool"), PD, "/name", None),
    "reference-undefined-name": (
        lambda d, w: d.definition(
            reference="def run(A, B, alpha=1.0):\n    return A @ c\n"
        ),
        "definitions/gemm/gemm_n8_k4.json",
        "/reference",
        2,
    ),
    "reference-torch-name": (
        lambda d, w: d.definition(
            reference="import torch\ndef run(A, B, alpha=1.0):\n"
            "    return torch.matmull(A, B)\n"
        ),
        "definitions/gemm/gemm_n8_k4.json",
        "/reference",
        3,
    ),
    "loader-dtype": (
        lambda d, w: d.definition(
            inputs={
                "A": {"shape": ["M", "K"], "dtype": "uint8"},
                "B": {"shape": ["N", "K"], "dtype": "float16"},
                "alpha": {"shape": None, "dtype": "float32", "optional": True},
            }
        ),
        "definitions/gemm/gemm_n8_k4.json",
        "/inputs/A/dtype",
        None,
    ),
}
