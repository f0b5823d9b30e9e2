"""The values of e4m3 against the casts of torch."""

from __future__ import annotations

import torch

from generator.ops.float8 import e4m3_values


def test_values_are_rounded_to_those_of_the_codes():
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
    codes = codes[codes.isfinite()].unique()
    middles = (codes[1:] + codes[:-1]) / 2
    near = torch.cat([codes, middles, middles * (1 + 2**-20), middles * (1 - 2**-20)])
    expected = near.float().to(torch.float8_e4m3fn).double()
    assert torch.equal(e4m3_values(near), expected)
    assert e4m3_values(torch.tensor([1e4], dtype=torch.float64)).item() == 448.0
