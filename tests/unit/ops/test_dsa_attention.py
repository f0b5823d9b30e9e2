"""Sparse attention of dsa_paged: faults planted in the reference, the adapters."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from generator.ops.attention.flashinfer import workspace
from generator.ops.op_types.dsa_paged import op as dsa_paged
from generator.running import parametrize as spread
from kernel_judge.inputs.trial import same_bits
from tests.builders import (
    cases_of,
    class_of,
    loaded,
    oracle_failures,
    replaced,
    run_of,
    sized,
    trial_of,
)

NAME = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
PS1 = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps1"
SHAPE = {"num_qo_heads": 2, "topk": 256}
SMALL = sized(NAME, **SHAPE)
NAMES = list(SMALL.interface.inputs)
REFERENCE = loaded(NAME).reference
CHOSEN = "sparse_indices[t][sparse_indices[t] >= 0].long()"
# fault → the text and what replaces it
FAULTS = {
    "-1 taken as the last token": (">= 0]", ">= -1]"),
    "rotary part subtracted": (" + q_pe[t]", " - q_pe[t]"),
    "rotary part of other tokens": ("kpe_tokens[chosen]", "kpe_tokens[chosen.flip(0)]"),
    "values of other tokens": ("dim=-1) @ ckv)", "dim=-1) @ ckv.flip(0))"),
    "offset ignored": (CHOSEN, f"{CHOSEN} // 64 * 64"),
    "last token dropped": (CHOSEN, f"{CHOSEN}[:-1]"),
}
# the order of a list says nothing
SORTED = (CHOSEN, f"{CHOSEN}.sort().values")


def rendered(run, definition=SMALL):
    return class_of(dsa_paged, definition, run)


def failures(text):
    return oracle_failures(rendered(run_of(text)))


@pytest.mark.parametrize("name", [NAME, PS1])
def test_the_reference_passes_every_case(name):
    cls = rendered(run_of(loaded(name).reference), sized(name, **SHAPE))
    assert oracle_failures(cls) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault):
    assert failures(replaced(REFERENCE, *FAULTS[fault]))


def test_the_order_of_a_list_says_nothing():
    assert failures(replaced(REFERENCE, *SORTED)) == []


def test_padding_between_tokens_shows_where_a_list_is_read_up_to_it():
    text = "(sparse_indices[t] < 0).nonzero().flatten().tolist()"
    first = f"sparse_indices[t][: ({text} + [len(sparse_indices[t])])[0]].long()"
    assert failures(replaced(REFERENCE, CHOSEN, first)) == ["scattered-padding"]


def test_a_query_without_tokens_gives_zeros_and_minus_infinity():
    run = run_of(REFERENCE)

    def sentinel(*inputs):
        output, lse = run(*inputs)
        return output, lse.clamp_min(-5e4)

    assert oracle_failures(rendered(sentinel)) == ["nothing-chosen"]


def test_a_repeated_index_counts_twice():
    q = torch.zeros(1, 1, 4)
    ckv = torch.tensor([[[8.0] * 4], [[2.0] * 4]])
    indices = torch.tensor([[0, 1, 1, -1]], dtype=torch.int32)
    inputs = [q, q[..., :2], ckv, torch.zeros(2, 1, 2), indices, 1.0]
    output, lse = run_of(REFERENCE)(*inputs)
    assert output.flatten().tolist() == [4.0] * 4
    assert lse.item() == pytest.approx(math.log2(3))
    found, bits = dsa_paged.oracle(SMALL, dict(zip(NAMES, inputs, strict=True)))
    assert found.flatten().tolist() == [4.0] * 4
    assert bits.item() == pytest.approx(math.log2(3))


def inputs_of(name, definition=SMALL):
    cls = rendered(run_of(REFERENCE), definition)
    (case,) = (c for c in cls.op.cases(definition) if c.name == name)
    return trial_of(cls, case).inputs


def test_lists_are_distinct_shuffled_and_within_the_pool():
    for case in cases_of(rendered(None), ("small", "medium")):
        inputs = inputs_of(case.name)
        slots = inputs["ckv_cache"].shape[0] * inputs["ckv_cache"].shape[1]
        rows = zip(inputs["sparse_indices"], case.params["counts"], strict=True)
        for row, count in rows:
            chosen = row[row != -1]
            assert len(chosen) == count == len(chosen.unique())
            assert int(row.max()) < slots
            if count > 30:
                assert not torch.equal(chosen, chosen.sort().values)


def test_the_ends_of_the_pool_are_chosen():
    inputs = inputs_of("pool-ends")
    slots = inputs["ckv_cache"].shape[0] * inputs["ckv_cache"].shape[1]
    assert inputs["sparse_indices"][1, :2].tolist() == [slots - 1, 0]


def test_queries_without_tokens_are_not_held_against_a_kernel():
    inputs = inputs_of("nothing-chosen")
    rows = dsa_paged.defined_rows(SMALL, inputs)
    assert rows.tolist() == [True, False, True, False]


def test_sglang_has_nothing_for_sparse_attention():
    assert dsa_paged.sglang_backends(SMALL) == ()


class Wrapper:
    """Stand in for the MLA wrapper: attend as planned, to pages of one token."""

    def __init__(self, scratch, *, backend):
        assert backend in ("fa2", "fa3")

    def plan(self, starts, kv_starts, pages, lens, *rest):
        for tensor in (starts, kv_starts, pages, lens):
            assert tensor.dtype == torch.int32
            assert tensor.is_contiguous()
        heads, ckv, kpe, page_size, causal, self.scale, *dtypes = rest
        assert (heads, ckv, kpe, page_size, causal) == (2, 512, 64, 1, False)
        assert dtypes == [torch.bfloat16] * 2
        assert torch.equal(kv_starts.diff(), lens)
        assert starts.tolist() == list(range(len(lens) + 1))
        self.lists = pages.split(lens.tolist())

    def run(self, q, q_pe, ckv, kpe, *, return_lse):
        assert return_lse
        assert ckv.shape[1] == kpe.shape[1] == 1
        width = max(len(row) for row in self.lists)
        padded = [
            torch.nn.functional.pad(row, (0, width - len(row)), value=-1)
            for row in self.lists
        ]
        output, lse = run_of(REFERENCE)(
            q, q_pe, ckv, kpe, torch.stack(padded), self.scale
        )
        # what the real kernels return without a token is of no use
        return output, lse.clamp_min(-5e4)


def sparse_kernel(query, cache, scratch, nope, ckv, kpe, tables, lens, most, **options):
    """Stand in for FlashInfer's sparse kernel, which counts on padding behind."""
    assert options.pop("backend") == "trtllm-gen"
    assert options.pop("return_lse")
    assert options.pop("bmm2_scale") == 1.0
    assert options.pop("sparse_mla_top_k") == most == tables.shape[2]
    scale = options.pop("bmm1_scale")
    assert not options
    assert (nope, ckv, kpe) == (128, 512, 64)
    assert query.shape[1] == 1
    assert cache.shape[1:] == (64, 576)
    assert tables.dtype == lens.dtype == torch.int32
    assert int(lens.min()) > 0
    for row, length in zip(tables[:, 0], lens.tolist(), strict=True):
        assert bool((row[:length] >= 0).all())
        assert bool((row[length:] == -1).all())
    output, lse = run_of(REFERENCE)(
        query[:, 0, :, :ckv].contiguous(),
        query[:, 0, :, ckv:],
        cache[..., :ckv],
        cache[..., ckv:],
        tables[:, 0],
        scale,
    )
    return output[:, None], lse


