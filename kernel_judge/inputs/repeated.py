"""Long axes at a low price: slices along one axis repeat, and the oracle sees few.

Only for ops whose slices along the axis do not depend on each other. The number of
distinct slices is no power of two, so that a kernel which reads slice i - 2^k instead of i
reads another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from kernel_judge.definition import Case, Definition, TensorSpec
from kernel_judge.inputs.moved import moved
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs, MakeInputs, Trial

DISTINCT = 61


def repeated_inputs(
    make_inputs: MakeInputs, definition: Definition, case: Case, stream: Stream
) -> Inputs:
    """Return the inputs of a case; of one that repeats, slice i is slice i mod 61.

    Those that the case moves are multiplied by their powers of two.
    """
    if not case.repeats:
        return moved(make_inputs(definition, case, stream), case.moved)
    inputs = make_inputs(definition, shortened(case), stream)
    return repeated(inputs, definition.interface.input_specs, case)


def shortened(case: Case) -> Case:
    """Return the case of the distinct slices alone; one that repeats none, as it is."""
    if not case.repeats:
        return case
    return replace(case, axes={**case.axes, case.repeats: DISTINCT}, repeats="")


def repeated(
    values: Mapping[str, Any], specs: Mapping[str, TensorSpec], case: Case
) -> Inputs:
    """Return values of the distinct slices as those of the whole case that repeats them."""
    axis = case.repeats
    order = torch.arange(case.axes[axis]) % DISTINCT
    return {
        name: _taken(value, specs[name], axis, DISTINCT, order)
        for name, value in values.items()
    }


def sampled(trial: Trial) -> Trial:
    """Return a trial of few slices of one that repeats, else the trial itself.

    Its `run()` is that of all slices, of which these are taken: those around each power of
    two, and the last.
    """
    case, axis = trial.case, trial.case.repeats
    if not axis:
        return trial
    interface = trial.definition.interface
    length = case.axes[axis]
    order = positions(length)

    def few(definition: Definition, case: Case, stream: Stream) -> Inputs:
        specs = interface.input_specs
        return {
            name: _taken(value, specs[name], axis, length, order)
            for name, value in trial.inputs.items()
        }

    def run(*inputs: Any) -> tuple[Any, ...]:
        specs = [*interface.output_specs.values()]
        specs += [TensorSpec(None, "")] * (len(trial.outputs) - len(specs))
        return tuple(
            _taken(value, spec, axis, length, order)
            for value, spec in zip(trial.outputs, specs, strict=False)
        )

    short = replace(case, axes={**case.axes, axis: len(order)}, repeats="")
    maps = trial.error_maps
    return Trial(trial.definition, short, trial.device, few, run, error_maps=maps)


def positions(length: int) -> torch.Tensor:
    """Return the slices of an axis that the oracle sees: int64, ascending."""
    chosen = {0, length - 1}
    for power in (1 << k for k in range(length.bit_length())):
        chosen |= {p for p in (power - 1, power, power + 1) if p < length}
    return torch.tensor(sorted(chosen))


def _taken(
    value: Any, spec: TensorSpec, axis: str, length: int, order: torch.Tensor
) -> Any:
    """Return these slices of a tensor along an axis, any dtype; of others, the value.

    One whose axis does not have the length is left for `compare` to refuse.
    """
    for dim, name in enumerate(spec.shape or ()):
        if name != axis:
            continue
        if not isinstance(value, torch.Tensor) or value.shape[dim : dim + 1] != (
            length,
        ):
            return value
        # by bits: not every operation knows float8
        is_short = value.is_floating_point() and value.dtype.itemsize == 1
        bits = value.view(torch.uint8) if is_short else value
        value = bits.index_select(dim, order.to(value.device)).view(value.dtype)
    return value
