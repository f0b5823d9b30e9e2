"""The workload lines of a definition and the blobs they point to."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.families.spec import Spec
from tools.workloads.captured import Captured, captured_lines
from tools.workloads.choose import choose
from tools.workloads.safetensors import int32_file
from tools.workloads.structure import Structure, paged_structure

BLOB_LIMIT = 64 * 1024
HEADER_ROOM = 512
# A reference holds the logits of one sequence at a time, in float32.
LOGITS_LIMIT = 1024**3
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "workloads.gen-tests")


@dataclass(frozen=True)
class Line:
    """Hold one workload: its line, and path and bytes of its blob if it has one."""

    text: str
    blob_path: str
    blob: bytes


def workload_lines(spec: Spec) -> list[Line]:
    """Return the definition's workloads."""
    captured = captured_lines(spec.op_type, spec.captured_from)
    fitting = [line for line in captured if _fits(spec, line.axes)]
    return [_line(spec, line) for line in choose(fitting, spec.name)]


def _fits(spec: Spec, axes: Mapping[str, int]) -> bool:
    if "kv_indices" not in spec.inputs:
        return True
    batch_size = axes["len_indptr"] - 1
    keys = axes["num_kv_indices"]
    queries = axes.get("total_q", batch_size)
    logits = 4 * spec.const("num_qo_heads") * queries * keys // batch_size**2
    # Every sequence may end in a partly filled page.
    partly_filled = batch_size if spec.const("page_size") > 1 else 0
    pages = keys // spec.const("page_size") + partly_filled
    indptrs_and_lengths = 3 * axes["len_indptr"]
    blob = 4 * (pages + indptrs_and_lengths) + HEADER_ROOM
    return blob <= BLOB_LIMIT and logits <= LOGITS_LIMIT


def _line(spec: Spec, captured: Captured) -> Line:
    structure = _structure(spec, captured)
    own = spec.captured_from == spec.name
    sm_scale = captured.sm_scale if own else spec.sm_scale
    identity = captured.uuid
    if not own:
        content = [spec.name, sm_scale, dict(structure.axes), dict(structure.tensors)]
        identity = str(uuid.uuid5(NAMESPACE, json.dumps(content)))
    path = _blob_path(spec, identity) if structure.tensors else ""
    document = {
        "definition": spec.name,
        "solution": None,
        "workload": {
            "uuid": identity,
            "axes": structure.axes,
            "inputs": {
                name: _input(name, structure, path, sm_scale) for name in spec.inputs
            },
        },
        "evaluation": None,
    }
    blob = int32_file(structure.tensors) if path else b""
    return Line(json.dumps(document, separators=(",", ":")), path, blob)


def _structure(spec: Spec, captured: Captured) -> Structure:
    if "kv_indices" not in spec.inputs:
        return Structure(captured.axes, {})
    rng = random.Random(f"{spec.name}/{captured.uuid}")
    made = paged_structure(captured.axes, spec.const("page_size"), rng)
    var_axes = [name for name, axis in spec.axes.items() if axis.value is None]
    return Structure(_pick(made.axes, var_axes), _pick(made.tensors, spec.inputs))


def _pick(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _blob_path(spec: Spec, identity: str) -> str:
    folder = f"blob/workloads/{spec.op_type}/{spec.name}"
    return f"{folder}/{spec.name}_{identity.replace('-', '')}.safetensors"


def _input(
    name: str, structure: Structure, path: str, sm_scale: float | None
) -> dict[str, Any]:
    if name in structure.tensors:
        return {"type": "safetensors", "path": f"./{path}", "tensor_key": name}
    if name == "sm_scale":
        return {"type": "scalar", "value": sm_scale}
    return {"type": "random"}
