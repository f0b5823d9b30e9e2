"""Workloads: each gives its definition's variable axes and inputs, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generator.dataset.definition import Definition, Tensor
from generator.dataset.paths import DatasetFile
from generator.problems import Problem
from generator.problems.messages import did_you_mean, quote, show
from generator.problems.pointer import pointer
from generator.problems.rule import error, warning

WORKLOAD_MISSING = warning(
    "workload-missing",
    "The definition has no workload file.",
    "Add workloads/<op_type>/<name>.jsonl, captured from real inference.",
    "gemm_n8_k4.json without gemm_n8_k4.jsonl",
)
WORKLOAD_DEFINITION = error(
    "workload-definition",
    "A workload names another definition than its file does.",
    "Move the line to its definition's file.",
    '`"definition": "gemm_n8_k5"` in gemm_n8_k4.jsonl',
)
WORKLOAD_DUPLICATE_UUID = error(
    "workload-duplicate-uuid",
    "Two workloads of a file have the same uuid.",
    "Give each workload its own uuid.",
    "a line copied, its axes changed, its uuid not",
)
WORKLOAD_AXIS = error(
    "workload-axis",
    "A workload's axes are not the definition's variable axes.",
    "Give a value to every variable axis and to nothing else.",
    '`"axes": {"M": 3, "N": 8}` where N is a constant',
)
WORKLOAD_INPUT = error(
    "workload-input",
    "A workload's inputs are not the definition's inputs.",
    "Describe every input of the definition and nothing else.",
    "a line without the input `B`",
)
WORKLOAD_INPUT_KIND = error(
    "workload-input-kind",
    "A workload gives a tensor for a scalar input or a scalar for a tensor.",
    "Use scalar exactly for inputs whose shape is null.",
    '`"sm_scale": {"type": "random"}`',
)
WORKLOAD_SCALAR = error(
    "workload-scalar",
    "A scalar's value does not fit the input's dtype.",
    "Write a value of that dtype.",
    '`{"type": "scalar", "value": 0.5}` for an int32',
)


Line = Mapping[str, Any]

INTEGERS: Mapping[str, tuple[int, int]] = {
    "uint8": (0, 255),
    **{f"int{b}": (-(1 << (b - 1)), (1 << (b - 1)) - 1) for b in (8, 16, 32, 64)},
}
"""The least and greatest value of each integer dtype."""


def missing(file: DatasetFile) -> Problem:
    """Return the Problem of a definition file that has no workloads."""
    message = f"The definition has no workloads/{file.op_type}/{file.name}.jsonl, or "
    return WORKLOAD_MISSING.problem(file.path, f"{message}an empty one.")


def check_name(line: Line, name: str, file: str, number: int) -> Iterator[Problem]:
    """Yield a Problem where a line names another definition than the file `name`."""
    if line["definition"] != name:
        message = (
            f"The definition is {quote(line['definition'])}, but the file is named "
            f"{quote(name)}."
        )
        yield WORKLOAD_DEFINITION.problem(
            file, message, pointer="/definition", line=number
        )


def check_uuid(
    line: Line, seen: dict[str, int], file: str, number: int
) -> Iterator[Problem]:
    """Yield a Problem where a line's uuid is in `seen`, which maps uuid to line."""
    uuid = line["workload"]["uuid"]
    first = seen.setdefault(uuid, number)
    if first != number:
        yield WORKLOAD_DUPLICATE_UUID.problem(
            file,
            f"The uuid {quote(uuid)} is also that of line {first}.",
            pointer="/workload/uuid",
            line=number,
        )


def check_axes(
    line: Line, definition: Definition, file: str, number: int
) -> Iterator[Problem]:
    """Yield Problems for variable axes without a value and values without one."""
    given = line["workload"]["axes"]
    wanted = definition.var_axes
    for axis in wanted:
        if axis not in given:
            message = f"The variable axis {quote(axis)} has no value."
            yield WORKLOAD_AXIS.problem(
                file, message, pointer="/workload/axes", line=number
            )
    for axis in given:
        if axis not in wanted:
            constant = axis in definition.axes
            what = "is a constant" if constant else "is not in the definition"
            guess = "" if constant else did_you_mean(axis, wanted)
            yield WORKLOAD_AXIS.problem(
                file,
                f"The axis {quote(axis)} {what}.{guess}",
                pointer=pointer(("workload", "axes", axis)),
                line=number,
            )


def check_inputs(
    line: Line, definition: Definition, file: str, number: int
) -> Iterator[Problem]:
    """Yield Problems for inputs that are missing, unknown or of the wrong kind."""
    given = line["workload"]["inputs"]
    for name, tensor in definition.inputs.items():
        if name in given:
            yield from _check_kind(tensor, given[name], file, number)
        elif not tensor.optional:
            message = f"The input {quote(name)} is missing."
            yield WORKLOAD_INPUT.problem(
                file, message, pointer="/workload/inputs", line=number
            )
    for name in given:
        if name not in definition.inputs:
            guess = did_you_mean(name, definition.inputs)
            yield WORKLOAD_INPUT.problem(
                file,
                f"The input {quote(name)} is not in the definition.{guess}",
                pointer=pointer(("workload", "inputs", name)),
                line=number,
            )


def _check_kind(
    tensor: Tensor, source: Mapping[str, Any], file: str, number: int
) -> Iterator[Problem]:
    is_scalar = tensor.shape is None
    if is_scalar != (source["type"] == "scalar"):
        where = pointer(("workload", "inputs", tensor.name))
        noun = "a scalar" if is_scalar else "a tensor"
        message = f"The input {quote(tensor.name)} is {noun}, not {source['type']}."
        yield WORKLOAD_INPUT_KIND.problem(file, message, pointer=where, line=number)
    elif is_scalar and not _fits(source["value"], tensor.dtype):
        yield WORKLOAD_SCALAR.problem(
            file,
            f"The value of {quote(tensor.name)} is {show(source['value'])}, which is "
            f"no {tensor.dtype}.",
            pointer=pointer(("workload", "inputs", tensor.name, "value")),
            line=number,
        )


def _fits(value: Any, dtype: str) -> bool:
    if dtype == "bool":
        return isinstance(value, bool)
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        return type(value) is int and low <= value <= high
    return type(value) in (int, float)
