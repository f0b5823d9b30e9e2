"""Adapters of PyTorch call one function that computes, or their backend says what else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from generator.ops.registry import op_module
from kernel_judge.definition import Backend, Definition
from kernel_judge.inputs.trial import Trial
from tests.builders import CPU, known, sized
from tests.unit.ops.origins import SELECTING
from tests.unit.ops.test_adapters_do_not_compute import REPRESENTATIVES

# of what is no selection: allocations, indices, what autograd is asked, whole casts
_PLAIN = frozenset(
    [
        *("__get__", "__len__", "__setitem__", "__floordiv__", "remainder", "device"),
        *("zeros", "zeros_like", "new_zeros", "tensor", "split_with_sizes_copy"),
        *("requires_grad_", "_set_grad_enabled", "grad"),
    ]
)
# lays codes out as its kernel reads them
_LAYOUT = frozenset(["_convert_weight_to_int4pack"])


class Called(TorchFunctionMode):
    """Record the functions of torch that are called and compute."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", str(func))
        if name not in SELECTING | _PLAIN | _LAYOUT:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def called(call: Callable[[], Any]) -> list[str]:
    """Return what a call asks torch to compute, as far as a CPU gets with it."""
    with suppress(NotImplementedError, AssertionError), Called() as watch:
        call()
    return watch.names


def short(name: str) -> Definition:
    """Return a definition on short axes, a vocabulary's too."""
    axes = REPRESENTATIVES[name]
    if "vocab_size" in known(name).axes:
        axes = {"vocab_size": 512, **axes}
    return sized(name, **axes)


def subjects() -> list[tuple[str, Backend]]:
    """Return the definitions that PyTorch computes here, each with a backend."""
    found = []
    for name in REPRESENTATIVES:
        definition = short(name)
        kernel = op_module(definition.op_type).OP.kernels.get("pytorch")
        backends = kernel.backends(definition) if kernel is not None else ()
        # several GPUs have to be there
        found += [(name, b) for b in backends if not b.limit and b.gpus == 1]
    return found


SUBJECTS = subjects()


@pytest.mark.parametrize(
    ("name", "backend"), SUBJECTS, ids=[f"{n}-{b.name}" for n, b in SUBJECTS]
)
def test_an_adapter_computes_once_or_its_backend_says_what_else(
    name: str, backend: Backend
) -> None:
    definition = short(name)
    op = op_module(definition.op_type).OP
    case = next(c for c in op.cases(definition) if c.size == "small")
    inputs = Trial(definition, case, CPU, op.make_inputs, lambda: None).fresh_inputs()
    names = called(lambda: op.kernels["pytorch"].call(definition, inputs, backend.name))
    if backend.rewrites:
        assert len(names) > 1, f"nothing is rewritten, but {backend.rewrites!r}"
    else:
        assert len(names) <= 1, f"not said of the backend: {names}"


def test_the_op_types_that_pytorch_computes_are_asked() -> None:
    asked = {known(name).op_type for name, _ in SUBJECTS}
    assert {"gemm", "gemm_w8a8", "cross_entropy", "norm_backward", "kv_store"} <= asked


@pytest.mark.parametrize(
    "planted",
    [
        lambda x: torch.mm(x, x) * 2.0,
        lambda x: torch.mm(x + 1.0, x),
        lambda x: torch.mm(x, x).clamp(min=0.0),
        lambda x: torch.where(x > 0, torch.mm(x, x), x),
    ],
)
def test_one_more_computation_is_seen(planted: Callable[[Any], Any]) -> None:
    assert len(called(lambda: planted(torch.ones(2, 2)))) > 1


def test_a_view_or_a_copy_is_none() -> None:
    x = torch.ones(2, 2)
    assert called(lambda: torch.mm(x.T.contiguous()[:1].float(), x)) == ["mm"]
