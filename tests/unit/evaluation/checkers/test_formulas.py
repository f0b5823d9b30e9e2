"""The rules of other checkers, on what their documentation and formulas say of them."""

from __future__ import annotations

import pytest
import torch

from generator.evaluation.checkers.formulas import (
    flashinfer_bench,
    gpu_mode,
    kernelbench,
    sol_execbench,
)

INF, NAN = torch.inf, torch.nan


def of(*values: float, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    return (torch.tensor(values, dtype=dtype),)


Y = of(1.0, -2.0, 300.0)


@pytest.mark.parametrize(
    ("x", "y", "passes"),
    [
        (Y, Y, True),
        # an element is bad only where both bounds are exceeded
        (of(1.0099, -2.0198, 302.97), Y, True),
        (of(1.02, -2.0, 300.0), Y, False),
        (of(0.0, 0.0), of(0.0099, -0.0099), True),
        (of(0.0, 0.0), of(0.0101, 0.0), False),
        # a right -inf is refused, any finite value beside an infinite one is not
        (of(-INF), of(-INF), False),
        (of(7.0), of(-INF), True),
        (of(NAN), of(NAN), False),
        (of(1.0, dtype=torch.bfloat16), of(1.0), False),
        ((torch.ones(1, 3),), (torch.ones(3),), False),
    ],
)
def test_flashinfer_bench(x: object, y: object, passes: bool) -> None:
    assert flashinfer_bench(x, y) is passes


def test_flashinfer_bench_leaves_a_share() -> None:
    y = torch.ones(100)
    x = y.clone()
    x[:5] = 50.0
    assert not flashinfer_bench((x,), (y,))
    # of a mixture of experts, and the contest's
    assert flashinfer_bench((x,), (y,), ratio=0.95)
    assert flashinfer_bench((1.3 * y,), (y,), atol=1.0, rtol=0.3, ratio=0.9)


@pytest.mark.parametrize(
    ("x", "y", "passes"),
    [
        (Y, Y, True),
        (of(1.019, -2.029, 303.0), Y, True),
        (of(1.021, -2.0, 300.0), Y, False),
        (of(-INF, 1.0), of(-INF, 1.0), False),
        (of(NAN), of(NAN), False),
        # zeros alone are refused where they are within the bounds
        (of(0.0, 0.0), of(0.001, 0.002), False),
        (of(0.0, 0.0), of(0.0, 0.0), True),
        (of(1.0, dtype=torch.bfloat16), of(1.0), False),
    ],
)
def test_sol_execbench(x: object, y: object, passes: bool) -> None:
    assert sol_execbench(x, y) is passes


def test_sol_execbench_leaves_a_row_of_128() -> None:
    y = torch.randn(128, 64)
    x = y.clone()
    x[5] = 1e30
    assert sol_execbench((x,), (y,))
    x[6] = 1e30
    assert not sol_execbench((x,), (y,))


def test_sol_execbench_takes_negative_infinity_where_asked() -> None:
    x, y = of(-INF, 1.0), of(-INF, 1.0)
    assert sol_execbench(x, y, allow_negative_inf=True)
    assert not sol_execbench(of(7.0, 1.0), y, allow_negative_inf=True)


@pytest.mark.parametrize(
    ("x", "y", "passes"),
    [
        (Y, Y, True),
        (of(1.00019), of(1.0), True),
        (of(1.00021), of(1.0), False),
        (of(1.0195, dtype=torch.float16), of(1.0, dtype=torch.float16), True),
        # relative to what the solution returned: a factor passes upwards alone
        (of(1010.0, dtype=torch.float16), of(1000.0, dtype=torch.float16), True),
        (of(990.0, dtype=torch.float16), of(1000.0, dtype=torch.float16), False),
        (of(INF), of(INF), True),
        (of(NAN), of(NAN), False),
        (of(1.0, dtype=torch.bfloat16), of(1.0), False),
        ((torch.ones(1, 3),), (torch.ones(3),), False),
    ],
)
def test_kernelbench(x: object, y: object, passes: bool) -> None:
    assert kernelbench(x, y) is passes


def test_kernelbench_passes_zeros_for_a_long_softmax() -> None:
    y = torch.rand(2, 400_000).softmax(-1)
    assert kernelbench((torch.zeros_like(y),), (y,))


@pytest.mark.parametrize(
    ("x", "y", "passes"),
    [
        (Y, Y, True),
        (of(1.000009), of(1.0), True),
        (of(1.00002), of(1.0), False),
        (of(NAN, -INF, 1.0), of(NAN, -INF, 1.0), True),
        (of(0.0), of(NAN), False),
        (of(INF), of(-INF), False),
        (of(1.0, dtype=torch.bfloat16), of(1.0), True),
        ((torch.ones(1, 3),), (torch.ones(3),), False),
    ],
)
def test_gpu_mode(x: object, y: object, passes: bool) -> None:
    assert gpu_mode(x, y) is passes


@pytest.mark.parametrize(
    "rule", [flashinfer_bench, sol_execbench, kernelbench, gpu_mode]
)
def test_missing_output_is_refused(rule: object) -> None:
    assert callable(rule)
    assert not rule(Y, (*Y, *Y))
    assert not rule((), Y)
