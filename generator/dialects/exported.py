"""The interface of a definition as every other dialect writes it."""

from __future__ import annotations

from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dialects.imported import ImportRefused


def interface(
    definition: LoadedDefinition, dialect: str, lost: list[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the axes, and the tensors by `inputs` and `outputs`; add to what is lost.

    Raises Refused for an uint8 tensor, which no other dialect has.
    """
    axes: dict[str, Any] = {}
    for name, axis in definition.axes.items():
        axes[name] = {"type": "var" if axis.value is None else "const"}
        if axis.value is not None:
            axes[name]["value"] = axis.value
        if axis.description:
            axes[name]["description"] = axis.description
    tensors: dict[str, dict[str, Any]] = {"inputs": {}, "outputs": {}}
    for group, specs in zip(
        tensors.values(), (definition.inputs, definition.outputs), strict=True
    ):
        for name, spec in specs.items():
            if spec.dtype == "uint8":
                raise ImportRefused(f"{name} is uint8, which {dialect} does not have")
            if spec.optional:
                lost.append(f"{name} is not optional there")
            if spec.domain:
                lost.append(f"{name} is drawn there as any number, not {spec.domain}")
            shape = None if spec.shape is None else list(spec.shape)
            group[name] = {"shape": shape, "dtype": spec.dtype}
            if spec.description:
                group[name]["description"] = spec.description
    return axes, tensors
