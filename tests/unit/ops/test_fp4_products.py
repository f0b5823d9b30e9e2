"""Products of fp4: codes and scales by hand, scales in tiles by their place."""

from __future__ import annotations

import pytest
import torch

from generator.ops.op_types.gemm_fp4.layouts import places, swizzled
from tests.builders import loaded, run_of

ONE, TWO = 0x38, 0x40
"""The bytes of 1 and 2 in float8_e4m3fn."""


def bytes_of(rows: list[list[int]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.uint8).view(torch.int8)


def test_codes_scales_and_the_factor_multiply():
    # 0.5 and -6 in the first byte, all else 0; scales 1 and 2
    run = run_of(loaded("nvfp4_gemm_n1280_k8192").reference)
    a = bytes_of([[0xF1, *[0] * 7, 0x02, *[0] * 7]])
    b = bytes_of([[0x22, *[0] * 7, 0x04, *[0] * 7]])
    scale = torch.tensor([[ONE, TWO]], dtype=torch.uint8).view(torch.float8_e4m3fn)
    # (0.5 - 6) * 1 * 1 + 1 * 2 * 2 * 2, times a half
    out = run(a, b, scale, scale, torch.tensor(0.5))
    assert out.tolist() == [[1.25]]


def test_exponents_of_mxfp4_have_a_bias_of_127():
    run = run_of(loaded("mxfp4_gemm_n1280_k8192").reference)
    a = bytes_of([[0x02, *[0] * 15]])
    scale = bytes_of([[130]])
    assert run(a, a, scale, bytes_of([[126]])).tolist() == [[4.0]]


@pytest.mark.parametrize(
    ("row", "block", "place"),
    # 16 bytes a row of 32, 4 bytes a group of 32 rows, 512 a tile, two tiles a row
    [(0, 0, 0), (1, 0, 16), (32, 0, 4), (33, 6, 512 + 16 + 4 + 2), (128, 0, 1024)],
)
def test_a_scale_lies_where_a_tensor_core_reads_it(row, block, place):
    assert places(256, 8)[row, block] == place


def test_every_place_of_whole_tiles_is_taken_once():
    assert sorted(places(256, 8).flatten().tolist()) == [*range(2048)]


def test_tiles_are_read_as_they_were_written():
    scale = torch.arange(2048.0).view(256, 8)
    plain = swizzled(scale).flatten()[places(256, 8)]
    assert torch.equal(plain, scale)
