"""Attention whose parts are other definitions, and appending: held against those."""

from __future__ import annotations

import ast

import pytest
import torch

from generator.ops.paging import indptr
from generator.ops.registry import op_module
from kernel_judge.constraints import evaluate
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import cases_of, class_of, known, loaded, run_of, sized

HEADS = {"num_qo_heads": 6, "num_kv_heads": 2, "head_dim": 16}


def subjects(name, **axes):
    """Yield inputs of each small case of a definition, and what run() gives for them."""
    definition = sized(name, **axes)
    op, run = op_module(definition.op_type), run_of(loaded(name).reference)
    for case in cases_of(class_of(op, definition, run)):
        inputs = op.make_inputs(definition, case, Stream(name, case.name))
        yield inputs, run(*inputs.values())


def same(actual, expected):
    """Demand that two answers of one arithmetic are the same, NaN nowhere."""
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=8e-3, atol=1e-5)


@pytest.mark.parametrize("mask", ["causal_h32_kv8_d128", "noncausal_h20_kv20_d64"])
def test_one_sequence_is_a_ragged_batch_of_one(mask):
    ragged = run_of(loaded(f"gqa_ragged_prefill_{mask}").reference)
    heads = HEADS if mask.startswith("causal") else HEADS | {"num_kv_heads": 6}
    for inputs, found in subjects(f"gqa_single_prefill_{mask}", **heads):
        q, k, v, scale = inputs.values()
        same(found, ragged(q, k, v, indptr([len(q)]), indptr([len(k)]), scale))


def test_one_decode_is_a_ragged_batch_of_one_query():
    ragged = run_of(loaded("gqa_ragged_prefill_causal_h32_kv8_d128").reference)
    for inputs, (output, lse) in subjects("gqa_single_decode_h32_kv8_d128", **HEADS):
        q, k, v, scale = inputs.values()
        expected = ragged(q[None], k, v, indptr([1]), indptr([len(k)]), scale)
        same((output[None], lse[None]), expected)


def test_prefill_on_decode_is_two_calls():
    prefill = run_of(loaded("gqa_single_prefill_causal_h32_kv8_d128").reference)
    decode = run_of(loaded("gqa_paged_decode_h32_kv8_d128_ps64").reference)
    for inputs, (output_p, output_d) in subjects("pod_causal_h32_kv8_d128_ps64"):
        given = list(inputs.values())
        same((output_p,), prefill(*given[:3], given[-1])[:1])
        same((output_d,), decode(*given[3:])[:1])


def test_attention_within_one_chunk_is_causal():
    ragged = run_of(loaded("gqa_ragged_prefill_causal_h32_kv8_d128").reference)
    name = "chunked_attention_prefill_c8192_h40_kv8_d128"
    within = [
        (inputs, found)
        for inputs, found in subjects(name, **HEADS)
        if int(inputs["kv_indptr"].diff().max()) <= 8192
    ]
    assert len(within) == 7
    for inputs, found in within:
        same(found, ragged(*inputs.values()))


def test_all_blocks_are_attention_without_a_mask():
    name = "block_sparse_run_r64_c64_h12_kv12_d128"
    dense = run_of(loaded("gqa_single_prefill_noncausal_h20_kv20_d64").reference)
    blocks = {"block_rows": 7, "block_columns": 8, **HEADS}
    alike = 0
    for inputs, (output, lse) in subjects(name, **blocks):
        rows, columns = len(inputs["q"]), len(inputs["k"])
        if len(inputs["indices"]) == rows * columns:
            alike += 1
            q, k, v = (inputs[n].flatten(0, 1) for n in ("q", "k", "v"))
            expected = dense(q, k, v, inputs["sm_scale"])
            same((output.flatten(0, 1), lse.flatten(0, 1)), expected)
    assert alike == 2


def test_blocks_of_equal_sizes_are_blocks_of_one_size():
    of_one = run_of(loaded("block_sparse_run_r64_c64_h12_kv12_d128").reference)
    varying = run_of(loaded("variable_block_sparse_run_h12_kv12_d128").reference)
    stream = Stream("equal blocks")
    shapes = {"q": (3, 4, 6, 16), "k": (4, 5, 2, 16), "v": (4, 5, 2, 16)}
    q, k, v = (
        stream.child(name).values(shape, 1.0, torch.bfloat16)
        for name, shape in shapes.items()
    )
    mask = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 0]], dtype=torch.bool)
    by_head = [part.flatten(0, 1).transpose(0, 1) for part in (q, k, v)]
    sizes = (torch.full((2, 3), 4), torch.full((2, 4), 5))
    output, lse = varying(*by_head, mask.expand(2, 3, 4), *sizes, 0.25)
    expected = of_one(q, k, v, indptr([2, 1, 3]), mask.nonzero()[:, 1], 0.25)
    same((output.transpose(0, 1), lse.T), [part.flatten(0, 1) for part in expected])


def test_rows_go_to_the_pages_that_the_table_says():
    run = run_of(loaded("append_paged_kv_cache_kv8_d128_ps64").reference)
    cache = torch.zeros(4, 2, 1, 1)
    rows = torch.tensor([5.0, 6.0, 7.0]).view(3, 1, 1)
    # sequence 0 has pages 3 and 0, sequence 1 has page 2
    table = (torch.tensor([3, 0, 2]), torch.tensor([0, 2, 3]), torch.tensor([1, 2]))
    where = (torch.tensor([1, 0, 0]), torch.tensor([1, 2, 1]))
    keys, values = run(rows, -rows, *where, cache, cache, *table)
    assert keys.flatten().tolist() == [6, 0, 0, 0, 0, 5, 0, 7]
    assert values.flatten().tolist() == [-6, 0, 0, 0, 0, -5, 0, -7]
    assert not cache.any()


@pytest.mark.parametrize(
    ("batch_indices", "positions", "holds"),
    [
        ([0, 1], [4, 0], True),
        ([0, -1], [4, 0], False),
        ([0, 2], [4, 0], False),
        ([0, 1], [4, -1], False),
    ],
)
def test_padding_and_strange_sequences_break_a_constraint(
    batch_indices, positions, holds
):
    definition = known("append_paged_kv_cache_kv8_d128_ps64")
    names = {"batch_size": 2, "len_indptr": 3, "num_kv_indices": 2}
    names |= {
        "batch_indices": torch.tensor(batch_indices),
        "positions": torch.tensor(positions),
        "kv_indptr": torch.tensor([0, 1, 2]),
    }
    found = [
        evaluate(ast.parse(constraint, mode="eval").body, names)
        for constraint in definition.interface.constraints
    ]
    assert all(found) == holds


def test_layouts_differ_in_axes_of_other_lengths():
    names = [f"append_paged_kv_cache_{w}kv8_d128_ps64" for w in ("", "hnd_")]
    shapes = [known(n).interface.input_specs["k_cache"].shape for n in names]
    assert shapes[0][1:3] == shapes[1][2:0:-1]
    # equal lengths would hide that the axes were swapped
    for name in names:
        axes = known(name).axes
        assert axes["num_kv_heads"] != axes["page_size"]
