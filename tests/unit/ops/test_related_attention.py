"""The relations of attention hold for right references and break for planted faults."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from generator.ops.attention.related import merged
from generator.ops.domain_mutants import domain_mutants
from generator.ops.op_types.dsa_paged import op as dsa_paged
from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.gqa_ragged import op as gqa_ragged
from generator.ops.op_types.mla_paged import op as mla_paged
from tests.builders import sized
from tests.unit.ops.related import red, run_named, verdicts

AXES = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 16}
PREFILL_NAME = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"
DECODE_NAME = "gqa_paged_decode_h32_kv8_d128_ps64"
SINGLE_NAME = "gqa_paged_decode_h32_kv8_d128_ps1"
PREFILL = sized(PREFILL_NAME, **AXES, page_size=8)
DECODE = sized(DECODE_NAME, **AXES, page_size=8)
SINGLE = sized(SINGLE_NAME, **AXES)
IN_ROWS = {
    "batch-reversed",
    "batch-in-two",
    "kv-in-two-merged",
    "head-shards-concatenate",
}


MASKS = ("mask aligned top-left", "mask missing", "mask one too strict")


def spoiled(name, fault, definition):
    """Return a reference's run with a fault of the audit's list."""
    (mutant,) = (m for m in domain_mutants(definition) if m.name == fault)
    return mutant.wrap(run_named(name))


def of_prefill(run, **peers):
    return red(gqa_paged, PREFILL, run, **peers)


def of_decode(run, **peers):
    return red(gqa_paged, DECODE, run, **peers)


def test_each_relation_is_listed_where_it_can_be_asked():
    run = run_named(PREFILL_NAME)
    alone = set(verdicts(gqa_paged, PREFILL, run))
    in_prefill = {"prefill-in-chunks", "prefill-by-one-query"}
    assert alone == {*IN_ROWS, *in_prefill, "pages-permuted"}
    decode = (DECODE, run_named(DECODE_NAME))
    assert set(verdicts(gqa_paged, PREFILL, run, peers={"decode": decode})) == {
        *alone,
        "prefill-is-decode",
    }
    # of another geometry is no peer
    other = (sized(DECODE_NAME, **{**AXES, "num_qo_heads": 2}, page_size=8), decode[1])
    assert set(verdicts(gqa_paged, PREFILL, run, peers={"other": other})) == alone
    ragged = sized("gqa_ragged_prefill_causal_h32_kv8_d128", **AXES)
    names = {relation.name for relation in gqa_ragged.OP.relations(ragged)}
    assert names == {*IN_ROWS, *in_prefill}


def test_right_references_hold():
    decode = (DECODE, run_named(DECODE_NAME))
    single = (SINGLE, run_named(SINGLE_NAME))
    assert of_prefill(run_named(PREFILL_NAME), decode=decode) == set()
    assert of_decode(decode[1], single=single) == set()
    name = "mla_paged_prefill_causal_h16_ckv512_kpe64_ps64"
    small = sized(name, num_qo_heads=3, head_dim_ckv=32, head_dim_kpe=8, page_size=8)
    assert red(mla_paged, small, run_named(name)) == set()


def test_a_natural_logarithm_shows_in_the_merge_alone():
    natural = spoiled(DECODE_NAME, "LSE in natural logarithm", DECODE)
    assert of_decode(natural) == {"kv-in-two-merged"}


@pytest.mark.parametrize("mask", MASKS)
def test_a_wrong_mask_shows_in_chunks_or_against_decode(mask):
    run = spoiled(PREFILL_NAME, mask, PREFILL)
    decode = (DECODE, run_named(DECODE_NAME))
    broken = of_prefill(run, decode=decode)
    assert "prefill-is-decode" in broken
    # without its own newest key, a query answers the same in any chunk
    assert ("prefill-in-chunks" in broken) == (mask != "mask one too strict")


@pytest.mark.parametrize(
    ("fault", "relation"),
    [
        ("page order ignored", "pages-permuted"),
        ("pages sorted", "pages-permuted"),
        ("last page full", "pages-permuted"),
        ("kv_indptr off by one", "batch-reversed"),
        ("scale missing", "page-size-1"),
        ("first page of a sequence ignored", "page-size-1"),
        ("last token ignored", "page-size-1"),
    ],
)
def test_a_fault_in_reading_inputs_breaks_its_relation(fault, relation):
    wrong = spoiled(DECODE_NAME, fault, DECODE)
    single = (SINGLE, run_named(SINGLE_NAME))
    assert relation in of_decode(wrong, single=single)


def test_an_lse_without_the_maximum_shows_in_the_merge_alone():
    without = spoiled(DECODE_NAME, "LSE without the maximum", DECODE)
    assert of_decode(without) == {"kv-in-two-merged"}


def test_a_wrong_kv_head_breaks_the_shards_of_heads_alone():
    run = run_named(DECODE_NAME)
    # query head h with KV head h mod 2 for h div 2
    order = torch.tensor([0, 2, 1, 3])

    def wrong(q, *rest):
        output, lse = run(q[:, order].contiguous(), *rest)
        return output[:, order], lse[:, order]

    assert of_decode(wrong) == {"head-shards-concatenate"}


def test_outputs_of_zeros_prove_nothing():
    zeros = spoiled(DECODE_NAME, "output zero", DECODE)
    assert of_decode(zeros) == {*IN_ROWS, "pages-permuted"}


def test_an_answer_kept_from_the_last_call_breaks_the_batch():
    run, kept = run_named(DECODE_NAME), {}

    def stale(q, *rest):
        key = tuple(q.shape)
        if key not in kept:
            kept[key] = run(q, *rest)
        return kept[key]

    assert "batch-reversed" in of_decode(stale)


def test_keys_kept_from_the_last_call_break_the_pages():
    run, kept = run_named(DECODE_NAME), {}

    def stale(q, k_cache, v_cache, *rest):
        k_cache = kept.setdefault(tuple(k_cache.shape), k_cache.clone())
        return run(q, k_cache, v_cache, *rest)

    assert "pages-permuted" in of_decode(stale)


def test_a_row_that_depends_on_its_place_breaks_the_batch():
    run = run_named(DECODE_NAME)

    def placed(q, *rest):
        output, lse = run(q, *rest)
        factor = 1.0 + torch.arange(len(q)) / 50.0
        return (output * factor[:, None, None]).to(output.dtype), lse

    assert of_decode(placed) >= {"batch-reversed", "batch-in-two"}


def test_the_merge_is_attention_over_both_sets():
    first = {"output": torch.tensor([[1.0]]), "lse": torch.tensor([math.log2(3.0)])}
    second = {"output": torch.tensor([[5.0]]), "lse": torch.tensor([0.0])}
    both = merged(first, second)
    torch.testing.assert_close(both["output"], torch.tensor([[2.0]]).double())
    torch.testing.assert_close(both["lse"], torch.tensor([2.0]).double())


SPARSE_NAME = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
SPARSE = sized(
    SPARSE_NAME,
    num_qo_heads=3,
    head_dim_ckv=32,
    head_dim_kpe=8,
    topk=96,
    page_size=8,
)
FLAT = sized(
    SPARSE_NAME.replace("ps64", "ps1"),
    num_qo_heads=3,
    head_dim_ckv=32,
    head_dim_kpe=8,
    topk=96,
)


def of_sparse(run):
    flat = (FLAT, run_named(SPARSE_NAME.replace("ps64", "ps1")))
    return red(dsa_paged, SPARSE, run, flat=flat)


def test_sparse_attention_holds_and_its_faults_show():
    run = run_named(SPARSE_NAME)
    assert of_sparse(run) == set()

    def first_only(q_nope, q_pe, ckv, kpe, indices, scale):
        # as many tokens from the pool's beginning as were chosen
        firsts = torch.arange(indices.shape[1]).expand_as(indices).int()
        return run(q_nope, q_pe, ckv, kpe, firsts.where(indices >= 0, indices), scale)

    assert "slots-permuted" in of_sparse(first_only)

    def natural(*given):
        output, lse = run(*given)
        return output, lse * math.log(2.0)

    assert "lists-in-two-merged" in of_sparse(natural)

    def few_of_many(q_nope, q_pe, ckv, kpe, indices, scale):
        firsts = indices.clone()
        firsts[:, 20:] = -1
        return run(q_nope, q_pe, ckv, kpe, firsts, scale)

    assert of_sparse(few_of_many) >= {"lists-shuffled", "lists-in-two-merged"}

    def padding_read(q_nope, q_pe, ckv, kpe, indices, scale):
        return run(q_nope, q_pe, ckv, kpe, indices.clamp_min(0), scale)

    assert "slots-permuted" in of_sparse(padding_read)


INDEXER_NAME = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"


def test_the_indexer_holds_and_its_faults_show():
    definition = sized(INDEXER_NAME)
    run = run_named(INDEXER_NAME)
    of_indexer = partial(red, dsa_paged, definition)
    assert of_indexer(run) == set()

    def local(q, cache, weights, lens, table):
        pages = torch.arange(table.shape[1]).expand_as(table).int()
        return run(q, cache[table[-1].long()], weights, lens, pages)

    assert of_indexer(local) == {"batch-reversed", "pages-permuted"}

    def other_rows_weights(q, cache, weights, lens, table):
        return run(q, cache, weights[:1].expand_as(weights), lens, table)

    assert "batch-reversed" in of_indexer(other_rows_weights)
