"""A dataset's workloads as cases: tests, the judge and rules make their values here.

A workload says of each input that it is random, or its value. What it says replaces what
the op's functions make; what is random they make as for their own cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from generator.dataset.workload_identity import workload_identity
from kernel_judge.definition import LIMITS, WORKLOAD, Case, Definition
from kernel_judge.inputs import generic
from kernel_judge.inputs.memory import dtype_of, shape_of, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import same_bits

Inputs = dict[str, Any]
MakeInputs = Callable[[Definition, Case, Stream], Inputs]
Fit = Callable[[Mapping[str, Any]], Inputs]
_MOST_DRAWS = 64
# of an input that indices point into: it is made twice
_MOST_ELEMENTS = 64 << 20


@dataclass(frozen=True)
class WorkloadCase(Case):
    """A workload: `inputs` are the entries of the file, `dataset` has its tensors.

    `of_op` makes what is random, by the parameters of one of the op's own `cases`.
    `identity` tells it from other workloads in evidence. `fit` changes what the file
    states, where axes are shorter than the file's.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    dataset: Path = field(default=Path(), kw_only=True)
    of_op: MakeInputs = field(default=generic.make_inputs, kw_only=True)
    cases: Sequence[Case] = field(default=(), kw_only=True)
    identity: str = field(default="", kw_only=True)
    fit: Fit | None = field(default=None, kw_only=True)

    def stated(self, name: str) -> Any:
        """Return the value of an input that is a scalar in the file, None of another."""
        entry = self.inputs.get(name, {})
        return entry["value"] if entry.get("type") == "scalar" else None

    def as_record(self) -> dict[str, str]:
        """Return what a results file has of it: also what tells workloads apart."""
        return {**super().as_record(), "workload": self.identity}

    def make_inputs(self, definition: Definition, case: Case, stream: Stream) -> Inputs:
        """Return the workload's inputs, on the CPU, in the definition's order.

        Raises OSError, KeyError, ValueError and what else its files cause.
        """
        stated = self.stated_inputs(definition)
        if self.fit is not None:
            stated = self.fit(stated)
        specs = definition.interface.input_specs
        drawn = self._random(definition, [n for n in specs if n not in stated], stream)
        return {name: stated[name] if name in stated else drawn[name] for name in specs}

    def stated_inputs(self, definition: Definition) -> Inputs:
        """Return the inputs whose values the workload says. Raises as `make_inputs`."""
        from safetensors import safe_open

        values: Inputs = {}
        for name, spec in definition.interface.input_specs.items():
            entry = self.inputs[name]
            if entry["type"] == "scalar":
                values[name] = entry["value"]
            elif entry["type"] == "safetensors":
                with safe_open(str(self.dataset / entry["path"]), "pt") as file:
                    value = file.get_tensor(entry["tensor_key"])
                shape = shape_of(spec, {**definition.axes, **self.axes})
                if tuple(value.shape) != shape:
                    what = f"{name} is {list(value.shape)} in {entry['path']}"
                    raise ValueError(f"{what}, {list(shape)} by the axes")
                values[name] = value.to(dtype_of(spec.dtype))
        return values

    def _random(
        self, definition: Definition, names: Sequence[str], stream: Stream
    ) -> Inputs:
        """Return values of the inputs that are random: the op's, where it makes any.

        Its cases have other structures than the workload, and other numbers of rows. What
        it can't make is generic.
        """
        sizes = {**definition.axes, **self.axes}
        specs = definition.interface.input_specs
        pools = self._pools(definition) & {*names}
        inputs, first = self._made_alike(definition, pools, stream)
        for case, of_own in [
            (c, is_own) for c in self.cases for is_own in (False, True)
        ]:
            missing = [name for name in names if name not in {*inputs, *pools}]
            if not missing:
                break
            axes = case.axes if of_own else self._short(definition, pools, case)
            posed = Case(case.name, case.size, axes, case.params)
            is_first = case is self.cases[0] and not of_own
            drawn = (is_first and first) or self._draw(definition, posed, stream)
            for name in missing:
                shape = shape_of(specs[name], sizes)
                if name not in drawn:
                    continue
                if specs[name].shape is None or tuple(drawn[name].shape) == shape:
                    inputs[name] = drawn[name]
                elif isinstance(drawn[name], torch.Tensor) and _rows(
                    drawn[name], shape
                ):
                    draws = [drawn[name]]
                    while len(draws) < min(-(-shape[0] // len(draws[0])), _MOST_DRAWS):
                        again = stream.child(f"rows {len(draws)}")
                        draws.append(self._draw(definition, posed, again)[name])
                    rows = torch.cat(draws)
                    inputs[name] = rows[torch.arange(shape[0]) % len(rows)]
        if any(name not in inputs for name in names):
            return {**generic.make_inputs(definition, self, stream), **inputs}
        return inputs

    def _pools(self, definition: Definition) -> set[str]:
        """Return the inputs into which the workload's own indices point: pages, slots.

        The op may poison what its own indices leave out, which the workload's may use.
        What it makes alike for two of its cases, as a table of cosines, it does not.
        """
        interface = definition.interface
        specs = interface.input_specs
        stated = {
            n for n, entry in self.inputs.items() if entry["type"] == "safetensors"
        }
        if not any(specs[name].dtype.startswith("int") for name in stated & {*specs}):
            return set()
        rows = [specs[name] for name in stated & {*specs}]
        rows += interface.output_specs.values()
        known = {spec.shape[0] for spec in rows if spec.shape}
        return {
            name
            for name, spec in specs.items()
            if spec.shape and spec.shape[0] in self.axes and spec.shape[0] not in known
        }

    def _short(
        self, definition: Definition, pools: set[str], *cases: Case
    ) -> dict[str, int]:
        """Return the workload's axes with pools no longer than those of the op's cases.

        What else the op makes does not depend on how many pages or slots there are, and
        drawing a workload's pools to drop them took longer than its tests.
        """
        specs = definition.interface.input_specs
        of_pools = {(specs[name].shape or ("",))[0] for name in pools}
        longest = {
            axis: max(
                (case.axes[axis] for case in cases if axis in case.axes), default=n
            )
            for axis, n in self.axes.items()
        }
        return {
            axis: min(n, longest[axis]) if axis in of_pools else n
            for axis, n in self.axes.items()
        }

    def _made_alike(
        self, definition: Definition, names: set[str], stream: Stream
    ) -> tuple[Inputs, Inputs]:
        """Return those inputs that two of the op's cases have alike at these axes.

        And what the first of them has, as far as it was drawn. Whether they are alike
        shows where the pools are short.
        """
        sizes = {**definition.axes, **self.axes}
        specs = definition.interface.input_specs
        few = {
            name
            for name in names
            if math.prod(shape_of(specs[name], sizes)) <= _MOST_ELEMENTS
        }
        if not few or len(self.cases) < 2:
            return {}, {}
        short = self._short(definition, names, *self.cases[:2])
        alike, inputs = self._alike_at(definition, few, short, stream)
        if short == self.axes:
            return {name: inputs[name] for name in alike}, inputs
        if not inputs:
            # the op's cases can't have pools so short
            alike, inputs = self._alike_at(definition, few, self.axes, stream)
        elif alike:
            case = self.cases[0]
            whole = Case(case.name, case.size, self.axes, case.params)
            inputs = self._draw(definition, whole, stream)
        return {name: inputs[name] for name in alike if name in inputs}, inputs

    def _alike_at(
        self,
        definition: Definition,
        names: set[str],
        axes: Mapping[str, int],
        stream: Stream,
    ) -> tuple[set[str], Inputs]:
        """Return which inputs two of the op's cases have alike, and the first one's."""
        sizes, specs = {**definition.axes, **axes}, definition.interface.input_specs
        first, second = (Case(c.name, c.size, axes, c.params) for c in self.cases[:2])
        inputs = self._draw(definition, first, stream)
        fitting = {
            name
            for name in names
            if isinstance(inputs.get(name), torch.Tensor)
            and tuple(inputs[name].shape) == shape_of(specs[name], sizes)
        }
        others = self._draw(definition, second, stream) if fitting else {}
        return {n for n in fitting if same_bits(inputs[n], others.get(n))}, inputs

    def _draw(self, definition: Definition, posed: Case, stream: Stream) -> Inputs:
        """Return what the op makes of one of its cases, nothing where it can't."""
        try:
            return self.of_op(definition, posed, stream)
        except Exception:  # noqa: BLE001 - the axes are a workload's, not the case's
            return {}


def _rows(value: torch.Tensor, shape: Sequence[int]) -> bool:
    """Return whether a tensor has rows of the right shape, only not their number."""
    alike = value.ndim == len(shape) > 0 and tuple(value.shape[1:]) == tuple(shape[1:])
    return alike and len(value) > 0


def workload_case(
    workload: Mapping[str, Any],
    dataset: Path,
    definition: Definition,
    cases: Sequence[Case],
    of_op: MakeInputs,
) -> WorkloadCase:
    """Return a workload of a file as a case; `cases` and `of_op` are the op's own.

    Raises KeyError, TypeError, ValueError and AttributeError where it is no workload of
    the definition.
    """
    # a case of one kind of input stands for all of that kind; ordinary ones come first
    kinds: dict[str, Case] = {}
    for case in (case for case in cases if case.size != LIMITS):
        kinds.setdefault(repr(sorted(case.params)), case)
    # and one that differs, so that what depends on a case's parameters shows
    cases_by_kind = [*kinds.values()]
    if len(cases_by_kind) == 1:
        cases_by_kind += [
            c for c in cases if c.size != LIMITS and c.params != cases_by_kind[0].params
        ][:1]
    of_file = WorkloadCase(
        f"workload {workload['uuid']}",
        WORKLOAD,
        {name: int(size) for name, size in workload["axes"].items()},
        inputs=dict(workload["inputs"]),
        dataset=dataset,
        of_op=of_op,
        cases=tuple(cases_by_kind),
        identity=workload_identity(workload),
    )
    tensor_bytes(definition, of_file)
    return of_file
