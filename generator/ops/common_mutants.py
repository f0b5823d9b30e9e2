"""Domain mutants of every op: outputs that are zero, negated, scaled, moved or stale."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial, wraps
from typing import Any

import torch

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    Outputs,
    Run,
    changed,
    on_inputs,
    on_outputs,
    shifted,
    with_output,
    zeroed,
)
from kernel_judge.definition import Definition, TensorSpec
from kernel_judge.inputs.trial import as_tuple

_LONG_FLOATS = ("float64", "float32", "float16", "bfloat16")


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of each output tensor, and the one with stale outputs."""
    defects = [DomainMutant("outputs stale from the last call", _stale)]
    for place, (name, spec) in enumerate(definition.interface.output_specs.items()):
        if spec.shape is None:
            continue
        defects.append(_on_one(definition, place, f"{name} zero", torch.zeros_like))
        if spec.dtype != "bool":
            defects.append(_on_one(definition, place, f"{name} negated", _negated))
        # in shorter floats 1 % is within one rounding
        if spec.dtype in _LONG_FLOATS:
            defects.append(
                _on_one(definition, place, f"{name} 1 % too large", _one_percent_more)
            )
        for axis, (axis_name, many) in enumerate(_axes(definition, spec)):
            if many:
                defects += _along(definition, place, name, axis, axis_name)
    if len(definition.interface.outputs) > 1:
        defects.append(on_outputs(definition, "outputs swapped", lambda o, _: o[::-1]))
    return tuple(defects)


def rounded_inputs(
    definition: Definition, lossless: Collection[str] = ()
) -> tuple[DomainMutant, ...]:
    """Return mutants that round one float32 input to bfloat16.

    Skips output buffers, and the inputs in `lossless`, whose values bfloat16 holds.
    """
    return tuple(
        on_inputs(definition, f"{name} rounded to bfloat16", partial(_rounded, name))
        for name, spec in definition.interface.input_specs.items()
        if spec.dtype == "float32"
        and spec.shape
        and not name.endswith("_buffer")
        and name not in lossless
    )


def _rounded(name: str, inputs: Inputs) -> dict[str, Any]:
    value = inputs[name]
    return {} if value is None else {name: value.bfloat16().float()}


def _axes(definition: Definition, spec: TensorSpec) -> list[tuple[str, bool]]:
    """Return an output's axes, each with whether it can be longer than 1."""
    return [(axis, definition.axes.get(axis, 2) > 1) for axis in spec.shape or ()]


def _along(
    definition: Definition, place: int, name: str, axis: int, axis_name: str
) -> list[DomainMutant]:
    """Return mutants that zero the last slice along an axis, or shift all slices."""
    # two axes of one output may share a name
    of = f"{name} along {axis_name}"
    if axis and _names(definition, place).count(axis_name) > 1:
        of = f"{of} (axis {axis})"
    return [
        _on_one(
            definition, place, f"{of}: the last zero", lambda o: zeroed(o, axis, -1)
        ),
        _on_one(definition, place, f"{of}: shifted by one", lambda o: shifted(o, axis)),
    ]


def _names(definition: Definition, place: int) -> tuple[str, ...]:
    spec = list(definition.interface.output_specs.values())[place]
    return spec.shape or ()


def _on_one(definition: Definition, place: int, name: str, change: Any) -> DomainMutant:
    return on_outputs(
        definition,
        name,
        lambda outputs, _: with_output(outputs, place, change(outputs[place])),
    )


def _negated(output: torch.Tensor) -> torch.Tensor:
    # torch has no arithmetic for float8
    short = output.is_floating_point() and output.dtype.itemsize == 1
    return (-output.float()).to(output.dtype) if short else -output


def _one_percent_more(output: torch.Tensor) -> torch.Tensor:
    return (output.float() * 1.01).to(output.dtype)


def _stale(run: Run) -> Run:
    """Return a run() whose calls return the values of the previous call.

    The first call is correct. Later ones return the old values in the new shape, as a
    reused buffer would hold them.
    """
    last: list[Outputs] = []

    @wraps(run)
    def wrong(*arguments: Any) -> Any:
        returned = run(*arguments)
        before = last[0] if last else None
        last[:] = [as_tuple(returned)]
        if before is None:
            return returned
        return changed(
            returned,
            lambda outputs: tuple(
                _as_large(old, new) if isinstance(new, torch.Tensor) else old
                for old, new in zip(before, outputs, strict=True)
            ),
        )

    return wrong


def _as_large(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Return the old values in the shape of `new`, cut or padded with zeros."""
    buffer = torch.zeros_like(new).reshape(-1)
    count = min(old.numel(), buffer.numel())
    buffer[:count] = old.reshape(-1)[:count]
    return buffer.view(new.shape)
