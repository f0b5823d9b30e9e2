"""Measure one definition: its reference as written, in float64, and its sources.

The pairs that are measured are those that the rendered tests compare: the tests
themselves are run, with their verdict replaced by a note of what they were given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.dataset.definition import Definition
from generator.mutation.bench import loaded
from generator.mutation.classes import rendered_class
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
from generator.testing.compare import PASSED, Comparison
from generator.testing.definition import Case
from generator.testing.lazy_weights import fresh
from generator.testing.memory import available_bytes, needed_bytes
from generator.testing.recording_file import recording_path
from generator.testing.replay import MatchesRecorded
from generator.testing.tolerance import EXACT, Tolerance, of_definition
from generator.testing.trial import Trial

_CPU = torch.device("cpu")
# of what float32 takes: the float64 run's copies stand beside those of the tests
_WIDER = 2
# torch rounds float64 to codes by way of float32, which makes ties of what is near them
_TIE = 2.0**-23
_Key = tuple[str, str, Tolerance]


@dataclass
class _Found:
    """Collect rows while the cases of a definition are gone through."""

    sharing: int
    rows: dict[_Key, list[Measured]] = field(default_factory=dict)
    none: dict[tuple[str, str], str] = field(default_factory=dict)
    off: dict[str, float] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def measure(
    definition: Definition,
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
    tests, found = rendered_class(definition, short, tolerance), _Found(sharing)
    for name in tests.interface.output_specs:
        if name in tests.policies:
            found.none[name, ""] = LAW
    unresolved = tests.unresolved is not None or tests.oracle is None
    if unresolved:
        found.left_out.append(f"UNRESOLVED: {tests.unresolved or 'there is no oracle'}")
    if unresolved or len(found.none) == len(tests.interface.output_specs):
        rows = tuple(_rows(definition, tests, found))
        return Floors(
            definition.name,
            definition.op_type,
            path,
            rows,
            left_out=tuple(found.left_out),
        )
    _go_through(definition, tests, found, None if short else recordings)
    if short:
        # small cases as they are, without a float64 run: with what was recorded of them
        whole = rendered_class(definition, tolerance=tolerance)
        _go_through(definition, whole, found, recordings, False)
    rows = tuple(_rows(definition, tests, found))
    why = found.left_out[0] if found.left_out else "no case has finite outputs"
    return Floors(
        definition.name,
        definition.op_type,
        path,
        rows,
        found.off,
        short,
        tuple(found.left_out),
        error="" if rows else f"no case could be measured: {why}",
    )


def _go_through(
    definition: Definition,
    tests: type[MatchesRecorded],
    found: _Found,
    recordings: Path | None,
    in_float64: bool = True,
) -> None:
    """Measure each case that the tests have by default and that fits."""
    about = tests.definition()
    is_recorded = (
        recordings is not None
        and recording_path(recordings, tests.op_type, tests.name).exists()
    )
    for case in tests.cases(about):
        if case.size not in tests.sizes or not (in_float64 or case.size == "small"):
            continue
        needed = needed_bytes(about, case, tests.peak_bytes)
        free = available_bytes(_CPU)
        needed *= _WIDER if in_float64 else 1
        if free is not None and needed > free / found.sharing:
            found.left_out.append(
                f"{case.name}: needs {needed / 2**30:.1f} GiB of {free / 2**30:.1f} for "
                f"{found.sharing} at a time"
            )
            continue
        _measure(
            definition,
            tests,
            case,
            found,
            recordings if is_recorded else None,
            in_float64,
        )


def _measure(
    definition: Definition,
    tests: type[MatchesRecorded],
    case: Case,
    found: _Found,
    recordings: Path | None,
    in_float64: bool,
) -> None:
    load = loaded(definition.reference)
    trial = Trial(
        tests.definition(),
        case,
        _CPU,
        tests.make_inputs,
        load(),
        guessed=tests.oracle is None,
    )
    exact: dict[str, Any] = {}
    if in_float64:
        given = {name: fresh(value, _CPU) for name, value in trial.inputs.items()}
        outputs, after = run_widened(load, given)
        exact = {
            **after,
            **dict(zip(tests.interface.output_specs, outputs, strict=True)),
        }
        del given, outputs, after

    def note(
        self: Any,
        of: Trial,
        name: str,
        a: Any,
        e: Any,
        source: str,
        widest: str | None,
        place: tuple[torch.Tensor, tuple[int, ...]] | None = None,
    ) -> Comparison:
        _note(tests, case, found, name, a, e, source, place, exact.get(name))
        return Comparison(PASSED, ())

    changed = {"_judge": note, "reference": staticmethod(lambda: trial._run)}
    test = type(tests.__name__, (tests,), changed)()
    calls: list[Callable[[], None]] = [
        lambda: test.test_matches_oracle(trial, _ignore),
    ]
    if recordings is not None:
        calls.append(lambda: test.test_matches_recorded(trial, recordings, _ignore))
    for call in calls:
        try:
            call()
        except pytest.skip.Exception:
            continue
        except AssertionError as error:
            first = (str(error).strip() or "AssertionError").splitlines()[0]
            found.left_out.append(f"{case.name}: {first}")


def _note(
    tests: type[MatchesRecorded],
    case: Case,
    found: _Found,
    name: str,
    actual: Any,
    expected: Any,
    source: str,
    place: tuple[torch.Tensor, tuple[int, ...]] | None,
    exact: Any,
) -> None:
    """Measure one output that a test was about to judge."""
    bound = tests.tolerance(name, source, case.name)
    if name in tests.policies:
        return
    if bound == EXACT:
        found.none[name, source] = EXACTLY
        return
    same = isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor)
    if not same or actual.shape != expected.shape:
        found.left_out.append(f"{case.name}: {name} and {source}'s don't go together")
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
    found.rows.setdefault((name, source, bound), []).append(of_case)
    if source == ORACLE and exact is not None:
        found.off[name] = max(found.off.get(name, 0.0), of_case.source)


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
    definition: Definition, tests: type[MatchesRecorded], found: _Found
) -> list[SourceFloor]:
    specs = {**tests.interface.input_specs, **tests.interface.output_specs}

    def row(name: str, source: str, **more: Any) -> SourceFloor:
        about = definition.name, definition.op_type
        return SourceFloor(*about, name, specs[name].dtype, source, **more)

    without = [row(*key, why_none=why) for key, why in found.none.items()]
    judged = [
        row(
            name,
            source,
            tolerance=bound,
            chosen=_reason(tests, name, source, cases),
            cases=tuple(cases),
        )
        for (name, source, bound), cases in found.rows.items()
    ]
    return [*without, *judged]


def _reason(
    tests: type[MatchesRecorded], name: str, source: str, cases: list[Measured]
) -> str:
    """Return the reason of the override that gives these cases their tolerance."""
    if tests.run_tolerance is not None:
        return ""
    chosen = (
        override.reason
        for override in of_definition(tests.tolerances, tests.constants)
        if override.applies(name, source, cases[0].case)
    )
    return next(chosen, "")


def _ignore(name: str, value: object) -> None:
    """Stand in for record_property."""
