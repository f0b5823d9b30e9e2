"""Widening by a table gives torch's own bits, and is torch's where more is asked."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from generator.mutation.widening import widened_by_table

METHODS = {
    "float": lambda t: t.float(),
    "to": lambda t: t.to(torch.float32),
    "to a named dtype": lambda t: t.to(dtype=torch.float32),
    "bfloat16": lambda t: t.bfloat16(),
    "to bfloat16": lambda t: t.to(torch.bfloat16),
    "double": lambda t: t.double(),
}


@pytest.fixture
def looked_up(monkeypatch) -> list[torch.Tensor]:
    """Collect the tables that are looked up."""
    asked: list[torch.Tensor] = []
    original = torch.Tensor.index_select

    def index_select(tensor: torch.Tensor, *rest: Any) -> torch.Tensor:
        asked.append(tensor)
        return original(tensor, *rest)

    monkeypatch.setattr(torch.Tensor, "index_select", index_select)
    return asked


@pytest.mark.parametrize("widen", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_every_pair_of_bytes_has_the_bits_that_torch_gives(dtype, widen, looked_up):
    first, second = torch.meshgrid(*[torch.arange(256)] * 2, indexing="ij")
    both = torch.stack((first, second), dim=-1).to(torch.uint8)
    # zeros of both signs, subnormal ones, infinities and what is no number among them
    values = both.view(dtype)
    expected = widen(values)
    with widened_by_table():
        found = widen(values)
    assert len(looked_up) == 1
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


def test_a_result_is_its_caller_s_own():
    values = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn)
    with widened_by_table():
        values.float().zero_()
        assert values.float()[1] == 2.0**-9
        assert values[2:8].view(2, 3).float()[0, 1] == 3 * 2.0**-9
        assert values[:0].float().shape == (0,)


@pytest.mark.parametrize(
    "widen",
    [
        lambda t: t.t().float(),
        lambda t: t[:3, :7].float(),
        lambda t: t[0, :7].float(),
        lambda t: t[0, 1:5].float(),
        lambda t: t.to(torch.float32, copy=True),
        lambda t: t.to("cpu").view(torch.uint8),
        lambda t: t.to(torch.float16),
        lambda t: t.to(torch.zeros(1)),
        lambda t: t.view(torch.uint8).float(),
    ],
)
def test_what_asks_for_more_is_left_to_torch(widen, looked_up):
    values = torch.arange(32).view(4, 8).float().to(torch.float8_e4m3fn)
    expected = widen(values)
    with widened_by_table():
        found = widen(values)
    assert found.dtype == expected.dtype
    assert found.stride() == expected.stride()
    assert torch.equal(found, expected)
    assert not looked_up


def test_nothing_is_patched_behind_it():
    before = torch.Tensor.float, torch.Tensor.to, torch.Tensor.bfloat16
    with widened_by_table():
        assert torch.Tensor.float is not before[0]
        with pytest.raises(TypeError):
            torch.ones(2).to(torch.float8_e4m3fn).float(1, 2, 3)
    after = torch.Tensor.float, torch.Tensor.to, torch.Tensor.bfloat16
    assert after == before
