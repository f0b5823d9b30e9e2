"""The gemm reference against dot products written out in float64."""

from __future__ import annotations

import torch

from generator.ops.op_types.gemm.references.gemm import run


def test_each_element_is_a_dot_product_of_rows():
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(3, 17, generator=generator).half()
    b = torch.randn(5, 17, generator=generator).half()
    expected = [
        [sum(x * y for x, y in zip(r, s, strict=True)) for s in b.double().tolist()]
        for r in a.double().tolist()
    ]
    actual = run(a, b)
    assert actual.dtype == torch.float16
    torch.testing.assert_close(
        actual.double(), torch.tensor(expected).double(), rtol=1e-3, atol=1e-3
    )


def test_sums_beyond_float16_survive_in_the_accumulator():
    # 60000 + 60000 is infinite in float16; the sum of all three is not.
    a = torch.tensor([[60000.0, 60000.0, -60000.0]]).half()
    assert run(a, torch.ones(1, 3).half()).item() == a[0, 0].item()


def test_small_terms_are_not_lost():
    # 1 is below half a step of float16 at 4096: 512 of them vanish one by one there.
    a = torch.ones(1, 513).half()
    a[0, 0] = 4096
    assert run(a, torch.ones(1, 513).half()).item() == 4608


def test_blocks_of_b_are_joined_in_order():
    b = torch.arange(9000).remainder(2048).half().reshape(9000, 1)
    c = run(torch.ones(1, 1).half(), b)
    assert torch.equal(c, b.T)


def test_no_tokens_give_no_rows():
    assert run(torch.zeros(0, 4).half(), torch.ones(7, 4).half()).shape == (0, 7)


def test_inputs_are_left_alone():
    a, b = torch.ones(2, 3).half(), torch.ones(4, 3).half()
    run(a, b)
    assert torch.equal(a, torch.ones(2, 3).half())
    assert torch.equal(b, torch.ones(4, 3).half())
