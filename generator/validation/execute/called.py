"""Inside the sandbox: call one `run()`, and report its defects.

The code that it calls may take over the process. Its report is about one definition
only, and can add Problems but not remove any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from generator.ops.op_values import op_of
from generator.rules.runtime_rules import (
    EXECUTE_DEVICE,
    EXECUTE_DTYPE,
    EXECUTE_GUESSED,
    EXECUTE_NOT_RUN,
    EXECUTE_OUTPUTS,
    EXECUTE_RAISED,
    EXECUTE_SHAPE,
    EXECUTE_WRITES,
)
from generator.validation.execute.at_workloads import at_workloads
from generator.validation.execute.said import SOURCE, Said, line_of, shown
from kernel_judge.definition import Case, Definition, Interface
from kernel_judge.inputs.lazy_weights import Tiled
from kernel_judge.inputs.memory import dtype_of, shape_of, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import RUN_SEED, as_tuple, same_bits, seed
from kernel_judge.obstacle import Kind
from kernel_judge.reference import load_run
from kernel_judge.skipping import Skip, skip
from kernel_judge.subject import Op

MAX_BYTES = 3 << 30
"""Bytes of inputs and outputs; a case that needs more is not called."""
_LARGE = 32
"""A call whose inputs are this part of the memory may need all of it."""
_COMPARED = 8 << 20
"""Bytes of an input that is compared bit by bit with what was given."""


def call(job: Mapping[str, Any]) -> list[Said]:
    """Return the defects of a definition; `job` is what `run.job_of` made."""
    definition = Definition(
        job["name"],
        job["op_type"],
        Interface(job["inputs"], job["outputs"], tuple(job["constraints"])),
        job["axes"],
        job["constants"],
    )
    op = op_of(definition.op_type) if job["is_served"] else Op(guesses_inputs=True)
    defects = _on_the_smallest(job, definition, op)
    is_over = any(rule != EXECUTE_WRITES.id for rule, _, _ in defects)
    if is_over or job["workloads"] == "none":
        return defects
    return [*defects, *at_workloads(job, definition, op)]


def _on_the_smallest(
    job: Mapping[str, Any], definition: Definition, op: Op
) -> list[Said]:
    """Return the defects that one call on the smallest case shows."""
    try:
        case, inputs = _inputs(definition, op)
    except Skip as error:
        return [(EXECUTE_NOT_RUN.id, f"It was not called: {error}.", None)]
    except Exception as error:  # noqa: BLE001 - the definition's axes may be anything
        reason = f"no inputs could be made ({shown(error)})"
        return [(EXECUTE_NOT_RUN.id, f"It was not called: {reason}.", None)]
    try:
        versions = {n: v._version for n, v in inputs.items() if _is_tensor(v)}
        returned, passed = _called(job["reference"], inputs)
    except BaseException as error:  # noqa: BLE001 - SystemExit is no answer either
        limit = job["memory_bytes"]
        if lacks_memory(error, inputs, limit):
            why = f"It needs more than the {limit / 2**30:.0f} GiB of the sandbox"
            return [(EXECUTE_NOT_RUN.id, f"{why}: {shown(error)}.", None)]
        rule, what = EXECUTE_RAISED.id, f"`run` raised {shown(error)}."
        if not job["is_served"]:
            rule, what = EXECUTE_GUESSED.id, f"On guessed inputs {what}"
        return [(rule, what, line_of(error))]
    axes = {**definition.axes, **case.axes}
    return [
        *_wrong_outputs(definition.interface, axes, returned),
        *(
            (EXECUTE_WRITES.id, f"`run` wrote to its input `{name}`.", None)
            for name in _written(versions, inputs, passed)
            if name not in job["filled"]
        ),
    ]


def _inputs(definition: Definition, op: Op) -> tuple[Case, dict[str, Any]]:
    """Return the smallest case and its inputs, large weights as zeros.

    Raises what the op's functions raise, and Skip where it is too large.
    """
    small = [case for case in op.cases(definition) if case.size == "small"]
    case = min(small, key=lambda case: tensor_bytes(definition, case))
    drawn = op.make_inputs(definition, case, Stream(definition.name, case.name))
    inputs = {name: _plain(value) for name, value in drawn.items()}
    axes = {**definition.axes, **case.axes}
    needed = sum(
        value.untyped_storage().nbytes()
        for value in inputs.values()
        if isinstance(value, torch.Tensor)
    )
    for spec in definition.interface.output_specs.values():
        needed += math.prod(shape_of(spec, axes)) * dtype_of(spec.dtype).itemsize
    if needed > MAX_BYTES:
        skip(Kind.NEEDS_MEMORY, f"its tensors have {needed / 2**30:.1f} GiB")
    return case, inputs


def _plain(value: Any) -> Any:
    """Return zeros for weights that are not made yet; all experts share them."""
    if not isinstance(value, Tiled):
        return value
    return torch.zeros((1, *value.shape[1:]), dtype=value.dtype).expand(value.shape)


def _called(
    reference: str, inputs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Execute the text and call its `run`; return the outputs and the inputs given."""
    passed = {
        name: value.clone() if _is_compared(value) else value
        for name, value in inputs.items()
    }
    run = load_run(reference, SOURCE)
    seed(RUN_SEED)
    return as_tuple(run(*passed.values())), passed


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_compared(value: Any) -> bool:
    return _is_tensor(value) and value.nbytes <= _COMPARED


