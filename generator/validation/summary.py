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
    # a definition whose name states a constant is no mistaken twin of another
    stated = spec.stated(definition.name) if spec is not None else {}
    read = {
        name: read_constant(definition.reference, name)
        for name in (spec.constants if spec is not None else ())
        if name not in stated
    }
    tags = [
        (index, *tag.partition(":")[::2]) for index, tag in enumerate(definition.tags)
    ]
    verified = (i for i, key, value in tags if (key, value) == ("status", "verified"))
    return Summary(
        name=definition.name,
        path=definition.path,
        sha256=definition.sha256,
        geometry=_digest(_geometry(definition)),
        reference=_digest(_code(definition.reference)),
        constants=tuple((n, float(v)) for n, v in read.items() if v is not None),
        facts=tuple(facts(definition)),
        fi_apis=tuple((i, value) for i, key, value in tags if key == "fi_api"),
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