@pytest.fixture
def flashinfer(monkeypatch):
    """Install a module named flashinfer with both kernels."""
    module = ModuleType("flashinfer")
    module.mla = SimpleNamespace(BatchMLAPagedAttentionWrapper=Wrapper)
    decode = SimpleNamespace(trtllm_batch_decode_with_kv_cache_mla=sparse_kernel)
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    monkeypatch.setitem(sys.modules, "flashinfer.decode", decode)
    monkeypatch.setattr("generator.ops.attention.flashinfer.WORKSPACE_BYTES", 64)
    workspace.cache_clear()
    yield
    workspace.cache_clear()


@pytest.mark.usefixtures("flashinfer")
@pytest.mark.parametrize("backend", ["fa2", "fa3", "trtllm-gen"])
@pytest.mark.parametrize("name", [NAME, PS1])
def test_the_adapters_pass_the_chosen_tokens(name, backend):
    definition = sized(name, **SHAPE)
    cls = rendered(run_of(REFERENCE), definition)
    for case in cases_of(cls, ("small", "medium")):
        trial = trial_of(cls, case)
        given = trial.fresh_inputs()
        made = cls.subject().op.kernels["flashinfer"].call(definition, given, backend)
        rows = cls.op.defined_rows(definition, trial.inputs)
        for found, expected in zip(made, trial.outputs, strict=True):
            torch.testing.assert_close(
                found[rows], expected[rows], rtol=1e-2, atol=1e-4
            )
        assert all(same_bits(given[key], trial.inputs[key]) for key in given)


def test_the_sparse_kernel_is_not_asked_before_blackwell():
    backends = {b.name: b for b in dsa_paged.flashinfer_backends(SMALL)}
    assert list(backends) == ["fa2", "fa3", "trtllm-gen"]
    assert backends["trtllm-gen"].min_sm == 100


def test_a_skip_says_so_where_a_provider_has_nothing():
    params = spread._over_backends(
        rendered(None).subject(),
        "sglang",
        cases_of(rendered(None)),
        torch.device("cpu"),
    )
    (param,) = params
    assert "has nothing for" in param.values[0].reason
