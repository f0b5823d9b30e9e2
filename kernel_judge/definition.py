"""A definition as rendered tests see it, and the cases it is tried on."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

WORKLOAD = "workload"
"""The size of a case that is a workload of the dataset."""

LIMITS = "limits"
"""The size of a case that crosses the limits that kernels and references may have."""

_SPEC = re.compile(r"(\w+)(?:\[([\w, ]*)\])?")


@dataclass(frozen=True)
class TensorSpec:
    """A tensor's axes and dtype; `shape` None is a Python scalar."""

    shape: tuple[str, ...] | None
    dtype: str

    @classmethod
    def parse(cls, text: str) -> TensorSpec:
        """Read `bfloat16[batch_size, hidden_size]`, or `float32` for a scalar."""
        match = _SPEC.fullmatch(text)
        if match is None:
            raise ValueError(f"not a tensor declaration: {text!r}")
        dtype, axes = match.groups()
        if axes is None:
            return cls(None, dtype)
        return cls(tuple(axis for axis in axes.split(", ") if axis), dtype)

    @property
    def leading_axis(self) -> str | None:
        """Return the axis that a tensor's rows count: only outputs over it share rows."""
        return self.shape[0] if self.shape else None


@dataclass(frozen=True)
class Interface:
    """The part of a definition that several definitions of an op_type share."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    constraints: tuple[str, ...] = ()

    def but(
        self,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        constraints: tuple[str, ...] | None = None,
        also: tuple[str, ...] = (),
        without: Container[str] = (),
    ) -> Interface:
        """Return an interface that differs from this one.

        Args:
            inputs: Inputs that are declared otherwise, or new. A new one follows the
                one that stands before it here; the first is new at the front.
            outputs: The same of outputs.
            constraints: All constraints, where they are others.
            also: Constraints behind those there are.
            without: Names of inputs and outputs that the interface lacks.
        """
        return Interface(
            _changed(self.inputs, inputs or {}, without),
            _changed(self.outputs, outputs or {}, without),
            (*(self.constraints if constraints is None else constraints), *also),
        )

    @cached_property
    def input_specs(self) -> dict[str, TensorSpec]:
        """Return the inputs in the order in which `run()` takes them."""
        return {name: TensorSpec.parse(text) for name, text in self.inputs.items()}

    @cached_property
    def output_specs(self) -> dict[str, TensorSpec]:
        """Return the outputs in the order in which `run()` returns them."""
        return {name: TensorSpec.parse(text) for name, text in self.outputs.items()}


def _changed(
    tensors: Mapping[str, str], changes: Mapping[str, str], without: Container[str]
) -> dict[str, str]:
    names = [name for name in tensors if name not in without]
    place = 0
    for name in changes:
        if name not in names:
            names.insert(place, name)
        place = names.index(name) + 1
    return {name: changes.get(name, tensors.get(name, "")) for name in names}


@dataclass(frozen=True)
class Definition:
    """A definition as the op's functions need it.

    `axes` are the constant axes; `constants` are those the interface does not carry
    (eps, for one), from the source that the rendered file names.
    """

    name: str
    op_type: str
    interface: Interface
    axes: Mapping[str, int]
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One set of inputs to try: a size class, variable axes, free parameters.

    `size` is small, medium, large, LIMITS or WORKLOAD. `axes` has every variable axis:
    the bytes of a case are known before anything is allocated. `seed` makes other inputs
    than those of every run. `repeats` names an axis along which 61 slices come in turn.
    `moved` has the inputs that are multiplied by powers of two, with the exponents.
    """

    name: str
    size: str
    axes: Mapping[str, int]
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = field(default=None, kw_only=True)
    repeats: str = field(default="", kw_only=True)
    moved: Mapping[str, float] = field(default_factory=dict, kw_only=True)

    def stated(self, name: str) -> Any:
        """Return the number that the case states for an input, None if it states none."""
        return None

    def as_record(self) -> dict[str, str]:
        """Return what a results file has of the case that a comparison was of."""
        return {"case": self.name, "size": self.size}


@dataclass(frozen=True)
class Backend:
    """A way in which a provider computes an op, and the GPUs that have it.

    `min_sm` and `max_sm` are compute capabilities as 90 for 9.0, both included. Without
    `needs_cuda` the CPU can compute it as well, as SGLang's native paths. `needs` names
    modules that the provider imports for this backend alone, and does without else.
    `gpus` are those that it computes on, all of one process, which reach the memory of
    each other. `lacks` names the outputs that its kernel does not return: the adapter
    gives None for each. `rewrites` says what an adapter computes of what the kernel is
    handed or returns, "inputs rewritten: …", "outputs rewritten: …": agreement with such
    a kernel is none with the production call. `limit` says why it has no kernel for this definition, and
    `symbol` what is called where that is none of the definition's own.
    """

    name: str
    min_sm: int = 0
    max_sm: int = 10_000
    needs_cuda: bool = True
    needs: tuple[str, ...] = ()
    gpus: int = 1
    lacks: tuple[str, ...] = ()
    rewrites: str = ""
    limit: str = ""
    symbol: str = ""
