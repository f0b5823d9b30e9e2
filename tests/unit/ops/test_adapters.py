"""How definition inputs map to FlashInfer's arguments, seen by a stand-in module.

A stand-in shows the mapping alone; that the kernels take it is shown on a GPU.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from generator.ops.attention.flashinfer import workspace
from generator.ops.op_types.gemm import op as gemm
from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.mla_paged import op as mla_paged
from generator.ops.op_types.rmsnorm import op as rmsnorm
from generator.ops.paging import input_table, kv_lengths
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import same_bits
from tests.builders import sized


class Recorder:
    """Stand in for a wrapper: remember how it was made, planned and run."""

    made: list[Recorder]

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options
        self.made.append(self)

    def plan(self, *arguments, **options):
        self.planned, self.plan_options = arguments, options

    def run(self, *arguments, **options):
        self.given, self.run_options = arguments, options
        return "output", "lse"


@pytest.fixture
def flashinfer(monkeypatch):
    """Install a module named flashinfer that records what it is asked."""
    calls = []

    def recorder(name):
        made = []
        return type(name, (Recorder,), {"made": made}), made

    def norm(name):
        def kernel(*arguments):
            calls.append((name, arguments))
            return name

        return kernel

    module = ModuleType("flashinfer")
    prefill, module.prefills = recorder("Prefill")
    decode, module.decodes = recorder("Decode")
    mla, module.mlas = recorder("Mla")
    module.BatchPrefillWithPagedKVCacheWrapper = prefill
    module.BatchDecodeWithPagedKVCacheWrapper = decode
    module.mla = SimpleNamespace(BatchMLAPagedAttentionWrapper=mla)
    names = ("rmsnorm", "gemma_rmsnorm", "fused_add_rmsnorm", "gemma_fused_add_rmsnorm")
    module.norm = ModuleType("flashinfer.norm")
    for name in names:
        setattr(module.norm, name, norm(name))
    module.calls = calls
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    monkeypatch.setitem(sys.modules, "flashinfer.norm", module.norm)
    monkeypatch.setattr("generator.ops.attention.flashinfer.WORKSPACE_BYTES", 64)
    workspace.cache_clear()
    yield module
    workspace.cache_clear()


def call(op, name, case_name, backend, **axes):
    definition = sized(name, **axes)
    (case,) = (c for c in op.cases(definition) if c.name == case_name)
    inputs = op.make_inputs(definition, case, Stream(name))
    result = op.flashinfer_ground_truth(definition, dict(inputs), backend)
    return inputs, case, result


def equal(found, expected):
    assert found.dtype == torch.int32
    assert found.tolist() == list(expected)


SMALL = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8}


def test_decode_is_planned_in_the_wrappers_order(flashinfer):
    inputs, case, result = call(
        gqa_paged, "gqa_paged_decode_h32_kv8_d128_ps64", "boundaries", "fa2", **SMALL
    )
    assert result == ("output", "lse")
    (wrapper,) = flashinfer.decodes
    assert wrapper.arguments[1:] == ("NHD",)
    assert wrapper.options == {"use_tensor_cores": True, "backend": "fa2"}
    starts, pages, last, *sizes = wrapper.planned
    equal(starts, inputs["kv_indptr"].tolist())
    equal(pages, inputs["kv_indices"].tolist())
    equal(last, [(n - 1) % 64 + 1 for n in case.params["kv_lens"]])
    assert sizes == [4, 2, 8, 64]
    assert wrapper.plan_options == {
        "sm_scale": inputs["sm_scale"],
        "q_data_type": torch.bfloat16,
        "kv_data_type": torch.bfloat16,
    }
    q, (k, v) = wrapper.given
    assert same_bits(q, inputs["q"])
    assert same_bits(k, inputs["k_cache"])
    assert same_bits(v, inputs["v_cache"])
    assert wrapper.run_options == {"return_lse": True}


def test_decode_on_cuda_cores_uses_no_tensor_cores(flashinfer):
    name = "gqa_paged_decode_h32_kv8_d128_ps64"
    call(gqa_paged, name, "single-token", "cuda-cores", **SMALL)
    (wrapper,) = flashinfer.decodes
    assert wrapper.options == {"use_tensor_cores": False, "backend": "auto"}


@pytest.mark.parametrize("stage", ["decode", "prefill"])
def test_an_empty_sequence_says_that_its_last_page_holds_nothing(flashinfer, stage):
    name = {
        "decode": "gqa_paged_decode_h32_kv8_d128_ps64",
        "prefill": "gqa_paged_prefill_causal_h32_kv8_d128_ps64",
    }[stage]
    inputs, _, _ = call(gqa_paged, name, "empty-sequence", "fa2", **SMALL)
    (wrapper,) = flashinfer.decodes + flashinfer.prefills
    last = wrapper.planned[2 if stage == "decode" else 3]
    expected = {"decode": [17, 0, 5, 0], "prefill": [0, 17, 9, 2]}[stage]
    equal(last, expected)
    # the interface itself says 1 there, which a wrapper would count as a token
    assert 0 not in inputs["kv_last_page_len"].tolist()


@pytest.mark.parametrize("backend", ["fa2", "fa3"])
def test_prefill_is_causal_and_planned_in_the_wrappers_order(flashinfer, backend):
    name = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"
    inputs, _, result = call(gqa_paged, name, "chunked", backend, **SMALL)
    assert result == ("output", "lse")
    (wrapper,) = flashinfer.prefills
    assert not flashinfer.decodes
    assert wrapper.arguments[1:] == ("NHD",)
    assert wrapper.options == {"backend": backend}
    queries, starts, pages, last, *sizes = wrapper.planned
    equal(queries, [0, 16, 17, 50, 114])
    equal(starts, inputs["kv_indptr"].tolist())
    equal(pages, inputs["kv_indices"].tolist())
    equal(last, [16, 1, 64, 1])
    assert sizes == [4, 2, 8, 64]
    assert wrapper.plan_options["causal"] is True
    assert wrapper.plan_options["sm_scale"] == inputs["sm_scale"]
    assert wrapper.run_options == {"return_lse": True}


@pytest.mark.parametrize("stage", ["decode", "prefill_causal"])
def test_pages_of_one_token_are_full(flashinfer, stage):
    name = f"gqa_paged_{stage}_h32_kv8_d128_ps1"
    inputs, case, _ = call(gqa_paged, name, "extreme-logits", "fa2", **SMALL)
    assert "kv_last_page_len" not in inputs
    (wrapper,) = flashinfer.decodes + flashinfer.prefills
    last = wrapper.planned[2 if stage == "decode" else 3]
    equal(last, [1] * len(case.params["kv_lens"]))
    assert wrapper.planned[-1] == 1


@pytest.mark.parametrize(
    ("ratio", "names"),
    [
        (1, ("cuda-cores", "fa2", "fa3")),
        (3, ("fa2", "fa3")),
        (5, ("fa2", "fa3")),
        (8, ("cuda-cores", "fa2", "fa3")),
        (10, ("fa2", "fa3")),
    ],
)
def test_the_kernel_without_tensor_cores_has_few_head_ratios(ratio, names):
    axes = {"num_qo_heads": 2 * ratio, "num_kv_heads": 2}
    decode = sized("gqa_paged_decode_h32_kv8_d128_ps64", **axes)
    found = tuple(b.name for b in gqa_paged.flashinfer_backends(decode))
    assert found == (*names, "xqa")
    prefill = sized("gqa_paged_prefill_causal_h32_kv8_d128_ps64", **axes)
    found = tuple(b.name for b in gqa_paged.flashinfer_backends(prefill))
    assert found == ("fa2", "fa3")


def test_fa3_is_hoppers_alone():
    (fa2, fa3) = mla_paged.flashinfer_backends(
        sized("mla_paged_decode_h16_ckv512_kpe64_ps64")
    )
    assert (fa2.name, fa2.min_sm) == ("fa2", 80)
    assert (fa3.name, fa3.min_sm, fa3.max_sm) == ("fa3", 90, 90)


@pytest.mark.parametrize(
    ("stage", "page_size", "case", "queries"),
    [
        ("decode", 64, "empty-sequence", [0, 1, 2, 3, 4]),
        ("decode", 1, "empty-sequence", [0, 1, 2, 3, 4]),
        ("prefill_causal", 64, "empty-sequence", [0, 0, 3, 3, 5]),
        ("prefill_causal", 1, "chunked", [0, 16, 17, 50, 114]),
    ],
)
def test_mla_is_planned_in_the_wrappers_order(
    flashinfer, stage, page_size, case, queries
):
    name = f"mla_paged_{stage}_h16_ckv512_kpe64_ps{page_size}"
    inputs, chosen, result = call(mla_paged, name, case, "fa2", num_qo_heads=2)
    assert result == ("output", "lse")
    (wrapper,) = flashinfer.mlas
    assert wrapper.options == {"backend": "fa2"}
    assert len(wrapper.planned) == 12
    assert wrapper.plan_options == {}
    qo, starts, pages, kv_lens, *rest = wrapper.planned
    equal(qo, queries)
    equal(starts, inputs["kv_indptr"].tolist())
    equal(pages, inputs["kv_indices"].tolist())
    equal(kv_lens, chosen.params["kv_lens"])
    assert kv_lens.tolist() == kv_lengths(input_table(inputs), page_size)
    causal = stage == "prefill_causal"
    dtype = torch.bfloat16
    assert rest == [2, 512, 64, page_size, causal, inputs["sm_scale"], dtype, dtype]
    assert [value.shape for value in wrapper.given] == [
        inputs[key].shape for key in ("q_nope", "q_pe", "ckv_cache", "kpe_cache")
    ]
    assert all(
        same_bits(value, inputs[key])
        for value, key in zip(
            wrapper.given, ("q_nope", "q_pe", "ckv_cache", "kpe_cache"), strict=True
        )
    )
    assert wrapper.run_options == {"return_lse": True}


@pytest.mark.parametrize(
    ("name", "kernel", "eps"),
    [
        ("rmsnorm_h4096", "rmsnorm", 1e-5),
        ("rmsnorm_h5376", "gemma_rmsnorm", 1e-6),
        ("fused_add_rmsnorm_h7168", "fused_add_rmsnorm", 1e-6),
        ("fused_add_rmsnorm_h5376", "gemma_fused_add_rmsnorm", 1e-6),
    ],
)
def test_each_norm_has_its_kernel_and_its_eps(flashinfer, name, kernel, eps):
    inputs, _, result = call(rmsnorm, name, "tiny-variance", "", hidden_size=32)
    ((called, arguments),) = flashinfer.calls
    assert called == kernel
    assert arguments[-1] == eps
    for given, value in zip(arguments[:-1], inputs.values(), strict=True):
        assert same_bits(given, value)
    if "residual" in inputs:
        # the fused kernels return nothing and leave the output in their first input
        (output,) = result
        assert output is arguments[0]
    else:
        assert result == kernel


def test_gemm_calls_what_serving_code_calls():
    definition = sized("gemm_n128_k2048", K=16)
    inputs = gemm.make_inputs(definition, gemm.cases(definition)[1], Stream("s"))
    assert [b.name for b in gemm.pytorch_backends(definition)] == ["cublas"]
    found = gemm.pytorch_ground_truth(definition, inputs, "cublas")
    assert found.dtype == torch.float16
    expected = gemm.oracle(definition, inputs)
    torch.testing.assert_close(found.double(), expected, rtol=2e-3, atol=2e-3)
