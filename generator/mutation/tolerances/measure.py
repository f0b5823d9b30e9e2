"""Measure one definition: its reference as written, in float64, and its sources.

The pairs that are measured are those that the checks compare.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from generator.dataset.definition import LoadedDefinition
from generator.mutation.tolerances.floor import measured
from generator.mutation.tolerances.result import (
    EXACTLY,
    LAW,
    ORACLE,
    Floors,
    Measured,
    SourceFloor,
)
from generator.mutation.tolerances.widened import run_widened
from generator.ops.geometry import unrounded
from generator.rules.subjects import subject_of
from generator.running.free_memory import available_bytes, needed_bytes
from kernel_judge.checks.pairs import Pair
from kernel_judge.checks.recorded import recorded_pairs
from kernel_judge.checks.sources import oracle_pairs
from kernel_judge.comparison.tolerance import EXACT, RECORDED, Tolerance, of_definition
from kernel_judge.definition import Case
from kernel_judge.inputs.lazy_weights import fresh
from kernel_judge.recording.recording_file import recording_path
from kernel_judge.reference import load_run
from kernel_judge.skipping import Skip
from kernel_judge.subject import Subject

_CPU = torch.device("cpu")
# of what float32 takes: the float64 run's copies stand beside those of the tests
_WIDER = 2
# torch rounds float64 to codes by way of float32, which makes ties of what is near them
_TIE = 2.0**-23
_Key = tuple[str, str, Tolerance]


@dataclass
class _Found:
    """The rows so far, while the cases of a definition are gone through."""

    sharing: int
    rows: dict[_Key, list[Measured]] = field(default_factory=dict)
    none: dict[tuple[str, str], str] = field(default_factory=dict)
    off: dict[str, float] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def measure(
    definition: LoadedDefinition,
    path: str,
    recordings: Path,
    tolerance: float | None = None,
    sharing: int = 1,
) -> Floors:
    """Return the floors of a definition. Raises what its reference raises.

    `tolerance` replaces every atol and rtol; `sharing` is the number of processes that
    share the memory.
    """
    short = unrounded(definition.op_type, definition.const_axes)
    subject, errors = subject_of(definition, short, tolerance), _Found(sharing)
    for name in subject.interface.output_specs:
        if name in subject.op.policies:
            errors.none[name, ""] = LAW
    unresolved = subject.unresolved is not None or subject.op.oracle is None
    if unresolved:
        errors.left_out.append(
            f"UNRESOLVED: {subject.unresolved or 'there is no oracle'}"
        )
    if unresolved or len(errors.none) == len(subject.interface.output_specs):
        rows = tuple(_rows(definition, subject, errors))
        return Floors(
            definition.name,
            definition.op_type,
            path,
            rows,
            left_out=tuple(errors.left_out),
            error=f"nothing was compared: {errors.left_out[0]}" if unresolved else "",
        )
    _go_through(definition, subject, errors, None if short else recordings)
    if short:
        # small cases as they are, without a float64 run: with what was recorded of them
        whole = subject_of(definition, tolerance=tolerance)
        _go_through(definition, whole, errors, recordings, False)
    rows = tuple(_rows(definition, subject, errors))
    why = errors.left_out[0] if errors.left_out else "no case has finite outputs"
    return Floors(
        definition.name,
        definition.op_type,
        path,
        rows,
        errors.off,
        short,
        tuple(errors.left_out),
        error="" if errors.rows else f"nothing was compared: {why}",
    )


def _go_through(
    definition: LoadedDefinition,
    subject: Subject,
    errors: _Found,
    recordings: Path | None,
    in_float64: bool = True,
) -> None:
    """Measure each case that the tests have by default and that fits."""
    about = subject.definition
    is_recorded = (
        recordings is not None
        and recording_path(recordings, subject.op_type, subject.name).exists()
    )
    for case in subject.cases():
        if not in_float64 and case.size != "small":
            continue
        needed = needed_bytes(about, case, subject.op.peak_bytes)
        free = available_bytes(_CPU)
        needed *= _WIDER if in_float64 else 1
        if free is not None and needed > free / errors.sharing:
            errors.left_out.append(
                f"{case.name}: needs {needed / 2**30:.1f} GiB of {free / 2**30:.1f} for "
                f"{errors.sharing} at a time"
            )
            continue
        _measure(
            definition,
            subject,
            case,
            errors,
            recordings if is_recorded else None,
            in_float64,
        )


def _measure(
    definition: LoadedDefinition,
    subject: Subject,
    case: Case,
    errors: _Found,
    recordings: Path | None,
    in_float64: bool,
) -> None:
    load = partial(load_run, definition.reference)
    run = load()
    subject = subject.with_run(run)
    trial = subject.trial(case, run=run)
    exact: dict[str, Any] = {}
    if in_float64:
        inputs = {name: fresh(value, _CPU) for name, value in trial.inputs.items()}
        outputs, after = run_widened(load, inputs)
        exact = {
            **after,
            **dict(zip(subject.interface.output_specs, outputs, strict=True)),
        }
        del inputs, outputs, after
    sources = [oracle_pairs(subject, trial)]
    if recordings is not None:
        sources.append(recorded_pairs(subject, trial, recordings))
    for compared in sources:
        try:
            for pair in compared:
                if pair.settled is None:
                    _note(subject, case, errors, pair, exact.get(pair.output))
                elif not pair.settled.passed:
                    first = pair.settled.findings[0]
                    errors.left_out.append(f"{case.name}: {pair.output}: {first}")
        except Skip:
            continue
        except AssertionError as error:
            first = (str(error).strip() or "AssertionError").splitlines()[0]
            errors.left_out.append(f"{case.name}: {first}")


def _note(
    subject: Subject,
    case: Case,
    errors: _Found,
    pair: Pair,
    exact: Any,
) -> None:
    """Measure one pair."""
    name, actual, expected = pair.output, pair.actual, pair.expected
    source, place = pair.source.removeprefix(RECORDED), pair.place
    bound = subject.tolerance(name, source, case)
    if name in subject.op.policies:
        return
    if bound == EXACT:
        errors.none[name, source] = EXACTLY
        return
    same = isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not same or actual.shape != expected.shape:
        errors.left_out.append(f"{case.name}: {name} and {source}'s don't go together")
        return
    if place is not None and exact is not None:
        exact = exact.reshape(-1)[place[0]]
    if exact is not None and exact.shape != actual.shape:
        exact = None
    if exact is not None and source == ORACLE and _is_code(expected, actual.dtype):
        # whoever expects codes has rounded: float64 does so before both are compared
        exact = _codes(exact, expected, actual.dtype)
    of_case = measured(
        case.name,
        actual,
        expected,
        bound,
        roundings=1 if source == ORACLE else 2,
        exact=exact,
    )
    if of_case is None:
        return
    errors.rows.setdefault((name, source, bound), []).append(of_case)
    if source == ORACLE and exact is not None:
        errors.off[name] = max(errors.off.get(name, 0.0), of_case.source)


def _is_code(expected: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether all values of an answer are of an 8-bit type of floats."""
    if not dtype.is_floating_point or dtype.itemsize > 1:
        return False
    return torch.equal(expected.to(dtype).double(), expected.double())


