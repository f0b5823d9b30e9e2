"""The tests that every definition gets: the base of the rendered test classes.

A test asserts or skips with a reason; none returns early. pytest_generate_tests (in
`plugin`) spreads `trial` over the cases and `backend` over a provider's backends.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import pytest
import torch

from generator.testing import generic
from generator.testing.asking import ask
from generator.testing.available import (
    rewritten_by,
    source_name,
    too_few,
    usable_sources,
)
from generator.testing.compare import Comparison, compare
from generator.testing.definition import Backend, Case, Definition, Interface
from generator.testing.error_map import error_map
from generator.testing.memory import PeakBytes, dtype_of, shape_of
from generator.testing.obstacle import Kind
from generator.testing.policy import Policy, Question, Repeating
from generator.testing.providers import backend_obstacle
from generator.testing.rows import keep_rows, leading_axis
from generator.testing.skipping import Skipped, skip
from generator.testing.source_names import PAIR
from generator.testing.tolerance import Override, Tolerance, choose_tolerance, looser
from generator.testing.trial import Inputs, Trial, as_tuple, same_bits

RecordProperty = Callable[[str, object], None]


class ReferenceTests:
    """Test one definition; a subclass says which and holds its `run()`."""

    # of the definition
    name: ClassVar[str]
    # of the JSON file that the class was rendered from
    sha256: ClassVar[str] = ""
    op_type: ClassVar[str]
    interface: ClassVar[Interface]
    reference: ClassVar[Callable[[], Callable[..., Any]]]
    constants: ClassVar[Sequence[str]] = ()
    dependent_constants: ClassVar[Sequence[str]] = ()
    unresolved: ClassVar[str | None] = None
    # of the op_type: the functions of its module, copied into the rendered file, and
    # <provider>_ground_truth with <provider>_backends for each provider that it has
    cases: ClassVar[Callable[[Definition], Sequence[Case]]] = generic.cases
    make_inputs: ClassVar[Callable[..., Inputs]] = generic.make_inputs
    oracle: ClassVar[Callable[[Definition, Inputs], Any] | None] = None
    defined_rows: ClassVar[Callable[[Definition, Inputs], torch.Tensor] | None] = None
    # the inputs that `run()` fills: oracle and adapters return them after the outputs
    filled_inputs: ClassVar[Callable[[Inputs], tuple[str, ...]] | None] = None
    peak_bytes: ClassVar[PeakBytes | None] = None
    tolerances: ClassVar[tuple[Override, ...]] = ()
    policies: ClassVar[Mapping[str, Policy]] = {}
    # of the rendering: gen-tests --sizes and --tolerance
    sizes: ClassVar[tuple[str, ...]] = ("small", "medium")
    run_tolerance: ClassVar[float | None] = None

    @classmethod
    def definition(cls) -> Definition:
        """Return the definition as a value, read from the class's constants."""
        specs = (
            *cls.interface.input_specs.values(),
            *cls.interface.output_specs.values(),
        )
        names = dict.fromkeys(axis for spec in specs for axis in spec.shape or ())
        axes = {
            axis: getattr(cls, axis.upper())
            for axis in names
            if hasattr(cls, axis.upper())
        }
        constants = {name: getattr(cls, name.upper()) for name in cls.constants}
        return Definition(cls.name, cls.op_type, cls.interface, axes, constants)

    @classmethod
    def has_guessed_inputs(cls) -> bool:
        """Return whether nobody knows that the inputs are ones that the op allows."""
        return cls.oracle is None

    @classmethod
    @cache
    def load_run(cls) -> Callable[..., Any]:
        """Execute the reference's text and return its `run()`.

        Not before a test asks: a reference that fails to load, for want of a module,
        say, fails its own tests and not the collection of the whole file.
        """
        return cls.reference()

    def test_contract(self, trial: Trial) -> None:
        """`run()` takes the inputs in order, and the definition's constraints hold."""
        parameters = inspect.signature(self.load_run()).parameters.values()
        positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        inputs = list(self.interface.input_specs)
        assert positional == inputs, "run() is called with the inputs positionally"
        assert list(trial.inputs) == inputs, "make_inputs() serves another interface"
        broken = trial.broken_constraints()
        if broken and trial.guessed:
            reason = f"UNRESOLVED: guessed inputs break constraints: {broken}"
            skip(Kind.UNRESOLVED, reason)
        assert not broken, f"constraints that do not hold: {broken}"

    def test_output_shape(self, trial: Trial) -> None:
        """The outputs have the declared number and shapes."""
        axes = {**trial.definition.axes, **trial.case.axes}
        specs = self.interface.output_specs
        assert len(trial.outputs) == len(specs), (
            f"run() returned {len(trial.outputs)} values, "
            f"the definition declares {len(specs)}"
        )
        for (name, spec), output in zip(specs.items(), trial.outputs, strict=True):
            expected = shape_of(spec, axes)
            actual = tuple(getattr(output, "shape", ()))
            assert actual == expected, f"{name} is {actual}, declared {expected}"

    def test_output_dtype(self, trial: Trial) -> None:
        """The outputs have the declared dtypes."""
        specs = self.interface.output_specs
        for (name, spec), output in zip(specs.items(), trial.outputs, strict=True):
            if spec.shape is None:
                kind = type(output).__name__
                assert isinstance(output, (bool, int, float)), f"{name} is a {kind}"
            else:
                actual, expected = output.dtype, dtype_of(spec.dtype)
                assert actual == expected, f"{name} is {actual}, declared {expected}"

    def test_matches_oracle(
        self, trial: Trial, record_property: RecordProperty
    ) -> None:
        """The outputs agree with an independent float64 implementation."""
        oracle = type(self).oracle
        if self.unresolved is not None or oracle is None:
            skip(Kind.UNRESOLVED, f"oracle: UNRESOLVED: {self.unresolved}")
        with trial.limited():
            expected = as_tuple(oracle(trial.definition, trial.lazy_inputs()))
            self._check(
                trial, self._results(trial), expected, "oracle", record_property
            )

    def test_determinism(self, trial: Trial) -> None:
        """A second call on the same inputs returns the same bits."""
        repeated = trial.repeat()
        assert len(repeated) == len(trial.outputs)
        for name, first, second in zip(
            self.interface.output_specs, trial.outputs, repeated, strict=True
        ):
            assert same_bits(first, second), f"{name} differs between two calls"

    def test_inputs_unmodified(self, trial: Trial) -> None:
        """`run()` does not write to its inputs, but for those that it is to fill."""
        filled = self._filled(trial)
        names = [name for name in trial.modified_inputs if name not in filled]
        assert not names, f"run() writes to {', '.join(names)}"

    @classmethod
    def tolerance(cls, output: str, source: str, case: str) -> Tolerance:
        """Return an output's tolerance against a source (`flashinfer/fa2`)."""
        specs = {**cls.interface.input_specs, **cls.interface.output_specs}
        dtype = specs[output].dtype
        asked = (output, dtype, source, cls.run_tolerance, case, cls.constants)
        return choose_tolerance(cls.tolerances, *asked)

    def _why_unresolved(self, provider: str) -> str | None:
        """Return why a provider is not asked, None where it is."""
        return self.unresolved

    def _expect(self, trial: Trial, provider: str, backend: Backend) -> tuple[Any, ...]:
        """Return what a provider's kernel gave, or skip with the reason.

        It is called once a case: what it is compared with is no reason to call it again.
        """
        unresolved = self._why_unresolved(provider)
        if unresolved is not None:
            skip(Kind.UNRESOLVED, f"{provider}: UNRESOLVED: {unresolved}")
        obstacle = backend_obstacle(provider, backend, trial.device)
        if obstacle is not None:
            skip(obstacle.kind, f"{provider}: {obstacle}")
        key = (provider, backend.name)
        if key not in trial.answers:
            trial.answers[key] = self._ask(trial, provider, backend)
        return trial.answers[key]

    def _ask(self, trial: Trial, provider: str, backend: Backend) -> tuple[Any, ...]:
        """Call a provider's kernel on inputs of its own."""
        adapter = getattr(type(self), f"{provider}_ground_truth")
        answer = ask(adapter, provider, backend, trial, self._calls)
        named = zip(self._names(trial), answer, strict=False)
        lacking = [name for name, value in named if value is None]
        assert lacking == list(backend.lacks), f"{provider} gave None as {lacking}"
        return answer

    def _results(self, trial: Trial) -> tuple[Any, ...]:
        """Return all that `run()` gave: its outputs, and the inputs that it filled.

        The outputs are those of as many calls as a policy asks for.
        """
        outputs = trial.joined_outputs(self._calls(trial.outputs, trial.case))
        return outputs + tuple(trial.after(name) for name in self._filled(trial))

    def _calls(self, answer: tuple[Any, ...], case: Case) -> int:
        """Return how often to call who gave this answer: once, or a policy says."""
        wanted = [1]
        # an answer of too few or too many values is for `_check` to refuse
        for name, value in zip(self.interface.output_specs, answer, strict=False):
            policy = self.policies.get(name)
            if isinstance(policy, Repeating):
                wanted.append(policy.calls(value, case))
        return max(wanted)

    def _match(
        self,
        trial: Trial,
        provider: str,
        backend: Backend,
        record_property: RecordProperty,
    ) -> None:
        __tracebackhide__ = True
        with trial.limited():
            expected = self._expect(trial, provider, backend)
            source = source_name(provider, backend)
            self._check(trial, self._results(trial), expected, source, record_property)

    def _filled(self, trial: Trial) -> tuple[str, ...]:
        """Return the names of the inputs that `run()` fills in this case."""
        filled_inputs = type(self).filled_inputs
        return () if filled_inputs is None else filled_inputs(trial.inputs)

    def _names(self, trial: Trial) -> list[str]:
        """Return the names of what is compared, in the order of `_results`."""
        return [*self.interface.output_specs, *self._filled(trial)]

    def _check(
        self,
        trial: Trial,
        actual: tuple[Any, ...],
        expected: tuple[Any, ...],
        source: str,
        record_property: RecordProperty,
        widest: str | None = None,
    ) -> None:
        """Compare all outputs with those of a source; record, then assert."""
        __tracebackhide__ = True  # the message says it all
        specs = {**self.interface.input_specs, **self.interface.output_specs}
        names = self._names(trial)
        assert len(actual) == len(names), f"run() returned {len(actual)} values"
        assert len(expected) == len(names), f"{source} gave {len(expected)} values"
        rows = None
        defined_rows = type(self).defined_rows
        if source != "oracle" and defined_rows is not None:
            rows = defined_rows(trial.definition, trial.inputs)
            if not bool(rows.any()):
                skip(Kind.NO_CASE, f"{source}: defines no row of this case")
        row_axis = leading_axis(specs[names[0]])
        pairs = list(zip(names, actual, expected, strict=True))
        # `_ask` has seen that a kernel lacks no more than it says; nobody else may
        lacking = [
            name
            for name, a, e in pairs
            if (e is None and source != "oracle") or (a is None and widest is not None)
        ]
        if len(lacking) == len(names):
            skip(Kind.NO_CASE, f"{source}: shares no output with {widest}")
        failures = []
        for name, a, e in pairs:
            if name in lacking:
                continue
            # only an output over the same axis has these rows: a state pool has not
            if rows is not None and leading_axis(specs[name]) == row_axis:
                a, e = keep_rows(a, rows), keep_rows(e, rows)
            result = self._judge(trial, name, a, e, source, widest)
            told = source if widest is None else f"{source}{PAIR}{widest}"
            left_out = 0 if rows is None else int((~rows).sum())
            rewritten = rewritten_by(type(self), source, widest)
            more = {
                "rows_left_out": left_out,
                "not_given": lacking,
                "rewritten": rewritten,
            }
            failures += self._tell(trial, name, told, result, record_property, **more)
        assert not failures, "\n" + "\n".join(failures)

    def _tell(
        self,
        trial: Trial,
        name: str,
        source: str,
        result: Comparison,
        record_property: RecordProperty,
        **more: object,
    ) -> list[str]:
        """Record the verdict on one output; return the message of a failure, if any."""
        record = {
            "definition": self.name,
            "case": trial.case.name,
            "source": source,
            "output": name,
            **more,
            "not_independent": list(self.dependent_constants),
            **result.as_dict(),
        }
        record_property("comparison", json.dumps(record))
        if result.passed:
            return []
        subject = f"{self.name} {name!r} against {source}, {trial.case.name}"
        return [result.message(subject)]

    def _judge(
        self,
        trial: Trial,
        name: str,
        actual: Any,
        expected: Any,
        source: str,
        widest: str | None,
        place: tuple[torch.Tensor, tuple[int, ...]] | None = None,
    ) -> Comparison:
        """Return the verdict on one output, by its policy or else its tolerance.

        `place` says which elements of an output they are, where they are not all.
        """
        policy = self.policies.get(name)
        if policy is not None:
            question = Question(
                trial.definition, trial.case, trial.inputs, source, widest
            )
            return policy.judge(actual, expected, question)
        tolerance = self.tolerance(name, source, trial.case.name)
        if widest is not None:
            wider = self.tolerance(name, widest, trial.case.name)
            tolerance = looser(tolerance, wider)
        result = compare(actual, expected, tolerance, same_dtype=source != "oracle")
        if result.passed and not trial.error_maps:
            return result
        return replace(result, where=error_map(actual, expected, tolerance, place))


