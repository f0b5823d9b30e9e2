"""Weights that are views of a short stream: what they are, and that nobody makes more."""

from __future__ import annotations

import pickle

import pytest
import torch

from kernel_judge.inputs.lazy_weights import (
    EXPERT_STEP,
    ROW_STEP,
    Tiled,
    base_length,
    fresh,
    lazy,
    on_cpu,
)
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import same_bits
from tests.builders import CPU

SHAPE = (3, 5, 64)
DTYPES = [torch.float32, torch.bfloat16, torch.float8_e4m3fn]


def tiled(dtype=torch.float32, shape=SHAPE):
    return Tiled(Stream("tiled").values((base_length(shape),)).to(dtype), shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_row_is_its_window(dtype):
    made = tiled(dtype)
    whole = made.tensor(CPU)
    assert whole.shape == SHAPE
    assert whole.dtype == made.dtype == dtype
    assert whole.is_contiguous()
    for expert in range(3):
        assert same_bits(made[expert], whole[expert])
        for row in range(5):
            start = EXPERT_STEP * expert + ROW_STEP * row
            assert same_bits(whole[expert, row], made.base[start : start + 64])


@pytest.mark.parametrize("dtype", DTYPES)
def test_windows_on_the_cpu_are_the_elements_without_their_memory(dtype):
    weights = tiled(dtype)
    windows = on_cpu(weights, is_whole=False)
    assert same_bits(windows.contiguous(), weights.tensor(CPU))
    assert windows.untyped_storage().nbytes() == weights.base.untyped_storage().nbytes()
    assert windows.data_ptr() != weights.base.data_ptr()
    assert on_cpu(weights, is_whole=True).is_contiguous()


def test_experts_rows_and_columns_all_differ():
    shape = (128, 1536, 256)
    made = tiled(shape=shape)
    first = {tuple(made[e][0, :4].tolist()) for e in range(128)}
    assert len(first) == 128
    rows = made[7]
    assert len({tuple(row[:4].tolist()) for row in rows}) == 1536
    assert len({tuple(c[:4].tolist()) for c in rows.T}) == 256


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_changed_bit_is_seen(dtype):
    made = tiled(dtype)
    whole = made.tensor(CPU)
    assert made.same_bits(whole)
    bits = whole.view(torch.uint8)
    bits[2, 4, -1] ^= 1
    assert not made.same_bits(whole)
    assert made.same_bits(made.tensor(CPU)), "the stream is another memory"


def test_another_shape_or_dtype_is_another_tensor():
    made = tiled()
    assert not made.same_bits(made.tensor(CPU)[:2])
    assert not made.same_bits(made.tensor(CPU).double())


def test_a_negative_zero_is_not_a_zero():
    made = Tiled(torch.zeros(base_length(SHAPE)), SHAPE)
    assert not made.same_bits(-made.tensor(CPU))


def test_a_stream_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="elements are needed"):
        Tiled(torch.zeros(7), SHAPE)


def test_there_is_no_expert_behind_the_last_or_ahead_of_the_first():
    for expert in (-1, 3):
        with pytest.raises(IndexError):
            tiled()[expert]
    assert len(list(tiled())) == len(tiled()) == 3


def test_a_callee_gets_memory_of_its_own():
    made = tiled()
    given, kept = fresh(made, CPU), lazy(made, CPU)
    given.zero_()
    kept.base.zero_()
    assert made.base.any()
    assert fresh(2.5, CPU) == lazy(2.5, CPU) == 2.5
    tensor = torch.ones(2)
    fresh(tensor, CPU).zero_()
    lazy(tensor, CPU).zero_()
    assert tensor.all()


def test_it_travels_to_another_process_as_its_stream():
    made = tiled(shape=(64, 128, 64))
    sent = pickle.dumps(made)
    assert len(sent) < 6_000_000 < 64 * 128 * 64 * 4 * 3
    assert same_bits(pickle.loads(sent).tensor(CPU), made.tensor(CPU))


def test_64_gigabytes_take_a_stream_of_10_megabytes():
    assert 4 * base_length((128, 16384, 5120)) < 13e6