def _codes(
    exact: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Return float64 values rounded to codes; next to a tie, the one expected."""
    beside = ((exact * factor).to(dtype).double() for factor in (1 - _TIE, 1 + _TIE))
    is_expected = [codes == expected for codes in beside]
    codes = exact.to(dtype).double()
    return torch.where(is_expected[0] | is_expected[1], expected.double(), codes)


def _rows(
    definition: LoadedDefinition, subject: Subject, errors: _Found
) -> list[SourceFloor]:
    specs = subject.specs

    def row(name: str, source: str, **more: Any) -> SourceFloor:
        about = definition.name, definition.op_type
        return SourceFloor(*about, name, specs[name].dtype, source, **more)

    without = [row(*key, why_none=why) for key, why in errors.none.items()]
    judged = [
        row(
            name,
            source,
            tolerance=bound,
            chosen=_reason(subject, name, source, cases),
            cases=tuple(cases),
        )
        for (name, source, bound), cases in errors.rows.items()
    ]
    return [*without, *judged]


def _reason(subject: Subject, name: str, source: str, cases: list[Measured]) -> str:
    """Return the reason of the override that gives these cases their tolerance."""
    if subject.run_tolerance is not None:
        return ""
    fixed = subject.definition.axes
    first = cases[0].case
    axes = next(({**fixed, **c.axes} for c in subject.cases() if c.name == first), None)
    chosen = (
        override.reason
        for override in of_definition(
            subject.op.tolerances, subject.definition.constants
        )
        if override.applies(name, source, first, axes)
    )
    return next(chosen, "")
