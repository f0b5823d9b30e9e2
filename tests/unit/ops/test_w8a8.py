"""8-bit products: PyTorch's on the CPU against the oracle, sums and zeros by hand."""

from __future__ import annotations

import pytest
import torch

from generator.ops.op_types.gemm_w8a8 import op
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import loaded, run_of, sized


def inputs_of(definition: Definition, name: str) -> dict[str, torch.Tensor]:
    """Return the inputs of one case of a definition."""
    (case,) = (c for c in op.cases(definition) if c.name == name)
    return op.make_inputs(definition, case, Stream("w8a8"))


@pytest.mark.parametrize(
    "name", ["w8a8_fp8_n1280_k8192", "w8a8_fp8_tensor_n1280_k8192"]
)
def test_pytorch_takes_codes_and_scales_as_the_adapter_hands_them_on(name):
    definition = sized(name, N=48, K=64)
    inputs = inputs_of(definition, "odd-rows")
    product = op.pytorch_ground_truth(definition, inputs, "scaled_mm")
    expected = op.oracle(definition, inputs)
    assert product.dtype == torch.bfloat16
    assert torch.allclose(product.double(), expected, rtol=4e-3, atol=2e-4)


@pytest.mark.parametrize("case", ["one-row", "rows"])
def test_rows_that_the_product_of_int8_lacks_are_left_out_again(case):
    definition = sized("int8_mm_n4096_k4096", N=48, K=64)
    inputs = inputs_of(definition, case)
    product = op.pytorch_ground_truth(definition, inputs, "int_mm")
    assert torch.equal(product, op.oracle(definition, inputs))


def test_a_zero_stands_for_nothing():
    # codes 5 and 3 around a zero of 3 are 2 and 0; times 7 and 11, and 0.5 * 0.25
    run = run_of(loaded("w8a8_int8_azp_n4096_k4096").reference)
    x, weight, zero = (
        torch.tensor(v, dtype=torch.int8) for v in ([[5, 3]], [[7, 11]], [3])
    )
    out = run(x, weight, torch.tensor([0.5]), torch.tensor([0.25]), zero)
    assert out.tolist() == [[1.75]]


def test_sums_of_the_largest_codes_are_exact():
    run = run_of(loaded("int8_mm_n4096_k4096").reference)
    x = torch.full((1, 4097), -128, dtype=torch.int8)
    x[0, 0] = -127
    assert run(x, x).item() == 4096 * 128**2 + 127**2
