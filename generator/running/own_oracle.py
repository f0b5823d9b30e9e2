"""Oracles of one definition: a float64 text, or the gradient of a forward definition.

For definitions that no op_type's functions serve. Their inputs are guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ContextDecorator, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernel_judge.definition import LIMITS, Case, Definition
from kernel_judge.inputs.generic import case_of
from kernel_judge.inputs.memory import dtype_of, tensor_bytes
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs, as_tuple
from kernel_judge.subject import Op

Load = Callable[[], Callable[..., Any]]
Cases = Callable[[Definition], Sequence[Case]]
_MOST_BYTES = 32 << 20
_NARROW = {torch.float32, torch.float16, torch.bfloat16}
_CASTS = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16}


@dataclass(frozen=True)
class TextOracle:
    """An oracle's text: `load` returns its `run`, which takes the definition's inputs.

    It gets floating-point tensors in float64.
    """

    load: Load

    def op(self, op: Op) -> Op:
        """Return an op with this oracle in the place of its own."""

        def oracle(definition: Definition, inputs: Inputs) -> Any:
            return self.load()(*(_wide(value) for value in inputs.values()))

        cases = partial(_with_long, op.cases)
        with_oracle = replace(op, cases=cases, oracle=oracle)
        return replace(with_oracle, answers_alone=True, guesses_inputs=True)


@dataclass(frozen=True)
class BackwardOracle:
    """A forward definition's reference: its gradients are a backward one's outputs.

    `load` returns the forward `run`, `inputs` are its inputs in order. `gradients` gives
    for each output of it, in order, the input of the backward definition that has its
    gradient, None where it has none; `wanted` for each output of the backward definition
    the forward input whose gradient it is; `saved` for what the backward definition takes
    of the forward outputs, the place among these.
    """

    load: Load
    inputs: Sequence[str]
    gradients: Sequence[str | None]
    wanted: Mapping[str, str]
    saved: Mapping[str, int]

    def op(self, op: Op) -> Op:
        """Return an op with the gradients as oracle, and saved outputs as they are."""
        usual = op.make_inputs

        def make_inputs(definition: Definition, case: Case, stream: Stream) -> Inputs:
            inputs = usual(definition, case, stream)
            if self.saved:
                outputs = as_tuple(self.load()(*(inputs[n] for n in self.inputs)))
                specs = definition.interface.input_specs
                for name, place in self.saved.items():
                    inputs[name] = outputs[place].to(dtype_of(specs[name].dtype))
            return inputs

        return replace(
            op,
            cases=partial(_with_long, op.cases),
            make_inputs=make_inputs,
            oracle=self.oracle,
            answers_alone=True,
            guesses_inputs=True,
        )

    def oracle(
        self, definition: Definition, inputs: Inputs
    ) -> tuple[torch.Tensor, ...]:
        """Return the gradients in float64, zeros of an input that no output depends on.

        The forward text runs in float64 throughout: what it narrows stays wide.
        """
        wide = {name: _wide(inputs[name]) for name in self.inputs}
        for name in self.wanted.values():
            wide[name] = wide[name].detach().clone().requires_grad_()
        with torch.enable_grad(), _recorded(), _Wide():
            outputs = as_tuple(self.load()(*wide.values()))
        pairs = [
            (output, _wide(inputs[name]))
            for output, name in zip(outputs, self.gradients, strict=True)
            if name is not None and output.requires_grad
        ]
        names = list(self.wanted.values())
        gradients = torch.autograd.grad(
            [output for output, _ in pairs],
            [wide[name] for name in names],
            [gradient for _, gradient in pairs],
            allow_unused=True,
        )
        return tuple(
            torch.zeros_like(wide[name]) if gradient is None else gradient
            for name, gradient in zip(names, gradients, strict=True)
        )


def _with_long(cases: Cases, definition: Definition) -> list[Case]:
    """Return an op's cases, and one that crosses limits of the axes' lengths."""
    long = long_case(definition)
    return [*cases(definition), *([] if long is None else [long])]


def long_case(definition: Definition) -> Case | None:
    """Return a case of limits: the same axes, as long as 32 MiB hold; None of no axes."""
    for shortest in (8_195, 2_051, 515, 131, 35):
        case = case_of(definition, "generic-long", LIMITS, shortest)
        if case.axes and tensor_bytes(definition, case) <= _MOST_BYTES:
            return case
    return None


def _wide(value: Any) -> Any:
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if is_float else value


class _Wide(TorchFunctionMode):
    """A mode that keeps float64 where a text casts to a shorter floating-point dtype."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func in _CASTS:
            return args[0].double()
        wide = {name: _dtype(value) for name, value in (kwargs or {}).items()}
        return func(*map(_dtype, args), **wide)


def _dtype(value: Any) -> Any:
    is_dtype = isinstance(value, torch.dtype)
    return torch.float64 if is_dtype and value in _NARROW else value


class _Nothing(ContextDecorator):
    """A stand-in for torch.no_grad, as a decorator and as a context."""

    def __new__(cls, function: Any = None, **options: Any) -> Any:
        return super().__new__(cls) if function is None else function

    def __init__(self, **options: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *about: object) -> None:
        pass


@contextmanager
def _recorded() -> Iterator[None]:
    """Let a text that asks for no gradients have some."""
    originals = torch.no_grad, torch.inference_mode
    torch.no_grad = torch.inference_mode = _Nothing  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        torch.no_grad, torch.inference_mode = originals  # type: ignore[misc]
