"""What is kept of each op_type: tests/golden/<op_type>.json, found by its name.

Such a file has `definitions`, `references` and `blobs`, numbers of what the family
makes; `inputs`, one definition of each interface with the axes that are shorter in the
tests and a hash of the inputs of each small case; `mutants`, definitions with the axes
on which every mutant is tried; `too_large`, definitions whose small cases need a GPU.
update.py writes the numbers and hashes, and adds an interface that is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generator.ops.family import Spec, every_spec
from generator.ops.registry import op_module
from generator.ops.workloads.lines import workload_lines
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.recording.fingerprint import input_hashes
from tests.builders import sized

GOLDEN = Path(__file__).resolve().parent
KEPT: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted(GOLDEN.glob("*.json"))
}


def kept(key: str) -> dict[str, Any]:
    """Return what the files of all op_types have under a key, by definition."""
    return {k: v for one in KEPT.values() for k, v in one.get(key, {}).items()}


INTERFACES: dict[str, dict[str, int]] = {
    name: value["axes"] for name, value in kept("inputs").items()
}
"""One definition of each op_type and interface: its name, and its shorter axes."""


def hashes_of(name: str, axes: Mapping[str, int]) -> dict[str, str]:
    """Return one hash for all inputs of each small case of a definition."""
    definition = sized(name, **axes)
    op = op_module(definition.op_type)
    found = {}
    for case in op.cases(definition):
        if case.size == "small":
            inputs = op.make_inputs(definition, case, Stream(name, case.name))
            text = json.dumps(input_hashes(inputs))
            found[case.name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def made() -> dict[str, str]:
    """Return the text of each op_type's file as it is to be, by the file's name."""
    specs: dict[str, list[Spec]] = {}
    for spec in every_spec():
        specs.setdefault(spec.op_type, []).append(spec)
    return {
        f"{op_type}.json": json.dumps(_made(family, KEPT.get(op_type, {})), indent=1)
        + "\n"
        for op_type, family in specs.items()
    }


def _made(family: list[Spec], before: Mapping[str, Any]) -> dict[str, Any]:
    axes = {name: value["axes"] for name, value in before.get("inputs", {}).items()}
    inputs = {spec.name: tuple(spec.inputs) for spec in family}
    for name, interface in inputs.items():
        if interface not in {inputs[other] for other in axes}:
            axes[name] = {}
    lines = [line for spec in family for line in workload_lines(spec)]
    found = {
        "definitions": len(family),
        "references": len({str(spec.reference) for spec in family}),
        "blobs": sum(bool(line.blob_path) for line in lines),
        "inputs": {
            name: {"axes": axes[name], "cases": hashes_of(name, axes[name])}
            for name in sorted(axes)
        },
        "mutants": before.get("mutants") or axes,
    }
    return {**found, **{key: before[key] for key in before if key not in found}}
