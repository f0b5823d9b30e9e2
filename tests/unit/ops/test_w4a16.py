"""Packed int4 weights: PyTorch's kernel on the CPU, and words unpacked by hand."""

from __future__ import annotations

import torch

from generator.ops.op_types.gemm_w4a16 import op
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import loaded, run_of, sized

AXES = {"N": 64, "K": 384, "num_groups": 3}


def test_pytorch_means_the_same_by_codes_scales_and_zeros():
    definition = sized("w4a16_int4pack_n1536_k4096", **AXES, bytes_k=192)
    case = next(c for c in op.cases(definition) if c.name == "odd-rows")
    inputs = op.make_inputs(definition, case, Stream("w4a16"))
    octets = inputs["codes"].view(torch.uint8)
    codes = torch.stack((octets >> 4, octets & 15), dim=2).flatten(1).int()
    packed = torch._convert_weight_to_int4pack_for_cpu(codes, 2)
    factors = inputs["scales_and_zeros"]
    product = torch._weight_int4pack_mm_for_cpu(inputs["x"], packed, 128, factors)
    expected = op.oracle(definition, inputs)
    assert torch.allclose(product.double(), expected, rtol=8e-3, atol=8e-3)


def column_of(name, words, zeros):
    """Return a row of the weight that AWQ's, or a column that GPTQ's, words stand for."""
    run = run_of(loaded(name).reference)
    x = torch.eye(128, dtype=torch.float16)
    shape = (1, words.shape[1] * (8 if "awq" in name else 1))
    scales = torch.ones(shape, dtype=torch.float16)
    return run(x, words, zeros, scales)


def test_a_word_of_awq_has_its_columns_in_turns():
    # nibbles 0 to 7, the lowest first, are columns 0, 2, 4, 6, 1, 3, 5, 7
    words = torch.zeros(128, 1, dtype=torch.int32)
    words[3] = 0x76543210
    zeros = torch.full((1, 1), 0x11111111, dtype=torch.int32)
    weight = column_of("w4a16_awq_n1280_k8192", words, zeros)
    assert weight[3].tolist() == [-1, 3, 0, 4, 1, 5, 2, 6]
    assert weight[4].tolist() == [-1] * 8


def test_a_word_of_gptq_has_eight_rows_and_zeros_are_one_more():
    words = torch.zeros(16, 8, dtype=torch.int32)
    words[1, 2] = 0x76543210
    zeros = torch.full((1, 1), 0x33333333, dtype=torch.int32)
    weight = column_of("w4a16_gptq_n1280_k8192", words, zeros)
    assert weight[8:16, 2].tolist() == [-4, -3, -2, -1, 0, 1, 2, 3]
    assert weight[0:8, 2].tolist() == [-4] * 8
