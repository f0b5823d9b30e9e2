"""The classes that rendered files have tests of: each method calls one check.

A test asserts or skips with a reason; none returns early. pytest_generate_tests (in
`plugin`) spreads `trial` over the cases and `backend` over a provider's backends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from generator.running.automatch import op_by_name
from generator.running.custom_inputs import CustomInputs
from generator.running.free_memory import shortage
from generator.running.own_oracle import BackwardOracle, TextOracle
from generator.running.rendered import subjects_in
from generator.running.skipped_test import Skipped
from kernel_judge import checks
from kernel_judge.checked import Checked
from kernel_judge.definition import Backend, Definition, Interface
from kernel_judge.inputs.trial import Trial
from kernel_judge.relation import Relation
from kernel_judge.subject import Op, Subject, SubjectFile

RecordProperty = Callable[[str, object], None]


class ReferenceTests:
    """The tests of one definition; a subclass says which and holds its `run()`."""

    # of the definition
    name: ClassVar[str]
    # of the JSON file that the class was rendered from
    sha256: ClassVar[str] = ""
    op_type: ClassVar[str]
    interface: ClassVar[Interface]
    reference: ClassVar[Callable[[], Callable[..., Any]]]
    # constant axes; those of the base classes count as well
    axes: ClassVar[Mapping[str, int]] = {}
    # the names of constants; each stands in upper case as an attribute
    constants: ClassVar[Sequence[str]] = ()
    dependent_constants: ClassVar[Sequence[str]] = ()
    unresolved: ClassVar[str | None] = None
    # of the op_type
    op: ClassVar[Op] = Op(guesses_inputs=True)
    # of the rendering: gen-tests --sizes and --tolerance
    sizes: ClassVar[tuple[str, ...]] = ("small", "medium")
    run_tolerance: ClassVar[float | None] = None
    # of the definition alone, where no op_type serves it
    own_oracle: ClassVar[TextOracle | BackwardOracle | None] = None

    # what the check of this test came to; pytest makes an instance for each test
    checked: Checked | None = None

    @classmethod
    @cache
    def subject(cls) -> Subject:
        """Return what the class tests, read from its attributes."""
        op = cls.declared_op()
        return Subject(
            cls.definition(),
            op if cls.own_oracle is None else cls.own_oracle.op(op),
            cls.reference,
            tuple(cls.sizes),
            cls.unresolved,
            tuple(cls.dependent_constants),
            cls.run_tolerance,
            cls.sha256,
        )

    @classmethod
    def definition(cls) -> Definition:
        """Return the definition as a value, read from the class's constants."""
        specs = (
            *cls.interface.input_specs.values(),
            *cls.interface.output_specs.values(),
        )
        names = dict.fromkeys(axis for spec in specs for axis in spec.shape or ())
        constants = {name: getattr(cls, name.upper()) for name in cls.constants}
        lengths: dict[str, int] = {}
        for base in reversed(cls.__mro__):
            lengths |= vars(base).get("axes", {})
        # a constant that is an axis as well
        lengths |= {name: n for name, n in constants.items() if name in names}
        axes = {axis: lengths[axis] for axis in names if axis in lengths}
        return Definition(cls.name, cls.op_type, cls.interface, axes, constants)

    @classmethod
    def declared_op(cls) -> Op:
        """Return what the op_type declares."""
        return cls.op

    @classmethod
    def file(cls) -> SubjectFile:
        """Return the subjects of the rendered file that the class is of."""
        return subjects_in(vars(sys.modules[cls.__module__]))

    def test_contract(self, trial: Trial) -> None:
        """`run()` takes the inputs in order, and the definition's constraints hold."""
        self._settle(checks.contract(self.subject(), trial))

    def test_output_shape(self, trial: Trial) -> None:
        """The outputs have the declared number and shapes."""
        self._settle(checks.output_shape(self.subject(), trial))

    def test_output_dtype(self, trial: Trial) -> None:
        """The outputs have the declared dtypes."""
        self._settle(checks.output_dtype(self.subject(), trial))

    def test_matches_oracle(
        self, trial: Trial, record_property: RecordProperty
    ) -> None:
        """The outputs agree with an independent float64 implementation."""
        self._settle(checks.oracle(self.subject(), trial), record_property)

    def test_determinism(self, trial: Trial) -> None:
        """A second call on the same inputs returns the same bits."""
        self._settle(checks.determinism(self.subject(), trial))

    def test_inputs_unmodified(self, trial: Trial) -> None:
        """`run()` does not write to its inputs, but for those that it is to fill."""
        self._settle(checks.inputs_unmodified(self.subject(), trial))

    def test_strided_inputs(
        self, trial: Trial, record_property: RecordProperty
    ) -> None:
        """Views of wider buffers give the same, and nothing between is written to."""
        self._settle(checks.strided_inputs(self.subject(), trial), record_property)

    def test_matches_cpu(self, trial: Trial, record_property: RecordProperty) -> None:
        """`run()` returns on a CPU what it does on the GPU."""
        subject = self.subject()
        # a process that takes more of the host's memory than there is would be killed
        lack = shortage(
            subject.definition, trial.case, torch.device("cpu"), subject.op.peak_bytes
        )
        if lack is not None and trial.device.type != "cpu":
            raise Skipped(lack)
        self._settle(checks.matches_cpu(subject, trial), record_property)

    def _settle(
        self, checked: Checked, record_property: RecordProperty | None = None
    ) -> None:
        """Record what was compared, then skip or fail as the check says."""
        __tracebackhide__ = True  # the message says it all
        self.checked = checked
        if record_property is not None:
            for compared in checked.comparisons:
                record_property("comparison", json.dumps(compared.record))
        if checked.skipped is not None:
            raise Skipped(checked.skipped)
        assert checked.defect is None, checked.defect