class MatchesFlashInfer(ReferenceTests):
    """Test against FlashInfer's kernels, called live."""

    def test_matches_flashinfer(
        self, trial: Trial, backend: Backend, record_property: RecordProperty
    ) -> None:
        """The outputs agree with FlashInfer's on rows that it defines."""
        self._match(trial, "flashinfer", backend, record_property)


class MatchesSGLang(ReferenceTests):
    """Test against SGLang's kernels, called live."""

    def test_matches_sglang(
        self, trial: Trial, backend: Backend, record_property: RecordProperty
    ) -> None:
        """The outputs agree with SGLang's on rows that it defines."""
        self._match(trial, "sglang", backend, record_property)


class MatchesPyTorch(ReferenceTests):
    """Test against PyTorch's CUDA kernels (cuBLAS), called live."""

    def test_matches_pytorch(
        self, trial: Trial, backend: Backend, record_property: RecordProperty
    ) -> None:
        """The outputs agree with PyTorch's own CUDA kernel."""
        self._match(trial, "pytorch", backend, record_property)


class GroundTruthsAgree(ReferenceTests):
    """Test the ground truths of a definition against each other."""

    def test_ground_truths_agree(
        self, trial: Trial, record_property: RecordProperty
    ) -> None:
        """Every usable source agrees with the first one."""
        answers = {}
        for source in usable_sources(type(self), trial.device):
            # one that can't be had, or not of this case, leaves the others to compare
            with suppress(Skipped):
                answers[source] = self._expect(trial, *source)
        if len(answers) < 2:
            raise Skipped(too_few(list(answers)))
        (first, expected), *others = answers.items()
        for other, actual in others:
            names = source_name(*first), source_name(*other)
            self._check(
                trial, actual, expected, names[0], record_property, widest=names[1]
            )


def main(file: str, arguments: Sequence[str]) -> int:
    """Run one rendered file's tests; the result is pytest's exit status."""
    return int(pytest.main([file, *arguments]))
