"""The order of the tokens is right, and SGLang's module is itself again after use."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from generator.ops.op_types.moe.sglang_calls import (
    align_blocks,
    block_sizes,
    triton_moe,
)

FOLDER = "sglang.srt.layers.moe.moe_runner.triton_utils"


def aligned(topk_ids, experts, block):
    """Return what the kernel would be given, from buffers as large as SGLang's."""
    pairs = topk_ids.numel()
    length = (
        pairs * block if pairs < experts + 1 else pairs + (experts + 1) * (block - 1)
    )
    length = (length + 3) // 4 * 4
    sorted_ids = torch.empty(length, dtype=torch.int32)
    expert_ids = torch.empty(-(-length // block), dtype=torch.int32)
    total = torch.empty(1, dtype=torch.int32)
    bounds = torch.empty(experts + 2, dtype=torch.int32)
    align_blocks(topk_ids, experts + 1, block, sorted_ids, expert_ids, total, bounds)
    return sorted_ids.tolist(), expert_ids.tolist(), int(total), bounds.tolist()


def test_the_example_in_sglang_s_documentation():
    ids = torch.tensor([[2, 3, 4], [1, 2, 4], [1, 3, 4], [1, 2, 3]])
    sorted_ids, experts, total, _ = aligned(ids, 5, 4)
    expected = [3, 6, 9, 12, 0, 4, 10, 12, 1, 7, 11, 12, 2, 5, 8, 12]
    assert sorted_ids[:total] == expected
    assert experts[: total // 4] == [1, 2, 3, 4]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("block", [1, 4, 16, 64])
@pytest.mark.parametrize(
    ("tokens", "topk", "experts"), [(1, 1, 1), (1, 8, 128), (3, 2, 4), (67, 8, 32)]
)
def test_against_a_loop(tokens, topk, experts, block, dtype):
    torch.manual_seed(tokens)
    # experts that are elsewhere are -1
    ids = torch.randint(-1, experts, (tokens, topk)).to(dtype)
    expected_ids, expected_experts, ends = [], [], [0]
    for expert in range(-1, experts):
        mine = [i for i, e in enumerate(ids.flatten().tolist()) if e == expert]
        mine += [ids.numel()] * (-len(mine) % block)
        expected_ids += mine
        expected_experts += [expert] * (len(mine) // block)
        ends.append(len(expected_ids))
    sorted_ids, of_blocks, total, bounds = aligned(ids, experts, block)
    assert total == len(expected_ids)
    assert sorted_ids[:total] == expected_ids
    assert set(sorted_ids[total:]) <= {ids.numel()}
    assert of_blocks[: total // block] == expected_experts
    assert set(of_blocks[total // block :]) <= {-1}
    assert bounds == ends


@pytest.fixture
def kernel(monkeypatch):
    """Put modules in the place of SGLang's Triton MoE."""
    parts = FOLDER.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    kernel = ModuleType(f"{FOLDER}.fused_moe")
    align = ModuleType(f"{FOLDER}.moe_align_block_size")
    kernel.get_exec = kernel.get_parallel = kernel.try_get_optimal_moe_config = "real"
    kernel.fused_experts_impl = lambda: (
        kernel.get_exec().moe.enable_fused_moe_sum_all_reduce,
        kernel.get_parallel().tp_group,
        kernel.try_get_optimal_moe_config(1, 2, return_down_config=True),
        align.sgl_moe_align_block_size,
    )
    for module in (kernel, align):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return kernel, align


def test_what_a_server_would_say_is_given_and_taken_back(kernel):
    kernel, align = kernel
    with triton_moe(block_shape=(128, 128)) as fused_experts_impl:
        *flags, (config, down), aligner = fused_experts_impl()
        assert flags == [False, None]
        assert config["BLOCK_SIZE_K"] == config["BLOCK_SIZE_N"] == 128
        assert down == (None, None)
        assert aligner is align_blocks
        config.clear()  # SGLang takes keys out of it
        assert kernel.try_get_optimal_moe_config(1) == block_sizes((128, 128))
        assert not hasattr(kernel, "use_symmetric_memory"), "what is not there stays so"
    assert kernel.get_exec == "real"
    assert not hasattr(align, "sgl_moe_align_block_size")


def test_it_is_taken_back_after_an_error_too(kernel):
    kernel, align = kernel
    align.sgl_moe_align_block_size = "compiled"

    def fail() -> None:
        with triton_moe() as fused_experts_impl:
            assert fused_experts_impl()[-1] == "compiled"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert kernel.get_exec == "real"
    assert align.sgl_moe_align_block_size == "compiled"


def test_block_sizes_of_one_s_own(kernel):
    own = {**block_sizes(None), "BLOCK_SIZE_M": 16}
    with triton_moe(config=own):
        assert kernel[0].try_get_optimal_moe_config() == own


def test_a_light_installation_never_sums_a_single_expert(kernel):
    kernel[0]._is_cuda = False
    kernel[0].fused_experts_impl = lambda *tensors, **keywords: (*tensors, keywords)
    x = torch.ones(3, 4)
    weights, ids = torch.full((3, 1), 0.5), torch.tensor([[2], [0], [1]])
    with triton_moe() as fused_experts_impl:
        *_, padded, chosen, keywords = fused_experts_impl(
            x, x, x, weights, ids, inplace=False
        )
        assert padded.tolist() == [[0.5, 0.0]] * 3
        assert chosen.tolist() == [[2, -1], [0, -1], [1, -1]]
        assert keywords == {"inplace": False}
        two = torch.cat([ids, ids], 1)
        assert fused_experts_impl(x, x, x, weights, two)[-2] is two
