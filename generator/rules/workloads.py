"""Workloads: each gives its definition's variable axes and inputs, and no others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from generator.dataset.definition import LoadedDefinition, LoadedTensor
from generator.dataset.model_figures import model_figures
from generator.problems import Problem, error, warning
from generator.problems.messages import did_you_mean, quote, show

WORKLOAD_MISSING = warning("""workload-missing: The definition has no workload file.
    Fix: Add workloads/<op_type>/<name>.jsonl, captured from real inference.
    Finds: gemm_n8_k4.json without gemm_n8_k4.jsonl""")
WORKLOAD_DEFINITION = error("""workload-definition: A workload names another definition
    than its file does.
    Fix: Move the line to its definition's file.
    Finds: `"definition": "gemm_n8_k5"` in gemm_n8_k4.jsonl""")
WORKLOAD_DUPLICATE_UUID = error("""workload-duplicate-uuid: Two workloads of a file have
    the same uuid.
    Fix: Give each workload its own uuid.
    Finds: a line copied, its axes changed, its uuid not""")
WORKLOAD_AXIS = error("""workload-axis: A workload's axes are not the definition's
    variable axes.
    Fix: Give a value to every variable axis and to nothing else.
    Finds: `"axes": {"M": 3, "N": 8}` where N is a constant""")
WORKLOAD_INPUT = error("""workload-input: A workload's inputs are not the definition's
    inputs.
    Fix: Describe every input of the definition and nothing else.
    Finds: a line without the input `B`""")
WORKLOAD_INPUT_KIND = error("""workload-input-kind: A workload gives a tensor for a
    scalar input or a scalar for a tensor.
    Fix: Use scalar exactly for inputs whose shape is null.
    Finds: `"sm_scale": {"type": "random"}`""")
WORKLOAD_SCALAR = error("""workload-scalar: A scalar's value does not fit the input's
    dtype.
    Fix: Write a value of that dtype.
    Finds: `{"type": "scalar", "value": 0.5}` for an int32""")
WORKLOAD_SCALE = warning("""workload-scale: The softmax scale of a workload is not that
    of a tagged model, which YaRN may have changed.
    Fix: Take 1 / sqrt(d) times (0.1 * mscale_all_dim * ln(factor) + 1) squared.
    Finds: 0.0722 for kimi-k2, whose factor of 32 makes it 0.1309""")

INTEGERS: Mapping[str, tuple[int, int]] = {
    "uint8": (0, 255),
    **{f"int{b}": (-(1 << (b - 1)), (1 << (b - 1)) - 1) for b in (8, 16, 32, 64)},
}
"""The least and greatest value of each integer dtype."""

_GREATEST: Mapping[str, float] = {
    "float32": 3.4028234663852886e38,
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "float4_e2m1": 6.0,
}
"""The greatest finite value of each dtype of floats."""

_SCALE = "sm_scale"


def check_identity(
    line: Mapping[str, Any], name: str, seen: dict[str, int], number: int
) -> Iterator[Problem]:
    """Yield Problems where a line is not of the definition `name`, or its uuid is not new.

    `seen` maps the uuids of lines before to their numbers.
    """
    if line["definition"] != name:
        message = (
            f"The definition is {quote(line['definition'])}, but the file is named "
        )
        yield WORKLOAD_DEFINITION.at(f"{message}{quote(name)}.", "definition")
    uuid = line["workload"]["uuid"]
    first = seen.setdefault(uuid, number)
    if first != number:
        message = f"The uuid {quote(uuid)} is also that of line {first}."
        yield WORKLOAD_DUPLICATE_UUID.at(message, "workload", "uuid")


def check_form(
    workload: Mapping[str, Any], definition: LoadedDefinition
) -> Iterator[Problem]:
    """Yield Problems for axes and inputs that are missing, unknown or of another kind."""
    stated, wanted = workload["axes"], definition.var_axes
    for axis in wanted:
        if axis not in stated:
            message = f"The variable axis {quote(axis)} has no value."
            yield WORKLOAD_AXIS.at(message, "workload", "axes")
    for axis in stated:
        if axis not in wanted:
            what = f"is not in the definition.{did_you_mean(axis, wanted)}"
            if axis in definition.axes:
                what = "is a constant."
            message = f"The axis {quote(axis)} {what}"
            yield WORKLOAD_AXIS.at(message, "workload", "axes", axis)
    sources = workload["inputs"]
    for name, tensor in definition.inputs.items():
        if name in sources:
            yield from _check_kind(tensor, sources[name])
            if name == _SCALE:
                yield from _check_scale(definition, sources[name])
        elif not tensor.optional:
            message = f"The input {quote(name)} is missing."
            yield WORKLOAD_INPUT.at(message, "workload", "inputs")
    for name in sources:
        if name not in definition.inputs:
            guess = did_you_mean(name, definition.inputs)
            message = f"The input {quote(name)} is not in the definition.{guess}"
            yield WORKLOAD_INPUT.at(message, "workload", "inputs", name)


def _check_kind(tensor: LoadedTensor, source: Mapping[str, Any]) -> Iterator[Problem]:
    is_scalar = tensor.shape is None
    if is_scalar != (source["type"] == "scalar"):
        noun = "a scalar" if is_scalar else "a tensor"
        message = f"The input {quote(tensor.name)} is {noun}, not {source['type']}."
        yield WORKLOAD_INPUT_KIND.at(message, "workload", "inputs", tensor.name)
    elif is_scalar and not _fits(source["value"], tensor.dtype):
        message = (
            f"The value of {quote(tensor.name)} is {show(source['value'])}, which "
        )
        where = ("workload", "inputs", tensor.name, "value")
        yield WORKLOAD_SCALAR.at(f"{message}is no {tensor.dtype}.", *where)


def _check_scale(
    definition: LoadedDefinition, source: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield a Problem if the softmax's scale is that of no model that a tag names."""
    value = source.get("value")
    if not isinstance(value, (int, float)):
        return
    known = {
        model: model_figures()[model]["softmax_scale"]
        for model in definition.tag_values("model")
        if "softmax_scale" in model_figures().get(model, {})
    }
    if known and not any(math.isclose(value, k, rel_tol=1e-5) for k in known.values()):
        scales = ", ".join(f"{k:.7g} for {model}" for model, k in known.items())
        yield WORKLOAD_SCALE.at(
            f"sm_scale is {value:.7g}, but {scales}.",
            "workload",
            "inputs",
            _SCALE,
            "value",
        )


def _fits(value: Any, dtype: str) -> bool:
    if dtype == "bool":
        return isinstance(value, bool)
    if dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        return type(value) is int and low <= value <= high
    return type(value) in (int, float) and abs(value) <= _GREATEST[dtype]
