"""Cases and inputs serve the interface of every definition that uses them."""

from __future__ import annotations

import importlib
import json

import pytest
import torch

from generator.ops import OPS
from generator.sources import op_source
from generator.support.memory import dtype_of, needed_bytes, shape_of
from generator.support.stream import Stream
from generator.support.tiled import Tiled, fresh
from generator.support.trial import same_bits
from tests.builders import CPU, ROOT, known, sized

FILES = sorted((ROOT / "definitions").glob("*/*.json"))
# one definition of each op_type and interface, shrunk where its size is not the point
ATTENTION = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8}
LATENT = {"num_qo_heads": 2}
DELTA = {"num_q_heads": 2, "num_k_heads": 2, "num_v_heads": 4, "head_size": 16}
# None stands for zeros, for a default, for no buffer
MAY_BE_NONE = {"state", "scale", "intermediate_states_buffer"}
MOE = {"hidden_size": 256, "intermediate_size": 128, "gemm1_out_size": 256}
MOE_BLOCKS = {
    "num_hidden_blocks": 2,
    "num_intermediate_blocks": 1,
    "num_gemm1_out_blocks": 2,
}
INTERFACES = {
    "rmsnorm_h5120": {"hidden_size": 64},
    "fused_add_rmsnorm_h7168": {"hidden_size": 96},
    "gemm_n128_k2048": {"K": 64},
    "gqa_paged_decode_h32_kv8_d128_ps1": ATTENTION,
    "gqa_paged_decode_h32_kv8_d128_ps64": ATTENTION,
    "gqa_paged_prefill_causal_h32_kv8_d128_ps1": ATTENTION,
    "gqa_paged_prefill_causal_h32_kv8_d128_ps64": ATTENTION,
    "mla_paged_decode_h16_ckv512_kpe64_ps1": LATENT,
    "mla_paged_decode_h16_ckv512_kpe64_ps64": LATENT,
    "mla_paged_prefill_causal_h16_ckv512_kpe64_ps1": LATENT,
    "mla_paged_prefill_causal_h16_ckv512_kpe64_ps64": LATENT,
    "gqa_ragged_prefill_causal_h32_kv8_d128": ATTENTION,
    "mla_ragged_prefill_causal_h16_qk192_vo128": {
        "num_qo_heads": 2,
        "num_kv_heads": 2,
    },
    "rope_with_cos_sin_cache_neox_style_d128_rd64": {"head_size": 96},
    "mamba_ssu_decode_h128_d64_s128_ng8": {"nheads": 4, "ngroups": 2},
    "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps1": LATENT,
    "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64": LATENT,
    "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64": {"num_index_heads": 4},
    "gdn_decode_qk4_v8_d128_k_last": DELTA,
    "gdn_mtp_qk4_v8_d128_k_last": DELTA,
    "gdn_prefill_qk4_v8_d128_k_last": DELTA,
    "top_k_sampling_from_probs_v128256": {"vocab_size": 512},
    "top_p_sampling_from_probs_v129280": {"vocab_size": 512},
    "top_k_top_p_sampling_from_probs_v262208": {"vocab_size": 512},
    "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048": MOE | MOE_BLOCKS,
    "moe_fp8_block_scale_renorm_topk10_e128_h2048_i512": MOE | MOE_BLOCKS,
    "trtllm_fp4_block_scale_moe_topk8_e128_h2048_i768": MOE,
    "trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192": MOE,
    "trtllm_fp4_block_scale_routed_moe_topk8_e64_h4096_i1536": MOE,
    "trtllm_fp8_per_tensor_scale_moe_topk8_e128_h2048_i768": MOE,
    "trtllm_fp8_per_tensor_scale_moe_topk1_e16_h5120_i8192": MOE,
}
# weights of so many experts are for a GPU
TOO_LARGE = {
    "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e384_h7168_i2048",
    "trtllm_fp4_block_scale_moe_topk1_e128_h5120_i8192",
    "trtllm_fp4_block_scale_routed_moe_topk1_e128_h5120_i8192",
    "trtllm_fp8_per_tensor_scale_moe_topk1_e128_h5120_i8192",
}


def op_of(op_type):
    return importlib.import_module(f"generator.ops.{op_type}")


def test_every_interface_of_the_repository_is_among_these():
    def key(path):
        value = json.loads(path.read_text("utf-8"))
        if value["op_type"] not in OPS:
            return None
        return value["op_type"], tuple(value["inputs"])

    covered = {(known(n).op_type, tuple(known(n).interface.inputs)) for n in INTERFACES}
    assert {key(path) for path in FILES} - {None} == covered


