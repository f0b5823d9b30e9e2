"""Adapters of float8 and fp4 kernels, seen by stand-ins, and codes worked out by hand."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from generator.ops.op_types.gemm_fp8 import op as gemm_fp8
from generator.ops.op_types.quantization import op as quantization
from generator.ops.op_types.quantization.formats import e2m1_codes, packed, unpacked
from generator.ops.op_types.segment_gemm import op as segment_gemm
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import loaded, run_of, sized

BLOCKS = {"N": 192, "K": 256, "num_k_blocks": 2, "num_n_blocks": 2}
ROWS = {"K": 64, "K_packed": 32}


def case_of(op, definition, name="odd-rows"):
    (case,) = (case for case in op.cases(definition) if case.name == name)
    return op.make_inputs(definition, case, Stream("adapters"))


@pytest.fixture
def called(monkeypatch):
    """Install modules that return what they were called with."""
    calls = []

    def kernel(*arguments, **options):
        calls.append((arguments, options))
        codes = torch.zeros(5, ROWS["K_packed"], dtype=torch.uint8)
        return codes, torch.zeros(5 * ROWS["K"] // 16, dtype=torch.uint8)

    class Segments:
        def __init__(self, workspace, backend):
            self.run = kernel

    flashinfer = ModuleType("flashinfer")
    for name in ("gemm", "quantization"):
        module = ModuleType(f"flashinfer.{name}")
        for function in ("bmm_fp8", "fp8_blockscale_gemm_sm90", "fp4_quantize"):
            setattr(module, function, kernel)
        module.SegmentGEMMWrapper = Segments
        setattr(flashinfer, name, module)
        monkeypatch.setitem(sys.modules, f"flashinfer.{name}", module)
    monkeypatch.setitem(sys.modules, "flashinfer", flashinfer)
    return calls


def test_scales_of_rows_are_handed_on_column_by_column_and_padded(called):
    definition = sized("fp8_blockscale_gemm_sm90_n576_k7168", **BLOCKS)
    inputs = case_of(gemm_fp8, definition)
    gemm_fp8.flashinfer_ground_truth(definition, inputs, "sm90")
    (((x, weight, scales, blocks), _),) = called
    assert x is inputs["input"]
    assert weight is inputs["weight"]
    assert blocks is inputs["weight_scale"]
    assert scales.shape == (2, 8)
    assert torch.equal(scales[:, :7].T, inputs["input_scale"])
    assert not scales[:, 7:].any()


def test_b_is_handed_on_column_major_with_scales_of_one_element(called):
    axes = {"batch_size": 3, "N": 48, "K": 64}
    definition = sized("bmm_fp8_b64_n512_k128", **axes)
    inputs = case_of(gemm_fp8, definition)
    gemm_fp8.flashinfer_ground_truth(definition, inputs, "cublas")
    (((a, b, scale_a, scale_b, dtype), options),) = called
    assert a.shape == (3, 7, 64)
    assert b.shape == (3, 64, 48)
    assert b.stride() == (64 * 48, 1, 64)
    assert scale_a.item() == pytest.approx(inputs["A_scale"])
    assert scale_b.item() == pytest.approx(inputs["B_scale"])
    assert (scale_a.shape, dtype) == ((1,), torch.bfloat16)
    assert options == {"backend": "cublas"}


def test_fp4_scales_are_asked_for_row_by_row(called):
    definition = sized("nvfp4_quantize_k4096", **ROWS, num_blocks=4)
    inputs = case_of(quantization, definition)
    codes, scales = quantization.flashinfer_ground_truth(definition, inputs, "")
    (((x, factor, block, is_mx), options),) = called
    assert x is inputs["input"]
    assert factor.item() == pytest.approx(inputs["global_scale"])
    assert (block, is_mx) == (16, False)
    assert options == {"is_sf_swizzled_layout": False}
    assert (codes.shape, scales.shape) == ((5, 32), (5, 4))
    assert scales.dtype == torch.float8_e4m3fn


def test_segments_are_given_by_their_bounds(called):
    definition = sized("segment_gemm_fp16_k4096_n16", K=32)
    inputs = case_of(segment_gemm, definition, "empty-segments")
    segment_gemm.flashinfer_ground_truth(definition, inputs, "sm90")
    (((x, weights, count, column_major), options),) = called
    assert x is inputs["x"]
    assert weights is inputs["weights"]
    assert (count, column_major) == (6, True)
    assert options["seg_indptr"].tolist() == [0, 0, 3, 3, 8, 9, 9]
    assert options["weight_indices"] is inputs["weight_indices"]


VALUES = [0.0, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 2.6, 3.5, 5.0, 5.1, 9.0, -0.0, -1.25]
CODES = [0, 0, 1, 2, 2, 4, 4, 5, 6, 6, 7, 7, 8, 10]


def test_ties_go_to_the_even_code():
    assert e2m1_codes(torch.tensor(VALUES)).tolist() == CODES


def test_the_first_of_two_codes_is_in_the_lower_half():
    codes = torch.tensor([[1, 2, 7, 15]], dtype=torch.uint8)
    assert packed(codes).view(torch.uint8).tolist() == [[0x21, 0xF7]]
    assert unpacked(packed(codes)).tolist() == [[0.5, 1.0, 6.0, -6.0]]


def test_scales_of_mxfp4_are_rounded_up():
    # 6 is the largest code: of 6, 6.03125 and 3.1 the scales are 1, 2 and 1
    rows = torch.zeros(3, 32, dtype=torch.bfloat16)
    rows[:, 5] = torch.tensor([6.0, 6.03125, 3.1])
    run = run_of(loaded("mxfp4_quantize_k2880").reference)
    codes, scales = run(rows)
    assert scales.view(torch.uint8).flatten().tolist() == [127, 128, 127]
    assert codes[:, 2].tolist() == [0x70, 0x50, 0x50]


def test_groups_of_zeros_are_divided_by_the_least_scale():
    run = run_of(loaded("per_token_group_quant_fp8_k1536").reference)
    codes, scales = run(torch.zeros(1, 256, dtype=torch.bfloat16))
    assert not codes.float().any()
    assert scales.tolist() == [[pytest.approx(1e-10 / 448)] * 2]
