"""Widening by a table gives torch's own bits, and is torch's where more is asked."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from generator.audit.widening import widened_by_table

NARROW = (torch.float8_e4m3fn, torch.float8_e5m2)
METHODS = {
    "to": lambda t: t.to(torch.float32),
    "to bfloat16": lambda t: t.to(dtype=torch.bfloat16),
    "double": lambda t: t.double(),
    "float": lambda t: t.float(),
    "bfloat16": lambda t: t.bfloat16(),
    "half": lambda t: t.half(),
}


def every_byte(dtype: torch.dtype) -> torch.Tensor:
    """Return all 256 values of a dtype, both zeros and what is no number included."""
    return torch.arange(256).to(torch.uint8).view(dtype)


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", NARROW)
def test_every_byte_has_the_bits_that_torch_gives(dtype, method, looked_up):
    values = every_byte(dtype).view(4, 8, 8)
    expected = METHODS[method](values)
    with widened_by_table():
        found = METHODS[method](values)
    assert len(looked_up) == 1
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


def test_what_is_written_to_the_result_stays_there():
    values = every_byte(torch.float8_e4m3fn)
    with widened_by_table():
        values.float().zero_()
        assert values.float()[1] == 2.0**-9
        assert values[:0].float().shape == (0,)


@pytest.mark.parametrize(
    "widen",
    [
        lambda t: t.t().float(),
        lambda t: t.to(torch.float32, copy=True),
        lambda t: t.to("cpu").view(torch.uint8),
        lambda t: t.to(torch.int32),
        lambda t: t.to(torch.zeros(1)),
        lambda t: t.view(torch.uint8).float(),
    ],
)
def test_what_asks_for_more_is_left_to_torch(widen, looked_up):
    values = torch.ones(4, 8).to(torch.float8_e4m3fn)
    expected = widen(values)
    with widened_by_table():
        found = widen(values)
    assert found.dtype == expected.dtype
    assert found.stride() == expected.stride()
    assert torch.equal(found, expected)
    assert not looked_up


def test_nothing_is_patched_behind_it():
    names = ("to", "double", "float", "bfloat16", "half")
    before = [getattr(torch.Tensor, name) for name in names]
    with widened_by_table():
        assert torch.Tensor.float is not before[2]
        with pytest.raises(TypeError):
            torch.ones(2).to(torch.float8_e4m3fn).float(1, 2, 3)
    assert [getattr(torch.Tensor, name) for name in names] == before