def _wrong_outputs(
    interface: Interface, axes: Mapping[str, int], returned: Sequence[Any]
) -> Iterator[Said]:
    specs = interface.output_specs
    if len(returned) != len(specs):
        what = f"`run` returned {len(returned)} values, declared are {len(specs)}."
        yield EXECUTE_OUTPUTS.id, what, None
        return
    for (name, spec), output in zip(specs.items(), returned, strict=True):
        if spec.shape is None:
            if not isinstance(output, (bool, int, float)):
                kind = type(output).__name__
                yield EXECUTE_OUTPUTS.id, f"`{name}` is a {kind}, no scalar.", None
            continue
        if not isinstance(output, torch.Tensor):
            kind = type(output).__name__
            yield EXECUTE_OUTPUTS.id, f"`{name}` is a {kind}, no tensor.", None
            continue
        declared, actual = shape_of(spec, axes), tuple(output.shape)
        if actual != declared:
            sizes = ", ".join(f"{axis} {axes[axis]}" for axis in spec.shape)
            what = f"`{name}` is {list(actual)}, declared {list(declared)} ({sizes})."
            yield EXECUTE_SHAPE.id, what, None
        if output.dtype != dtype_of(spec.dtype):
            what = f"`{name}` is {output.dtype}, declared {spec.dtype}."
            yield EXECUTE_DTYPE.id, what, None
        if output.device.type != "cpu":
            what = f"`{name}` is on {output.device}, the inputs on cpu."
            yield EXECUTE_DEVICE.id, what, None


def _written(
    versions: Mapping[str, int], inputs: Mapping[str, Any], passed: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the names of the inputs that `run` wrote to.

    Large ones are not copied: torch counts what is done to a tensor in place.
    """
    for name, version in versions.items():
        if passed[name] is inputs[name]:
            if inputs[name]._version != version:
                yield name
        elif not same_bits(inputs[name], passed[name]):
            yield name


def lacks_memory(error: BaseException, inputs: Mapping[str, Any], limit: int) -> bool:
    """Return whether an allocation failed because a call is large for a limit of bytes.

    One on small inputs that fills memory is at fault itself.
    """
    failed = isinstance(error, MemoryError) or "can't allocate memory" in shown(error)
    size = sum(v.nbytes for v in inputs.values() if isinstance(v, torch.Tensor))
    return failed and size * _LARGE > limit
