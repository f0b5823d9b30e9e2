"""Checks of `run()` alone: its parameters, what it returns, what it leaves untouched."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from kernel_judge.checked import Compared, Defect, check
from kernel_judge.checks.pairs import Pair, compared, pairs, results
from kernel_judge.comparison.policy import Repeating
from kernel_judge.inputs.lazy_weights import on_cpu
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.trial import Trial, as_tuple, same_bits, seed
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip
from kernel_judge.source_names import METAMORPHIC
from kernel_judge.subject import Subject


@check
def contract(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """`run()` takes the inputs in order, and the definition's constraints hold."""
    parameters = inspect.signature(subject.run).parameters.values()
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    inputs = list(subject.interface.input_specs)
    if positional != inputs:
        raise Defect("run() is called with the inputs positionally")
    if list(trial.inputs) != inputs:
        raise Defect("make_inputs() serves another interface")
    broken = trial.broken_constraints()
    if broken and trial.guessed:
        reason = f"UNRESOLVED: guessed inputs break constraints: {broken}"
        skip(Kind.UNRESOLVED, reason)
    if broken:
        raise Defect(f"constraints that do not hold: {broken}")
    yield from ()


@check
def output_shape(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """The outputs have the declared number and shapes."""
    axes = {**trial.definition.axes, **trial.case.axes}
    specs = subject.interface.output_specs
    if len(trial.outputs) != len(specs):
        raise Defect(
            f"run() returned {len(trial.outputs)} values, "
            f"the definition declares {len(specs)}"
        )
    for (name, spec), output in zip(specs.items(), trial.outputs, strict=True):
        expected = shape_of(spec, axes)
        actual = tuple(getattr(output, "shape", ()))
        if actual != expected:
            raise Defect(f"{name} is {actual}, declared {expected}")
    yield from ()


@check
def output_dtype(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """The outputs have the declared dtypes."""
    specs = subject.interface.output_specs
    for (name, spec), output in zip(specs.items(), trial.outputs, strict=True):
        if spec.shape is None:
            if not isinstance(output, (bool, int, float)):
                raise Defect(f"{name} is a {type(output).__name__}")
        elif output.dtype != dtype_of(spec.dtype):
            raise Defect(f"{name} is {output.dtype}, declared {dtype_of(spec.dtype)}")
    yield from ()


@check
def determinism(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """A second call on the same inputs returns the same bits."""
    repeated = trial.repeat()
    if len(repeated) != len(trial.outputs):
        raise Defect(f"a second call returned {len(repeated)} values")
    for name, first, second in zip(
        subject.interface.output_specs, trial.outputs, repeated, strict=True
    ):
        if not same_bits(first, second):
            raise Defect(f"{name} differs between two calls")
    yield from ()


@check
def inputs_unmodified(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """`run()` does not write to its inputs, but for those that it is to fill."""
    filled = subject.filled(trial.inputs)
    names = [name for name in trial.modified_inputs if name not in filled]
    if names:
        raise Defect(f"run() writes to {', '.join(names)}")
    yield from ()


@check
def strided_inputs(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """On views of wider buffers `run()` returns the same, and writes to nothing between.

    That is the same bits on a CPU; on a GPU, where cuBLAS chooses by alignment, what is
    within the tolerances. Skipped where `run()` raises on views.
    """
    expected = (*trial.outputs, *(trial.after(n) for n in trial.modified_inputs))
    try:
        returned, wrote = trial.on_views()
    except (RuntimeError, ValueError) as error:
        kind = type(error).__name__
        skip(Kind.NO_CASE, f"run() takes no views: {kind}: {error}")
    if wrote:
        raise Defect(f"run() writes beside the rows of {', '.join(wrote)}")
    names = [*subject.interface.output_specs, *trial.modified_inputs]
    if not len(names) == len(returned) == len(expected):
        raise Defect(f"on views run() returned {len(returned)} values")
    for name, first, second in zip(names, expected, returned, strict=True):
        if trial.device.type == "cpu":
            if not same_bits(first, second):
                raise Defect(f"{name} differs where the inputs are views")
        else:
            pair = Pair(name, second, first, f"{METAMORPHIC}strided")
            yield compared(subject, trial, pair)


@check
def matches_cpu(subject: Subject, trial: Trial) -> Iterator[Compared]:
    """On a CPU `run()` returns what it does on the GPU, within the tolerances.

    Skipped without a GPU, and where it draws samples, which a GPU draws otherwise.
    """
    if trial.device.type != "cuda":
        skip(Kind.NEEDS_CUDA, f"it runs on {trial.device.type} alone")
    if any(isinstance(p, Repeating) for p in subject.op.policies.values()):
        skip(Kind.NO_CASE, "it draws samples, and a GPU draws others")

    def run(is_whole: bool) -> tuple[Any, ...]:
        inputs = {n: on_cpu(v, is_whole) for n, v in trial.inputs.items()}
        seed(trial.run_seed)
        outputs = as_tuple(subject.run(*inputs.values()))
        return outputs + tuple(inputs[name] for name in subject.filled(trial.inputs))

    try:
        # to make weights of many experts takes longer than all else
        expected = run(False)
    except RuntimeError:
        expected = run(True)
    source = f"{METAMORPHIC}cpu"
    for pair in pairs(subject, trial, results(subject, trial), expected, source):
        yield compared(subject, trial, pair)
