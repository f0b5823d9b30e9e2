"""Every domain mutant is caught; those that could not differ are not listed."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest
import torch

from generator.ops.domain_mutants import domain_mutants
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Definition, Interface
from tests.builders import ROOT, known
from tests.unit.ops.geometries import REPRESENTATIVES, definition_and_run, reduced
from tests.unit.ops.survivors import Caught

EVERY = sorted(path.stem for path in (ROOT / "definitions").glob("*/*.json"))
OF_EVERY_OUTPUT = ("zero", "negated")
MASKS = ("mask aligned top-left", "mask one too strict", "mask missing")
ATTENTION = (
    "LSE in natural logarithm",
    "scale missing",
    "scale doubled",
    "output 1 % too large",
    "outputs stale from the last call",
    "outputs swapped",
)
PAGES = ("page order ignored", "first page of a sequence ignored")
HEADS = "query head h reads KV head h % kv for h // ratio"
ROUTED = ("gate and up swapped", "experts permuted", "one expert wrong")
BLOCKS = tuple(
    f"scale of {which}"
    for which in ("the hidden states transposed", "gemm1 transposed", "gemm1 per row")
)
# what a dataset's maintainer asks about by name
CHECKLIST = {
    "gqa_paged_decode_h32_kv8_d128_ps64": (
        *ATTENTION,
        *PAGES,
        "last page full",
        "K and V swapped",
        HEADS,
    ),
    "gqa_paged_decode_h32_kv8_d128_ps1": (*ATTENTION, *PAGES, "K and V swapped", HEADS),
    "gqa_paged_prefill_causal_h32_kv8_d128_ps64": (
        *ATTENTION,
        *MASKS,
        *PAGES,
        "last page full",
        HEADS,
    ),
    "gqa_ragged_prefill_causal_h32_kv8_d128": (
        *ATTENTION,
        *MASKS,
        "K and V swapped",
        HEADS,
    ),
    "mla_paged_prefill_causal_h16_ckv512_kpe64_ps64": (
        *ATTENTION,
        *MASKS,
        *PAGES,
        "last page full",
        "rotary part left out",
    ),
    "mla_ragged_prefill_causal_h16_qk192_vo128": (
        *ATTENTION,
        *MASKS,
        "rotary part left out",
    ),
    "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64": (
        *ATTENTION,
        "indices local instead of global",
        "padding taken as token 0",
    ),
    "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64": (
        "indices local instead of global",
        "page order ignored",
        "last page full",
        "relu missing",
    ),
    "rmsnorm_h4096": ("eps ten times too large", "weight with +1"),
    "rmsnorm_h5376": ("eps ten times too large", "weight without +1"),
    "fused_add_rmsnorm_h4096": ("residual not added", "weight missing"),
    "gemm_n3072_k3072": ("B not transposed", "last product missing"),
    "rope_with_cos_sin_cache_neox_style_d128_rd64": (
        "pairs interleaved",
        "rotary_dim ignored",
        "sin negated",
    ),
    **{
        f"gdn_{stage}_qk4_v8_d128_k_last": (
            "state decay after the update",
            "beta missing",
            "K/V state transposed",
            "softplus missing",
            "value head h reads key head h % k for h // ratio",
        )
        for stage in ("decode", "mtp", "prefill")
    },
    "mamba_ssu_decode_h128_d64_s128_ng8": (
        "slot -1 written",
        "softplus missing",
        "state decay after the update",
        "K/V state transposed",
    ),
    "top_p_sampling_from_probs_v128256": (
        "top-p excluding the crossing token",
        "p reached and not crossed",
    ),
    "top_k_top_p_sampling_from_probs_v128256": (
        "top-p excluding the crossing token",
        "top-k then top-p without renormalising",
        "p reached and not crossed",
    ),
    "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048": (
        *ROUTED,
        *BLOCKS,
        "bias kept in the weights",
        "weights not renormalised",
        "groups by their best instead of their best two",
        "local expert offset ignored",
    ),
    "moe_fp8_block_scale_renorm_topk8_e128_h2048_i768": (
        *ROUTED,
        *BLOCKS,
        "weights not renormalised",
    ),
    "trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192": (
        *ROUTED,
        "bias used",
        "score scales the output",
    ),
    "trtllm_fp4_block_scale_routed_moe_topk8_e128_h2048_i768": ROUTED,
    "append_paged_kv_cache_kv8_d128_ps64": ("pages in the other layout",),
    "split_qkv_h32_kv8_d128": ("heads by groups of keys", "k and v swapped"),
    "trtllm_fp8_per_tensor_scale_moe_topk8_e128_h2048_i768": (
        *ROUTED,
        "scales of gate and up swapped",
    ),
}


def names_of(definition):
    return [mutant.name for mutant in domain_mutants(definition)]


def identified(value):
    return value if isinstance(value, str) else "-".join(map(str, value.values()))


@pytest.mark.parametrize(("name", "axes"), REPRESENTATIVES, ids=identified)
def test_no_mutant_of_a_representative_survives(name, axes):
    caught = Caught(*definition_and_run(name, axes))
    assert caught.accused == []
    assert caught.survivors == []


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_no_mutant_of_any_definition_survives(name):
    caught = Caught(*definition_and_run(name, reduced(name)))
    assert caught.accused == []
    assert caught.survivors == []


def test_a_defect_that_nothing_shows_is_a_survivor():
    # a batch of one row: its rows in another order are the same rows
    caught = Caught(*definition_and_run("rmsnorm_h128", {}), cases=["one-row"])
    assert "output along batch_size: shifted by one" in caught.survivors
    assert "eps ten times too large" in caught.survivors
    assert "output zero" not in caught.survivors


@pytest.mark.parametrize(
    ("name", "output", "survivor"),
    [
        ("rmsnorm_h128", "output", "output 1 % too large"),
        ("gemm_n128_k2048", "C", "inputs rounded to bfloat16"),
        (
            "rope_with_cos_sin_cache_neox_style_d128_rd64",
            "q_out",
            "q_out 1 % too large",
        ),
        ("gdn_decode_qk4_v8_d128_k_last", "output", "output 1 % too large"),
    ],
)
def test_a_tolerance_that_is_too_wide_lets_mutants_survive(name, output, survivor):
    # a factor of the whole has a bound of its own
    wide = Override(output, Tolerance(rtol=0.1, atol=0.1, bias=0.1), "widened")
    axes = dict(REPRESENTATIVES)[name]
    definition, run = definition_and_run(name, axes)
    caught = Caught(definition, run, sizes=("small",), tolerances=(wide,))
    assert survivor in caught.survivors


@pytest.mark.parametrize("name", CHECKLIST)
def test_the_named_defects_are_listed(name):
    listed = names_of(known(name))
    assert len(set(listed)) == len(listed)
    assert set(CHECKLIST[name]) <= set(listed)


@pytest.mark.parametrize("name", EVERY)
def test_every_definition_has_the_defects_of_its_outputs_and_of_its_family(name):
    definition = known(name)
    listed = names_of(definition)
    for output in definition.interface.outputs:
        assert {f"{output} {what}" for what in OF_EVERY_OUTPUT} <= set(listed)
    of_outputs = names_of(replace(definition, op_type="another"))
    further = len(listed) - len(of_outputs)
    assert further >= 4, f"mutants.py of {definition.op_type}: {further} of 4 needed"


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("gqa_paged_decode_h5_kv1_d128_ps1", HEADS),
        ("gqa_paged_decode_h5_kv1_d128_ps1", "K and V of the next KV head"),
        ("gqa_paged_decode_h5_kv1_d128_ps1", "last page full"),
        ("gqa_paged_decode_h5_kv1_d128_ps1", "pages of a sequence reversed"),
        ("gqa_paged_decode_h6_kv1_d128_ps64", "mask missing"),
        ("gqa_paged_prefill_causal_h5_kv1_d128_ps1", "last page full"),
        ("mla_ragged_prefill_causal_h8_qk192_vo128", HEADS),
        ("mla_paged_decode_h8_ckv512_kpe64_ps1", "last page full"),
        (
            "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps1",
            "indices local instead of global",
        ),
        ("rmsnorm_h128", "residual not added"),
        ("rmsnorm_h128", "weight without +1"),
        ("rmsnorm_h5376", "weight with +1"),
        ("gemm_n128_k2048", "B not transposed"),
        (
            "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e384_h7168_i2048",
            "local expert offset ignored",
        ),
        (
            "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e48_h7168_i2048",
            "groups by their best instead of their best two",
        ),
        ("top_k_sampling_from_probs_v128256", "top-p excluding the crossing token"),
        ("top_k_sampling_from_probs_v128256", "p reached and not crossed"),
        ("split_qkv_h8_kv1_d128", "heads by groups of keys"),
        ("append_paged_kv_cache_kv1_d128_ps64", "pages in the other layout"),
    ],
)
def test_what_could_not_differ_is_not_listed(name, mutant):
    assert mutant not in names_of(known(name))
    assert any(mutant in names_of(known(other)) for other in CHECKLIST)


@pytest.mark.parametrize("name", ["rmsnorm_h128", "gdn_mtp_qk4_v8_d128_k_last"])
def test_a_mutant_has_the_signature_of_what_it_wraps(name):
    definition, run = definition_and_run(name, {})
    for mutant in domain_mutants(definition):
        assert inspect.signature(mutant.wrap(run)) == inspect.signature(run)


def test_outputs_of_any_kind_can_be_spoilt():
    outputs = {
        "wide": "float64[rows]",
        "short": "float8_e4m3fn[rows]",
        "flags": "bool[rows]",
        "count": "int32",
    }
    interface = Interface({"x": "float32[rows]"}, outputs)

    def run(x):
        return x.double(), x.to(torch.float8_e4m3fn), x > 2.0, 7

    x = torch.tensor([1.0, 2.0, 3.0])
    right = run(x)
    found = {}
    for mutant in domain_mutants(Definition("any", "any", interface, {})):
        wrong = mutant.wrap(run)
        wrong(x + 1.0)
        found[mutant.name] = wrong(x)
    for name, values in found.items():
        assert len(values) == 4
        assert any(
            a is not b and not torch.equal(torch.as_tensor(a), torch.as_tensor(b))
            for a, b in zip(values, right, strict=True)
        ), name
    assert found["short negated"][1].tolist() == [-1.0, -2.0, -3.0]
    assert found["wide along rows: the last zero"][0].tolist() == [1.0, 2.0, 0.0]
    assert found["outputs stale from the last call"][0].tolist() == [2.0, 3.0, 4.0]
    assert "short 1 % too large" not in found
    assert "flags negated" not in found
    assert "count zero" not in found


def test_another_interface_has_the_defects_of_any_outputs():
    definition = known("gqa_paged_decode_h32_kv8_d128_ps64")
    without = {n: t for n, t in definition.interface.inputs.items() if n != "sm_scale"}
    other = replace(definition, interface=replace(definition.interface, inputs=without))
    listed = names_of(other)
    assert "output zero" in listed
    assert "scale missing" not in listed
    assert "page order ignored" in listed
