"""The norm references against sums written out in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from generator.ops.op_types.rmsnorm.references import gemma_rmsnorm, rmsnorm
from generator.ops.reference_text import reference_text


def variant(name: str, *words: str) -> ModuleType:
    """Return a marked text as a module that has the words before its name."""
    module = ModuleType("_".join((*words, name)))
    exec(str(reference_text("rmsnorm", name, words)), module.__dict__)  # noqa: S102
    return module


fused_add_rmsnorm = variant("fused_add_rmsnorm")
gemma_fused_add_rmsnorm = variant("fused_add_rmsnorm", "gemma")

PLAIN = pytest.mark.parametrize("module", [rmsnorm, gemma_rmsnorm])
FUSED = pytest.mark.parametrize("module", [fused_add_rmsnorm, gemma_fused_add_rmsnorm])


def by_hand(
    rows: list[list[float]], scale: list[float], eps: float
) -> list[list[float]]:
    result = []
    for row in rows:
        root = math.sqrt(sum(x * x for x in row) / len(row) + eps)
        result.append([x / root * s for x, s in zip(row, scale, strict=True)])
    return result


def scale_of(module: ModuleType, weight: torch.Tensor) -> list[float]:
    offset = 1.0 if module.__name__.rpartition(".")[2].startswith("gemma_") else 0.0
    return [offset + w for w in weight.double().tolist()]


@pytest.fixture
def random() -> Callable[..., torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return lambda *shape: torch.randn(*shape, generator=generator).bfloat16()


@PLAIN
def test_plain_norm_is_the_sum_written_out(module, random):
    x, weight = random(5, 12), random(12)
    expected = by_hand(x.double().tolist(), scale_of(module, weight), module.EPS)
    actual = module.run(x, weight)
    assert actual.shape == (5, 12)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(
        actual.double(), torch.tensor(expected).double(), rtol=5e-3, atol=1e-6
    )


@FUSED
def test_fused_norm_adds_the_residual_first(module, random):
    x, residual, weight = random(4, 10), random(4, 10), random(10)
    total = (x.double() + residual.double()).tolist()
    expected = by_hand(total, scale_of(module, weight), module.EPS)
    actual = module.run(x, residual, weight)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(
        actual.double(), torch.tensor(expected).double(), rtol=5e-3, atol=1e-6
    )


def test_the_sum_is_not_rounded_before_it_is_normalised():
    # 256 + 1 is 256 in bfloat16, which would scale the second column differently.
    x = torch.tensor([[256.0, 1.0]]).bfloat16()
    residual = torch.tensor([[1.0, 0.0]]).bfloat16()
    exact, rounded = (
        torch.tensor(by_hand([[first, 1.0]], [1.0, 1.0], 1e-6)).bfloat16()
        for first in (257.0, 256.0)
    )
    assert not torch.equal(exact, rounded)
    actual = fused_add_rmsnorm.run(x, residual, torch.ones(2).bfloat16())
    assert torch.equal(actual, exact)


@PLAIN
def test_eps_shows_on_a_row_of_tiny_variance(module):
    # mean(x^2) equals eps, so eps halves it: without eps the result is sqrt(2) more.
    x = torch.full((1, 8), math.sqrt(module.EPS))
    weight = torch.ones(8)
    scale = scale_of(module, weight)[0]
    actual = module.run(x, weight)
    expected = torch.full((1, 8), scale / math.sqrt(2))
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=0)


@FUSED
def test_eps_shows_on_a_sum_of_tiny_variance(module):
    x = torch.full((1, 8), 2 * math.sqrt(module.EPS))
    residual = torch.full((1, 8), -math.sqrt(module.EPS))
    actual = module.run(x, residual, torch.zeros(8) + 1)
    scale = scale_of(module, torch.ones(1))[0]
    expected = torch.full((1, 8), scale / math.sqrt(2))
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("module", [gemma_rmsnorm, gemma_fused_add_rmsnorm])
def test_a_zero_gemma_weight_scales_by_one(module):
    rows = torch.tensor([[3.0, -3.0]])
    inputs = (rows,) if module is gemma_rmsnorm else (rows, torch.zeros(1, 2))
    actual = module.run(*inputs, torch.zeros(2))
    torch.testing.assert_close(actual, torch.tensor([[1.0, -1.0]]))


def test_a_zero_row_stays_zero():
    actual = rmsnorm.run(torch.zeros(2, 4).bfloat16(), torch.ones(4).bfloat16())
    assert torch.equal(actual, torch.zeros(2, 4).bfloat16())


def test_no_rows_give_no_rows():
    actual = rmsnorm.run(torch.zeros(0, 4).bfloat16(), torch.ones(4).bfloat16())
    assert actual.shape == (0, 4)


@FUSED
def test_fused_norm_leaves_its_inputs_alone(module, random):
    inputs = [random(3, 6), random(3, 6), random(6)]
    before = [tensor.clone() for tensor in inputs]
    module.run(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))


@PLAIN
def test_plain_norm_leaves_its_inputs_alone(module):
    # In float32 too, where .float() hands back the input itself.
    inputs = [torch.ones(3, 6), torch.ones(6)]
    module.run(*inputs)
    assert all(torch.equal(tensor, torch.ones_like(tensor)) for tensor in inputs)
