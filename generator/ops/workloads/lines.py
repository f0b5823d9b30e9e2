"""The workload lines of a definition and the blobs they point to."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from generator.ops.family import Spec, definition_json
from generator.ops.workloads.captured import CapturedWorkload, captured_lines
from generator.ops.workloads.choose import choose
from generator.ops.workloads.safetensors import vector_file
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.traffic import Step
from generator.problems import Failure

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "workloads.gen-tests")


@dataclass(frozen=True)
class WorkloadLine:
    """One workload: its line, and path and bytes of its blob if it has one."""

    text: str
    blob_path: str
    blob: bytes


def workload_lines(spec: Spec) -> list[WorkloadLine]:
    """Return the definition's workloads. Raises Failure where nothing was captured."""
    op_type = spec.captured_op_type or spec.op_type
    try:
        captured = captured_lines(op_type, spec.captured_from)
    except Failure as error:
        raise Failure(f"{spec.name}: {error}") from error
    if spec.kept_axes is not None:
        axes = spec.kept_axes
        captured = tuple(replace(c, axes=_pick(c.axes, axes)) for c in captured)
    fitting = [line for line in captured if spec.fits(spec, line)]
    chosen = choose(_without_twins(fitting), spec.name)
    steps = [step for step in spec.traffic(spec) if spec.fits(spec, step)]
    return [_line(spec, line) for line in (*chosen, *steps)]


def spec_files(spec: Spec) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of a definition, its workloads and their blobs."""
    stem = f"{spec.op_type}/{spec.name}"
    yield f"definitions/{stem}.json", definition_json(spec).encode()
    lines = workload_lines(spec)
    yield f"workloads/{stem}.jsonl", "".join(f"{one.text}\n" for one in lines).encode()
    yield from ((line.blob_path, line.blob) for line in lines if line.blob_path)


def _without_twins(lines: Iterable[CapturedWorkload]) -> list[CapturedWorkload]:
    # Inference repeats itself: of lines with the same axes the first one is kept.
    first: dict[tuple[int, ...], CapturedWorkload] = {}
    for line in lines:
        first.setdefault(tuple(line.axes.values()), line)
    return list(first.values())


def _line(spec: Spec, captured: CapturedWorkload) -> WorkloadLine:
    structure = _structure(spec, captured)
    is_captured = spec.captured_from == spec.name and not isinstance(captured, Step)
    sm_scale = captured.sm_scale if is_captured else spec.sm_scale
    identity = captured.uuid
    # of a pass that was not causal the keys of the queries are added: not as captured
    axes = {name: structure.axes.get(name, n) for name, n in captured.axes.items()}
    if not is_captured or axes != dict(captured.axes):
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
    return WorkloadLine(json.dumps(document, separators=(",", ":")), path, blob)


def _structure(spec: Spec, captured: CapturedWorkload) -> Structure:
    rng = random.Random(f"{spec.name}/{captured.uuid}")
    structure = spec.structure(spec, captured, rng)
    var_axes = [name for name, axis in spec.axes.items() if axis.value is None]
    return Structure(
        _pick(structure.axes, var_axes),
        _pick(structure.tensors, spec.inputs),
        _pick(structure.scalars, spec.inputs),
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
