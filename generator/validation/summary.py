"""Summarise a definition for the checks that compare definitions."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from generator.dataset.definition import Definition
from generator.ops.registry import op_specs
from generator.rules.constants import read_constant
from generator.rules.cross import Summary
from generator.rules.figures import facts


def summarise(definition: Definition) -> Summary:
    """Return the summary of a definition."""
    spec = op_specs().get(definition.op_type)
    constants = []
    for name in spec.constants if spec is not None else ():
        value = read_constant(definition.reference, name)
        if value is not None:
            constants.append((name, float(value)))
    tags = list(enumerate(definition.tags))
    verified = (index for index, tag in tags if tag == "status:verified")
    prefix = "fi_api:"
    return Summary(
        name=definition.name,
        path=definition.path,
        sha256=definition.sha256,
        geometry=_digest(_geometry(definition)),
        reference=_digest(_code(definition.reference)),
        constants=tuple(constants),
        facts=tuple(facts(definition)),
        fi_apis=tuple((i, t[len(prefix) :]) for i, t in tags if t.startswith(prefix)),
        verified=next(verified, None),
    )


def _geometry(definition: Definition) -> Any:
    tensors = (definition.inputs.values(), definition.outputs.values())
    return (
        definition.op_type,
        [(axis.name, axis.value) for axis in definition.axes.values()],
        [[(t.name, t.shape, t.dtype) for t in group] for group in tensors],
        definition.constraints,
    )


def _code(reference: str) -> list[str]:
    """Return the lines that are not empty and not comments."""
    lines = (line.rstrip() for line in reference.splitlines())
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def _digest(value: Any) -> str:
    text = repr(value).encode("utf-8", "backslashreplace")
    return blake2b(text, digest_size=12).hexdigest()
