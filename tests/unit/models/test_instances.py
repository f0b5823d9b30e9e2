"""Definitions that families make for models: the name that is asked for, or none."""

from __future__ import annotations

import json
import re

import pytest

from generator.models.config import load, names
from generator.models.instances import instance
from generator.models.modules import needs
from generator.models.need import Need
from generator.models.parallel import Deployment
from generator.ops.family import definition_json
from generator.problems import Failure
from tests.builders import ROOT


def is_refused(name: str) -> bool:
    """Return whether the map does not place a model: test_data.py says which."""
    try:
        load(name)
    except Failure:
        return True
    return False


MADE = ("gqa_paged", "gqa_ragged", "mla_paged", "mla_ragged", "page_append", "rope")
DEPLOYMENTS = (
    Deployment(),
    Deployment(tp=2, page_size=16),
    Deployment(page_size=1),
    Deployment(kv_dtype="float8_e4m3fn"),
)


NUMBER = re.compile(r"\d+(\.\d+)?(e-?\d+)?")
PLACED = [name for name in names() if not is_refused(name)]


@pytest.mark.parametrize("model", PLACED)
def test_attention_of_every_model_is_made(model):
    config, refused = load(model), set()
    for deployment in DEPLOYMENTS:
        for need in needs(config, deployment):
            if need.op_type in (*MADE, "dsa_paged"):
                spec = instance(config, deployment, need)
                if spec is None:
                    refused.add(need.name)
    # latents without a page size, an indexer and its cache; variants need pages, and an
    # 8-bit cache has no window, cap or sinks, and no append
    parts = ("index", "mla_kv_cache", "_cap", "_sink", "_w", "cache_kve4m3", "scale_q")
    parts = (*parts, "dsa_sparse_attention_kve4m3", "mrope")
    # latents and heads of other lengths than DeepSeek's
    parts = (*parts, "ckv256", "qk256_vo256", "qk128_vo128", "dsa_topk_indexer_fp8_h32")
    assert not {name for name in refused if not any(p in name for p in parts)}


@pytest.mark.parametrize(
    ("name", "op_type", "model"),
    [
        ("gqa_paged_decode_h64_kv8_d128_ps64", "gqa_paged", "llama-3.1-70b"),
        ("gqa_paged_prefill_causal_h64_kv8_d128_ps64", "gqa_paged", "qwen3-32b"),
        (
            "gqa_paged_decode_cap50_w4095_h16_kv8_d256_ps64",
            "gqa_paged",
            "gemma-2-9b",
        ),
        ("gqa_ragged_prefill_causal_h96_kv8_d128", "gqa_ragged", "glm-4.6"),
        ("mla_paged_decode_h128_ckv512_kpe64_ps64", "mla_paged", "deepseek-v3"),
        (
            "dsa_sparse_attention_h128_ckv512_kpe64_topk2048_ps64",
            "dsa_paged",
            "deepseek-v3.2",
        ),
        ("append_paged_kv_cache_kv8_d256_ps64", "page_append", "gemma-2-9b"),
        ("rope_with_cos_sin_cache_gptj_style_d64_rd64", "rope", "kimi-k2"),
    ],
)
def test_an_instance_is_the_datasets_definition_but_for_its_tags(name, op_type, model):
    made = instance(load(model), Deployment(), Need("", op_type, name))
    assert made is not None
    document = json.loads(definition_json(made))
    there = json.loads((ROOT / f"definitions/{op_type}/{name}.json").read_text("utf-8"))
    assert "status:unverified" in document["tags"]
    assert {**document, "tags": []} == {**there, "tags": []}


@pytest.mark.parametrize(
    ("model", "ep", "experts", "scaling"),
    [
        ("kimi-k2", 8, (384, 48), 2.827),
        ("kimi-k2", 1, (384, 384), 2.827),
        ("deepseek-v3", 8, (256, 32), 2.5),
        ("minimax-m2", 2, (256, 128), 1.0),
    ],
)
def test_experts_are_made_with_all_that_the_name_does_not_hold(
    model, ep, experts, scaling
):
    config, deployment = load(model), Deployment(ep=ep)
    (need,) = (n for n in needs(config, deployment) if n.op_type == "moe")
    made = instance(config, deployment, need)
    assert made is not None
    assert (made.const("num_experts"), made.const("num_local_experts")) == experts
    assert made.scalars == {"routed_scaling_factor": scaling}
    file = ROOT / f"definitions/moe/{made.name}.json"
    if file.exists():
        document = json.loads(definition_json(made))
        there = json.loads(file.read_text("utf-8"))
        assert {**document, "tags": []} == {**there, "tags": []}


def test_an_unknown_kind_of_a_family_is_not_made():
    llama = load("llama-3.1-8b")
    for name, op_type in (
        ("rope_of_another_kind_d128_rd128", "rope"),
        ("gqa_paged_decode_odd_h32_kv8_d128_ps64", "gqa_paged"),
        ("mla_paged_decode_h8_ckv256_kpe64_ps64", "mla_paged"),
        ("trtllm_fp8_per_tensor_scale_moe_topk1_e2_h256_i256", "moe"),
    ):
        assert instance(llama, Deployment(), Need("", op_type, name)) is None


def test_names_that_differ_in_a_word_are_not_made_of_one_text() -> None:
    kinds: dict[tuple[str, str], set[str]] = {}
    for model in PLACED:
        config = load(model)
        for need in needs(config, Deployment()):
            if (spec := instance(config, Deployment(), need)) is not None:
                key = spec.op_type, NUMBER.sub("#", spec.reference)
                kinds.setdefault(key, set()).add(NUMBER.sub("#", need.name))
    assert len(kinds) > 40
    assert [of for of in kinds.values() if len(of) > 1] == []