@pytest.mark.parametrize("op_type", OPS)
def test_an_op_module_has_what_the_harness_asks_for(op_type):
    functions = op_source(op_type).functions
    assert {"cases", "make_inputs", "oracle"} <= set(functions)
    module = op_of(op_type)
    for provider in op_source(op_type).providers:
        assert callable(getattr(module, f"{provider}_backends"))
    for override in module.TOLERANCES:
        assert len(override.reason) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_definition_has_cases_that_fit_a_laptop(path):
    definition = known(path.stem)
    cases = op_of(definition.op_type).cases(definition)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    assert {"small", "medium", "large"} == {case.size for case in cases}
    for case in cases:
        # every axis has a length, else a case's bytes could not be known
        peak_bytes = getattr(op_of(definition.op_type), "peak_bytes", None)
        needed = needed_bytes(definition, case, peak_bytes)
        if case.size == "small":
            assert (needed < 16 * 2**30) == (path.stem not in TOO_LARGE)


@pytest.mark.parametrize("name", INTERFACES)
@pytest.mark.parametrize("size", ["small", "medium"])
def test_inputs_are_those_of_the_interface(name, size):
    definition = sized(name, **INTERFACES[name])
    op = op_of(definition.op_type)
    for case in op.cases(definition):
        if case.size != size:
            continue
        inputs = op.make_inputs(definition, case, Stream(name, case.name))
        assert list(inputs) == list(definition.interface.inputs)
        axes = {**definition.axes, **case.axes}
        for key, spec in definition.interface.input_specs.items():
            value = inputs[key]
            if value is None:
                assert key in MAY_BE_NONE
                continue
            if spec.shape is None:
                kind = int if spec.dtype == "int32" else float
                assert isinstance(value, kind), key
                continue
            if isinstance(value, Tiled):
                value = fresh(value, CPU)
            assert tuple(value.shape) == shape_of(spec, axes), (case.name, key)
            assert value.dtype == dtype_of(spec.dtype), key
            assert value.is_contiguous(), key
            assert value.device.type == "cpu"
            assert bool(torch.isfinite(value.double()).all()), (case.name, key)
        again = op.make_inputs(definition, case, Stream(name, case.name))
        for key in inputs:
            assert same_bits(fresh(inputs[key], CPU), fresh(again[key], CPU))


@pytest.mark.parametrize("name", [n for n in INTERFACES if "paged" in n])
def test_page_tables_are_structurally_valid(name):
    definition = sized(name, **INTERFACES[name])
    op, page_size = op_of(definition.op_type), definition.axes["page_size"]
    for case in op.cases(definition):
        if case.size == "large":
            continue
        inputs = op.make_inputs(definition, case, Stream(name, case.name))
        indptr, pages = inputs["kv_indptr"], inputs["kv_indices"].tolist()
        assert indptr[0] == 0
        assert bool((indptr.diff() >= 0).all())
        assert indptr[-1] == len(pages)
        assert len(set(pages)) == len(pages)
        assert all(0 <= page < case.axes["num_pages"] for page in pages)
        if "qo_indptr" in inputs:
            queries = inputs["qo_indptr"]
            assert bool((queries.diff() >= 0).all())
            assert queries[-1] == case.axes["total_q"]
        if page_size > 1:
            last = inputs["kv_last_page_len"]
            assert bool(((last >= 1) & (last <= page_size)).all())
            partly = last[indptr.diff() > 0] < page_size
            assert bool(partly.any()), "no last page is partly filled"


def test_tiny_variances_are_about_eps_and_zero_rows_are_zero():
    definition = sized("fused_add_rmsnorm_h7168", hidden_size=512)
    op = op_of("rmsnorm")
    cases = {case.name: case for case in op.cases(definition)}

    def total(name):
        made = op.make_inputs(definition, cases[name], Stream(name))
        return made["hidden_states"].double() + made["residual"].double()

    eps = definition.constants["eps"]
    variance = total("tiny-variance").square().mean(dim=1)
    assert bool(((eps / 4 < variance) & (variance < 4 * eps)).all())
    rows = total("zero-rows")
    assert not rows[:2].any()
    assert bool(rows[2:].any(dim=1).all())


def test_the_products_of_gemm_are_about_one():
    definition, op = known("gemm_n128_k2048"), op_of("gemm")
    inputs = op.make_inputs(definition, op.cases(definition)[1], Stream("s"))
    assert op.oracle(definition, inputs).std().item() == pytest.approx(1.0, rel=0.2)
