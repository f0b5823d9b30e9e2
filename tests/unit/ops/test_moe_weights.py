"""Scales, mxfp4 and their codes: exact where the tests of moe rely on it."""

from __future__ import annotations

import pytest
import torch

from generator.ops.op_types.moe.weights import (
    E2M1,
    as_mxfp4,
    by_blocks,
    dequantize_mxfp4,
    draw_f8,
    draw_f8_rows,
    draw_mx,
    draw_scales,
    gate_first,
    quantize_mxfp4,
)
from kernel_judge.inputs.seeded_inputs import Stream


def test_every_code_has_its_value():
    signed = [*E2M1, *(-v for v in E2M1)]
    row = torch.tensor(signed * 2)[None]
    packed, scales = quantize_mxfp4(row)
    assert scales.tolist() == [[127]]
    # -0 has no sign to keep
    codes = [*range(8), 0, *range(9, 16)] * 2
    pairs = zip(codes[0::2], codes[1::2], strict=True)
    assert packed.tolist() == [[low | high << 4 for low, high in pairs]]
    assert torch.equal(dequantize_mxfp4(packed, scales), row)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.25, 0.0),
        (0.26, 0.5),
        (0.75, 1.0),
        (1.25, 1.0),
        (1.75, 2.0),
        (2.5, 2.0),
        (3.5, 4.0),
        (5.0, 4.0),
        (5.1, 6.0),
        (7.9, 6.0),
    ],
)
def test_values_round_to_the_even_code(value, expected):
    row = torch.zeros(1, 32)
    # the largest magnitude is 4 … 8: the scale is 1
    row[0, :2] = torch.tensor([4.0, value])
    assert as_mxfp4(row)[0, 1] == expected
    assert as_mxfp4(-row)[0, 1] == -expected


@pytest.mark.parametrize("power", [-124, -40, 0, 40, 100])
def test_scales_are_powers_of_two_of_the_block(power):
    row = torch.zeros(1, 64)
    row[0, 40] = 3.0 * 2.0**power
    packed, scales = quantize_mxfp4(row)
    assert scales[0, 0] == 0, "a block of zeros"
    assert torch.equal(dequantize_mxfp4(packed, scales), row)


def test_drawn_weights_are_mxfp4_already():
    made = draw_mx(Stream("mx"), (3, 64, 96), 0.1)
    for expert in range(3):
        matrix = made[expert]
        assert torch.equal(as_mxfp4(matrix), matrix)
        assert torch.equal(matrix.bfloat16().float(), matrix)
        assert 0.03 < matrix.std() < 0.3


def test_dequantised_values_are_bfloat16():
    scales = draw_scales(Stream("scales"), (2, 2), 0.01)
    rms = draw_scales(Stream("many"), (10_000,), 0.01).square().mean().sqrt()
    assert 0.007 < rms < 0.0142
    made = by_blocks(draw_f8(Stream("f8"), (1, 256, 256))[0], scales)
    assert torch.equal(made.bfloat16().float(), made)


def test_scales_of_all_bits_are_none_that_bfloat16_holds():
    scales = draw_scales(Stream("many"), (10_000,), 0.01, all_bits=True)
    assert 0.007 < scales.square().mean().sqrt() < 0.0142
    assert (scales.bfloat16().float() == scales).float().mean() < 0.01
    assert torch.equal(torch.frexp(scales).mantissa * 2**24 % 1, torch.zeros(10_000))


def test_a_block_has_the_scale_of_its_place():
    scales = torch.tensor([[1.0, 2.0], [4.0, 8.0]])
    made = by_blocks(torch.ones(256, 256), scales)
    assert made[127, 127] == 1.0
    assert made[0, 128] == 2.0
    assert made[128, 0] == 4.0
    assert made[255, 255] == 8.0


def test_states_are_found_again_by_a_kernel_that_quantises_them():
    rows = draw_f8_rows(Stream("rows"), 5, 384)
    scales = draw_scales(Stream("scales"), (5, 3), 0.01)
    dequantised = (rows.float().view(5, 3, 128) * scales[:, :, None]).bfloat16()
    found = dequantised.float().abs().amax(dim=2) / 448.0
    assert torch.equal(found, scales)
    again = (dequantised.float() / found[:, :, None]).to(torch.float8_e4m3fn)
    assert torch.equal(again.view(5, 384).float(), rows.float())


def test_gate_comes_first_for_sglang():
    assert gate_first(torch.arange(6)).tolist() == [3, 4, 5, 0, 1, 2]
