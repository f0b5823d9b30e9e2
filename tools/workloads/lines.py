"""The workload lines of a definition and the blobs they point to."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tools.families.spec import Spec
from tools.workloads.captured import Captured, captured_lines
from tools.workloads.choose import choose, keys
from tools.workloads.delta import delta_structure, kept_axes, state_bytes
from tools.workloads.experts import moe_structure
from tools.workloads.rows import (
    pool_structure,
    rope_structure,
    sampling_structure,
)
from tools.workloads.safetensors import vector_file
from tools.workloads.sparse import chosen_structure, table_structure
from tools.workloads.structure import Structure, paged_structure, ragged_structure

BLOB_LIMIT = 64 * 1024
HEADER_ROOM = 512
# A reference holds the logits of one sequence at a time, in float32.
LOGITS_LIMIT = 1024**3
# The same limit for the updated states of a batch, which it holds all at once.
STATES_LIMIT = 1024**3
# A query's list of chosen tokens takes 8 KiB.
CHOSEN_LIMIT = 32
# The same limit for the probabilities of a batch.
PROBS_LIMIT = 1024**3
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "workloads.gen-tests")


@dataclass(frozen=True)
class Line:
    """Hold one workload: its line, and path and bytes of its blob if it has one."""

    text: str
    blob_path: str
    blob: bytes


def workload_lines(spec: Spec) -> list[Line]:
    """Return the definition's workloads."""
    captured = captured_lines(spec.captured_op_type or spec.op_type, spec.captured_from)
    if "A_log" in spec.inputs:
        captured = tuple(replace(c, axes=kept_axes(c.axes)) for c in captured)
    fitting = [line for line in captured if _fits(spec, line.axes)]
    return [_line(spec, line) for line in choose(_without_twins(fitting), spec.name)]


def _without_twins(lines: Iterable[Captured]) -> list[Captured]:
    # Inference repeats itself: of lines with the same axes the first one is kept.
    first: dict[tuple[int, ...], Captured] = {}
    for line in lines:
        first.setdefault(tuple(line.axes.values()), line)
    return list(first.values())


def _fits(spec: Spec, axes: Mapping[str, int]) -> bool:
    if "sparse_indices" in spec.inputs:
        return axes["M"] <= CHOSEN_LIMIT
    if "topk_ids" in spec.inputs:
        pairs = axes["seq_len"] * spec.const("top_k")
        return 4 * pairs + HEADER_ROOM <= BLOB_LIMIT
    if "positions" in spec.inputs:
        return 8 * axes["M"] + HEADER_ROOM <= BLOB_LIMIT
    if "A_log" in spec.inputs:
        state = 4 * spec.const("num_v_heads") * spec.const("head_size") ** 2
        drafts = "intermediate_states_buffer" in spec.inputs
        return state_bytes(axes, state, drafts) <= STATES_LIMIT
    if "state_batch_indices" in spec.inputs:
        state = spec.const("nheads") * spec.const("head_dim") * spec.const("dstate")
        return 4 * axes["batch_size"] * state <= STATES_LIMIT
    if "block_table" in spec.inputs:
        # Every row has room for the longest sequence: 8 times the mean is rare.
        room = 8 * keys(axes) // axes["batch_size"] // spec.const("page_size")
        return 4 * axes["batch_size"] * (room + 1) + HEADER_ROOM <= BLOB_LIMIT
    if "probs" in spec.inputs:
        return 4 * axes["batch_size"] * spec.const("vocab_size") <= PROBS_LIMIT
    if "kv_indptr" not in spec.inputs:
        return True
    batch_size = axes["len_indptr"] - 1
    queries = axes.get("total_q", batch_size)
    logits = 4 * spec.const("num_qo_heads") * queries * keys(axes) // batch_size**2
    indptrs_and_lengths = 3 * axes["len_indptr"]
    blob = 4 * (_pages(spec, axes) + indptrs_and_lengths) + HEADER_ROOM
    return blob <= BLOB_LIMIT and logits <= LOGITS_LIMIT


def _pages(spec: Spec, axes: Mapping[str, int]) -> int:
    if "kv_indices" not in spec.inputs:
        return 0
    page_size = spec.const("page_size")
    # Every sequence may end in a partly filled page.
    partly_filled = axes["len_indptr"] - 1 if page_size > 1 else 0
    return keys(axes) // page_size + partly_filled


def _line(spec: Spec, captured: Captured) -> Line:
    structure = _structure(spec, captured)
    own = spec.captured_from == spec.name
    sm_scale = captured.sm_scale if own else spec.sm_scale
    identity = captured.uuid
    if not own:
        content: list[object] = [
            spec.name,
            sm_scale,
            dict(structure.axes),
            dict(structure.tensors),
        ]
        if structure.scalars:
            content.append(dict(structure.scalars))
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
    dtypes = {name: spec.inputs[name].dtype for name in structure.tensors}
    shapes = {
        name: [_length(spec, structure, axis) for axis in spec.inputs[name].shape or ()]
        for name in structure.tensors
    }
    blob = vector_file(structure.tensors, dtypes, shapes) if path else b""
    return Line(json.dumps(document, separators=(",", ":")), path, blob)


def _structure(spec: Spec, captured: Captured) -> Structure:
    rng = random.Random(f"{spec.name}/{captured.uuid}")
    if "sparse_indices" in spec.inputs:
        made = chosen_structure(
            captured.axes["M"], spec.const("page_size"), spec.const("topk"), rng
        )
    elif "block_table" in spec.inputs:
        made = table_structure(
            captured.axes, spec.const("page_size"), spec.const("topk"), rng
        )
    elif "A_log" in spec.inputs:
        made = delta_structure(captured.axes, rng)
    elif "kv_indices" in spec.inputs:
        made = paged_structure(captured.axes, spec.const("page_size"), rng)
    elif "kv_indptr" in spec.inputs:
        made = ragged_structure(captured.axes, rng)
    elif "positions" in spec.inputs:
        made = rope_structure(captured.axes["M"], rng)
    elif "state_batch_indices" in spec.inputs:
        made = pool_structure(captured.axes["batch_size"], rng)
    elif "probs" in spec.inputs:
        made = sampling_structure(captured.axes["batch_size"], rng)
    elif spec.op_type == "moe":
        made = moe_structure(spec, captured, rng)
    else:
        return Structure(captured.axes, {})
    var_axes = [name for name, axis in spec.axes.items() if axis.value is None]
    return Structure(
        _pick(made.axes, var_axes),
        _pick(made.tensors, spec.inputs),
        _pick(made.scalars, spec.inputs),
    )


def _length(spec: Spec, structure: Structure, axis: str) -> int:
    is_const = spec.axes[axis].value is not None
    return spec.const(axis) if is_const else structure.axes[axis]


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
    if name in structure.scalars:
        return {"type": "scalar", "value": structure.scalars[name]}
    if name in ("sm_scale", "scale"):
        return {"type": "scalar", "value": sm_scale}
    return {"type": "random"}
