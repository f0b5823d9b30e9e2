"""Tags that contradict a definition: function, parallelism, spelling, layout of scales."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from generator.dataset.model_figures import model_figures, usual_spelling
from generator.ops.registry import op_specs
from generator.rules.load import load_definitions
from generator.rules.tag_claims import check
from tests.builders import ROOT, loaded

PARALLEL = {
    "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e384_h7168_i2048": "tp:8 divides",
    "moe_fp8_block_scale_renorm_topk8_e128_h4096_i1536": "tp:8 divides",
    "trtllm_fp4_block_scale_moe_topk10_e128_h2048_i512": "ep:1 says 512",
    "trtllm_fp4_block_scale_routed_moe_topk10_e128_h2048_i512": "ep:1 says 512",
    "trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192": "tp:8 divides",
    "trtllm_fp4_block_scale_routed_moe_topk1_e16_h5120_i8192": "tp:8 divides",
    "trtllm_fp8_per_tensor_scale_moe_topk1_e16_h5120_i8192": "tp:8 divides",
}
"""Published tags, which stay; docs/findings.md has them."""


def found(definition: Any, rule: str) -> list[str]:
    """Return the messages of a rule about a definition."""
    return [p.message for p in check(definition) if p.rule == rule]


def tagged(name: str, *tags: str) -> Any:
    """Return a definition of the dataset with other tags."""
    return replace(loaded(name), tags=tags)


def test_a_function_that_no_tag_names() -> None:
    name = "gemm_bf16_n128_k4096"
    assert found(loaded(name), "tag-kernel") == []
    (message,) = found(tagged(name, "model:qwen3-14b"), "tag-kernel")
    assert message == "The tag 'fi_api:flashinfer.gemm.mm_bf16' is missing."
    # one segment of another kernel is what float16 is compared with
    assert found(loaded("gemm_n4096_k4096"), "tag-kernel") == []


def test_an_op_type_s_functions_begin_names_of_its_own() -> None:
    every = load_definitions(ROOT).definitions
    for op_type, spec in op_specs().items():
        for beginning in spec.kernels:
            assert any(
                d.op_type == op_type and d.name.startswith(beginning) for d in every
            )


def test_the_dataset_lacks_no_function_and_no_layout() -> None:
    every = load_definitions(ROOT).definitions
    for rule in ("tag-kernel", "tag-layout"):
        assert [d.name for d in every if found(d, rule)] == []


def test_tags_of_parallelism_that_shapes_contradict() -> None:
    every = load_definitions(ROOT).definitions
    wrong = {d.name: found(d, "tag-parallel") for d in every}
    shown = {name: messages for name, messages in wrong.items() if messages}
    assert shown.keys() == PARALLEL.keys()
    for name, (message,) in shown.items():
        assert message.startswith(PARALLEL[name])


@pytest.mark.parametrize("tags", [("tp:8", "ep:1"), ("tp:8",)])
def test_a_share_of_experts_is_divided(tags: tuple[str, ...]) -> None:
    whole = "moe_bf16_scaled_input_topk1_e16_h5120_i8192"
    share = "moe_bf16_scaled_input_topk1_e16_h5120_i1024"
    model = "model:llama-4-scout"
    assert found(tagged(whole, model, *tags), "tag-parallel") == [
        "tp:8 divides intermediate_size, which is the whole 8192."
    ]
    assert found(tagged(share, model, *tags), "tag-parallel") == []
    assert found(tagged(whole, model, "tp:8", "ep:8"), "tag-parallel") == []


def test_two_names_of_one_model() -> None:
    name = "gemm_bf16_n128_k4096"
    definition = tagged(name, "model:qwen3-next", "model:qwen3-next-80b-a3b")
    assert found(definition, "tag-spelling") == [
        "'qwen3-next' is 'qwen3-next-80b-a3b' elsewhere."
    ]


def test_names_of_one_model_have_the_same_figures() -> None:
    for model, figures in model_figures().items():
        usual = usual_spelling(model)
        assert usual in model_figures()
        assert usual_spelling(usual) == usual
        assert usual == model or model_figures()[usual] is figures
    # the same figures are not the same model
    assert usual_spelling("deepseek-r1") == "deepseek-r1"


@pytest.mark.parametrize("kind", ["mxfp4", "mxfp8", "nvfp4"])
def test_scales_row_by_row_say_so(kind: str) -> None:
    definition = loaded(f"{kind}_quantize_k4096")
    assert "layout:linear" in definition.tags
    tags = tuple(tag for tag in definition.tags if tag != "layout:linear")
    (message,) = found(replace(definition, tags=tags), "tag-layout")
    assert message == "'scales' is ['M', 'num_blocks'], one row a token."