@cache
def matches(*names: str) -> type[ReferenceTests]:
    """Return a class with a test against the kernels of each provider, called live."""
    tests = {f"test_matches_{name}": _against(name) for name in names}
    return type("Matches", (ReferenceTests,), tests)


def _against(provider: str) -> Callable[..., None]:
    def test(
        self: ReferenceTests,
        trial: Trial,
        backend: Backend,
        record_property: RecordProperty,
    ) -> None:
        """The outputs agree with a provider's on the rows that it defines."""
        __tracebackhide__ = True
        checked = checks.ground_truth(self.subject(), trial, provider, backend)
        self._settle(checked, record_property)

    test.__name__ = f"test_matches_{provider}"
    return test


class GroundTruthsAgree(ReferenceTests):
    """The test of a definition's ground truths against each other."""

    def test_ground_truths_agree(
        self, trial: Trial, record_property: RecordProperty
    ) -> None:
        """Every usable source agrees with the first one."""
        self._settle(checks.ground_truths_agree(self.subject(), trial), record_property)


class MatchesRecorded(ReferenceTests):
    """The test against what production kernels returned on a GPU, once."""

    def test_matches_recorded(
        self, trial: Trial, recordings: Path, record_property: RecordProperty
    ) -> None:
        """The outputs agree with the recorded ones, where the kernel defines them."""
        self._settle(
            checks.recorded(self.subject(), trial, recordings), record_property
        )


class Metamorphic(ReferenceTests):
    """The test of an op_type's relations between what several calls return."""

    def test_metamorphic(
        self, related: Trial, relation: Relation, record_property: RecordProperty
    ) -> None:
        """Further calls return what follows from the first one."""
        peer = self.file().peer(relation) if relation.peer is not None else None
        checked = checks.metamorphic(self.subject(), related, relation, peer)
        self._settle(checked, record_property)


class MatchesByName(matches("flashinfer")):  # type: ignore[misc]
    """The test against the FlashInfer functions that a definition's tags name."""

    fi_apis: ClassVar[Sequence[str]] = ()

    @classmethod
    def declared_op(cls) -> Op:
        """Return the op whose kernels are these functions, on guessed inputs."""
        return op_by_name(cls.fi_apis)


class MatchesCustomInputs(matches("flashinfer")):  # type: ignore[misc]
    """The test on what `init` makes, against the FlashInfer functions that are named."""

    # returns the function `init`, whose text is that of the file
    init: ClassVar[Callable[[], Callable[..., Any]] | None] = None
    # the arguments of `init`, and the sizes of the variable axes that it makes
    call: ClassVar[Mapping[str, Any]] = {}
    case: ClassVar[Mapping[str, int]] = {}
    # input → argument of the kernel, and its place where that is a tuple
    arguments: ClassVar[Mapping[str, tuple[str, int | None]]] = {}
    # output → its place in what the kernel returns, and the argument it is written to
    places: ClassVar[Mapping[str, tuple[int, str | None]]] = {}
    fi_apis: ClassVar[Sequence[str]] = ()

    @classmethod
    def declared_op(cls) -> Op:
        """Return the op of the one case that `init` makes."""
        custom = CustomInputs(
            cls.init, cls.call, cls.case, cls.arguments, cls.places, cls.fi_apis
        )
        return custom.op()


def main(file: str, arguments: Sequence[str]) -> int:
    """Run one rendered file's tests; the result is pytest's exit status."""
    return int(pytest.main([file, *arguments]))
