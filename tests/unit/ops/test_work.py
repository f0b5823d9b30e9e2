"""What 20 definitions can't do without, against counts by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from generator.ops.attention.work import pairs
from generator.ops.work import work_of
from tests.builders import known

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn


def of(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def gemm(m: int, n: int, k: int) -> dict[str, Any]:
    return {"A": of(BF16, m, k), "B": of(BF16, n, k)}


def norm(rows: int, h: int, *more: str) -> dict[str, Any]:
    names = ("hidden_states", *more)
    return {**{n: of(BF16, rows, h) for n in names}, "weight": of(BF16, h)}


def paged(q: torch.Tensor, *cache: int, dtype: torch.dtype = BF16) -> dict[str, Any]:
    # two sequences: pages 0 and 1 with 3 keys of the last, and page 3 with 5
    return {
        "q": q,
        "k_cache": of(dtype, *cache),
        "v_cache": of(dtype, *cache),
        "kv_indptr": ints(0, 2, 3),
        "kv_indices": ints(0, 1, 3),
        "kv_last_page_len": ints(3, 5),
    }


def ragged(heads: int, kv_heads: int, d: int) -> dict[str, Any]:
    # 2 queries of 5 keys, 3 of 3
    return {
        "q": of(BF16, 5, heads, d),
        "k": of(BF16, 8, kv_heads, d),
        "v": of(BF16, 8, kv_heads, d),
        "qo_indptr": ints(0, 2, 5),
        "kv_indptr": ints(0, 5, 8),
    }


# name, the case's axes, inputs, bytes read, bytes written, operations by dtype: written
# out, so that a hand can follow
COUNTS: list[
    tuple[str, dict[str, int], Callable[[], dict[str, Any]], int, int, Any]
] = [
    (
        "gemm_n4096_k4096",
        {"M": 8},
        lambda: gemm(8, 4096, 4096),
        # 8 · 4096 · 2 = 65,536 and 4096 · 4096 · 2 = 33,554,432
        65_536 + 33_554_432,
        65_536,
        {"float16": 268_435_456},
    ),
    (
        "gemm_bf16_n128_k4096",
        {"M": 3},
        lambda: gemm(3, 128, 4096),
        24_576 + 1_048_576,
        768,
        {"bfloat16": 3_145_728},
    ),
    (
        "gemm_n128_k2048",
        {"M": 1},
        lambda: gemm(1, 128, 2048),
        4_096 + 524_288,
        256,
        {"float16": 524_288},
    ),
    (
        "rmsnorm_h4096",
        {"batch_size": 7},
        lambda: norm(7, 4096),
        57_344 + 8_192,
        57_344,
        {},
    ),
    (
        "fused_add_rmsnorm_h4096",
        {"batch_size": 2},
        lambda: norm(2, 4096, "residual"),
        16_384 + 16_384 + 8_192,
        16_384,
        {},
    ),
    (
        "layernorm_eps_1em5_h1280",
        {"batch_size": 4},
        lambda: {
            "hidden_states": of(BF16, 4, 1280),
            "weight": of(torch.float32, 1280),
            "bias": of(torch.float32, 1280),
        },
        10_240 + 5_120 + 5_120,
        10_240,
        {},
    ),
    (
        "silu_and_mul_i14336",
        {"num_tokens": 3},
        lambda: {"input": of(BF16, 3, 28_672)},
        172_032,
        86_016,
        {},
    ),
    (
        "gelu_and_mul_i1152",
        {"num_tokens": 5},
        lambda: {"input": of(BF16, 5, 2_304)},
        23_040,
        11_520,
        {},
    ),
    (
        "merge_state_h32_d128",
        {"seq_len": 2},
        lambda: {
            "v_a": of(BF16, 2, 32, 128),
            "s_a": of(torch.float32, 2, 32),
            "v_b": of(BF16, 2, 32, 128),
            "s_b": of(torch.float32, 2, 32),
        },
        16_384 + 256 + 16_384 + 256,
        16_384 + 256,
        {},
    ),
    (
        "embedding_v16032_h2048",
        {"num_tokens": 4},
        lambda: {
            # one comes twice, one lies outside of the part
            "input_ids": torch.tensor([3, 9, 3, 20_000]),
            "weight": of(BF16, 16_032, 2_048),
            "vocab_start": 0,
        },
        4 * 8 + 2 * 2_048 * 2,
        4 * 2_048 * 2,
        {},
    ),
    (
        "bmm_fp8_b128_n128_k512",
        {"M": 2},
        lambda: {
            "A": of(FP8, 128, 2, 512),
            "B": of(FP8, 128, 128, 512),
            "A_scale": 1.0,
            "B_scale": 1.0,
        },
        131_072 + 8_388_608,
        65_536,
        {"float8_e4m3fn": 33_554_432},
    ),
    (
        "gqa_paged_decode_h32_kv8_d128_ps64",
        {"batch_size": 2, "num_pages": 4, "num_kv_indices": 3, "len_indptr": 3},
        lambda: paged(of(BF16, 2, 32, 128), 4, 64, 8, 128),
        # 64 + 3 and 5 keys are seen: 72 · 8 · 128 · 2 bytes, twice
        16_384 + 2 * 147_456 + 12 + 12 + 8,
        16_384 + 256,
        # 72 pairs · 32 heads · 2 · (128 + 128)
        {"bfloat16": 1_179_648},
    ),
    (
        "gqa_paged_decode_kve4m3_h32_kv4_d128_ps64",
        {"batch_size": 2, "num_pages": 4, "num_kv_indices": 3, "len_indptr": 3},
        lambda: paged(of(BF16, 2, 32, 128), 4, 64, 4, 128, dtype=FP8),
        16_384 + 2 * 36_864 + 12 + 12 + 8,
        16_384 + 256,
        {"float8_e4m3fn": 1_179_648},
    ),
    (
        "gqa_paged_decode_sink_w127_h64_kv8_d64_ps64",
        {"batch_size": 2, "num_pages": 4, "num_kv_indices": 3, "len_indptr": 3},
        lambda: (
            paged(of(BF16, 2, 64, 64), 4, 64, 8, 64) | {"sinks": of(torch.float32, 64)}
        ),
        # the window holds all 72
        16_384 + 256 + 2 * 73_728 + 12 + 12 + 8,
        16_384 + 512,
        {"bfloat16": 1_179_648},
    ),
    (
        "gqa_ragged_prefill_causal_h16_kv2_d128",
        {"total_q": 5, "total_kv": 8, "len_indptr": 3},
        lambda: ragged(16, 2, 128),
        # 2 · 2 · 128 · 2 · 8 keys; queries 5 · 16 · 128 · 2
        20_480 + 2 * 4_096 + 12 + 12,
        20_480 + 320,
        # 4 + 5 and 1 + 2 + 3 pairs: 15 · 16 · 2 · 256
        {"bfloat16": 122_880},
    ),
    (
        "gqa_ragged_prefill_noncausal_h32_kv8_d128",
        {"total_q": 5, "total_kv": 8, "len_indptr": 3},
        lambda: ragged(32, 8, 128),
        40_960 + 2 * 16_384 + 12 + 12,
        40_960 + 640,
        # 2 · 5 + 3 · 3 pairs
        {"bfloat16": 311_296},
    ),
    (
        "gqa_single_decode_h16_kv2_d256",
        {"kv_len": 10},
        lambda: {
            "q": of(BF16, 16, 256),
            "k": of(BF16, 10, 2, 256),
            "v": of(BF16, 10, 2, 256),
        },
        8_192 + 10_240 + 10_240,
        8_192 + 64,
        {"bfloat16": 163_840},
    ),
    (
        "mla_paged_decode_h128_ckv512_kpe64_ps64",
        {"batch_size": 2, "num_pages": 4, "num_kv_indices": 3, "len_indptr": 3},
        lambda: {
            "q_nope": of(BF16, 2, 128, 512),
            "q_pe": of(BF16, 2, 128, 64),
            "ckv_cache": of(BF16, 4, 64, 512),
            "kpe_cache": of(BF16, 4, 64, 64),
            "kv_indptr": ints(0, 2, 3),
            "kv_indices": ints(0, 1, 3),
            "kv_last_page_len": ints(3, 5),
        },
        262_144 + 32_768 + 72 * 1_152 + 12 + 12 + 8,
        262_144 + 1_024,
        # 72 · 128 · 2 · (576 + 512)
        {"bfloat16": 20_054_016},
    ),
    (
        "segment_gemm_fp16_k16_n4096",
        {"total_rows": 5, "num_weights": 3, "num_segments": 2, "len_indptr": 3},
        lambda: {
            "x": of(torch.float16, 5, 16),
            "weights": of(torch.float16, 3, 4096, 16),
            # the second segment is empty
            "seg_indptr": torch.tensor([0, 5, 5]),
            "weight_indices": torch.tensor([2, 0]),
        },
        160 + 24 + 16 + 131_072,
        40_960,
        {"float16": 655_360},
    ),
    (
        "moe_bf16_scaled_input_topk1_e16_h5120_i1024",
        {"seq_len": 3},
        lambda: {
            "hidden_states": of(BF16, 3, 5120),
            "topk_ids": ints(4, 4, 9).view(3, 1),
            "topk_weights": of(torch.float32, 3, 1),
            "w13": torch.zeros(1, dtype=BF16).expand(16, 2048, 5120),
            "w2": torch.zeros(1, dtype=BF16).expand(16, 5120, 1024),
        },
        # 2 experts of 2048 · 5120 and 5120 · 1024 elements
        30_720 + 12 + 12 + 2 * (20_971_520 + 10_485_760),
        30_720,
        # 3 choices · 2 · 5120 · (2048 + 1024)
        {"bfloat16": 94_371_840},
    ),
]


@pytest.mark.parametrize(
    ("name", "axes", "inputs", "read", "written", "flops"),
    COUNTS,
    ids=[one[0] for one in COUNTS],
)
def test_count_is_the_hand_s(
    name: str,
    axes: dict[str, int],
    inputs: Callable[[], dict[str, Any]],
    read: int,
    written: int,
    flops: dict[str, int],
) -> None:
    found = work_of(known(name), axes, inputs())
    assert found.read == read
    assert found.written == written
    assert dict(found.flops) == flops


def test_twenty_definitions_are_counted() -> None:
    assert len({one[0] for one in COUNTS}) == 20


def test_operations_are_those_that_torch_counts() -> None:
    a, b = (torch.randn(size, 64) for size in (5, 96))
    with FlopCounterMode(display=False) as counter:
        a @ b.T
    definition = known("gemm_n128_k2048")
    found = work_of(definition, {"M": 5, "N": 96, "K": 64}, {"A": a, "B": b})
    assert sum(found.flops.values()) == counter.get_total_flops()


@pytest.mark.parametrize(
    ("queries", "keys", "causal", "window", "count"),
    [
        ([1], [7], False, -1, 7),
        ([3], [3], True, -1, 6),
        ([2], [5], True, -1, 9),
        # keys before all queries are not seen by the last ones
        ([2], [5], True, 1, 4),
        # more queries than keys: the first see none
        ([4], [2], True, -1, 3),
        ([0, 2], [9, 2], True, -1, 3),
    ],
)
def test_pairs(
    queries: list[int], keys: list[int], causal: bool, window: int, count: int
) -> None:
    assert pairs(queries, keys, causal, window) == count


def test_where_integers_choose_nothing_is_said_to_be_read() -> None:
    inputs = {
        "input": of(torch.float32, 2, 64),
        "offsets": ints(0, 1),
        "lengths": ints(3, 4),
    }
    found = work_of(known("top_k_ragged_transform_k2048"), {"num_rows": 2}, inputs)
    assert found.read == 0
    assert not found.flops
