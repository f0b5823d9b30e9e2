"""Each key of a config is read: another value is another answer, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytest

from generator.models.architectures import ARCHITECTURES
from generator.models.config import config_of, load, model_defaults
from generator.models.keys import IRRELEVANT, UNPLACED
from generator.models.modules import needs, unplaced
from generator.models.parallel import Deployment
from generator.problems import Failure
from tests.unit.models.mapped import mapped

WINDOWED = {"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 2}
# as configs before transformers 5 have RoPE
TURNED: dict[str, Any] = {"rope_parameters": {"rope_type": "default"}}
SOME_DENSE = {"mlp_only_layers": [0]}
EXPERTS = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}
# figures beside the defaults, under which keys matter that else would not
BESIDE: list[dict[str, Any]] = [
    {},
    WINDOWED,
    SOME_DENSE,
    TURNED,
    EXPERTS,
    # the default of glm4_moe has 96 heads of 4096 / 96
    {"head_dim": 128, **TURNED},
    {"interleave_moe_layer_step": 2},
    {**EXPERTS, "n_group": 2},
    {"mlp_layer_types": ["dense", "sparse"] * 100},
    {"layer_types": ["linear_attention", "full_attention"] * 100},
    {"hybrid_override_pattern": "ME*E-"},
    {"layers_block_type": ["linear_attention", "full_attention"]},
]
OTHERS: Mapping[str, list[Any]] = {
    "dtype": ["float16"],
    "sliding_window": [96, 128],
    "use_sliding_window": [False],
    "final_logit_softcapping": [30.5],
    "attn_logit_softcapping": [50.5],
    "head_dim": [32, 512],
    "num_key_value_heads": [4, 1],
    "moe_latent_size": [1024],
    "use_bidirectional_attention": [True],
    "layer_types": [
        [kind] * 200
        for kind in ("full_attention", "sliding_attention", "linear_attention")
    ],
    "mlp_layer_types": [["sparse"] * 200, ["dense"] * 200],
    "mlp_only_layers": [[1]],
    "moe_layers": [[0]],
    "no_rope_layers": [[1] * 200, [0] * 200],
    "layers_block_type": [["mlp"]],
    "mtp_layers_block_type": [["full_attention"]],
    "time_step_limit": [[0.0, 5.0]],
    "rope_parameters": [{"rope_type": "default", "partial_rotary_factor": 0.75}],
    "mamba_ssm_cache_dtype": ["bfloat16"],
    "topk_method": ["greedy", "noaux_tc"],
    "indexer_types": [["shared"]],
    "clip_qkv": [8.0],
}
# what the answer does not depend on, and why
SAME = {
    "num_hidden_layers": "how often, not what",
    "indexer_types": "how often keys are chosen anew",
    "routed_scaling_factor": "an input of the routing, see the test below",
}
LATENT = {
    "num_key_value_heads": "each head has keys made of the latent",
    "head_dim": "it is qk_rope_head_dim",
    "rope_parameters": "they are in the cache and in sm_scale, which are inputs",
}
TYPES = sorted(model_defaults())
KINDS = {ARCHITECTURES[k].defaults or k: ARCHITECTURES[k] for k in ARCHITECTURES}


def excused(kind: str) -> set[str]:
    """Return the keys of an architecture that its answer does not depend on."""
    # a softmax without a factor is a plain one
    factor = "routed_scaling_factor" if "softmax" in KINDS[kind].scores else ""
    same = SAME.keys() - {factor}
    keys = {*same, *(LATENT if KINDS[kind].mixer in ("mla", "dsa") else ())}
    if KINDS[kind].activation:
        # experts have one of their own
        keys.add("hidden_act")
    return keys & model_defaults()[kind].keys()


KEYS = [
    (kind, key)
    for kind in TYPES
    for key in sorted(model_defaults()[kind].keys() - excused(kind))
]


def bases(kind: str) -> Iterator[dict[str, Any]]:
    """Yield figures of an architecture: those of transformers, and some beside."""
    figures = {k: v for k, v in model_defaults()[kind].items() if v not in (None, [])}
    for more in BESIDE:
        beside = {"model_type": kind, **figures, **more}
        if not isinstance(answer(beside), str):
            yield beside


def answer(figures: Mapping[str, Any]) -> Any:
    """Return everything that is said of a config."""
    config = config_of("tiny", figures)
    try:
        rows = [asdict(need) for need in needs(config, Deployment())]
        return rows, unplaced(config, Deployment())
    except Failure as failure:
        return str(failure)


def others(key: str, value: Any) -> list[Any]:
    if key in OTHERS:
        return OTHERS[key]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return ["gelu", "silu"]
    if value is None:
        return [2, 1]
    assert isinstance(value, (int, float)), (key, value)
    return [value * 2, value // 2, 0, 1]


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_another_value_is_another_answer(kind: str, key: str) -> None:
    assert key not in IRRELEVANT
    assert any(
        answer({**figures, key: other}) != answer(figures)
        for figures in bases(kind)
        for other in others(key, figures.get(key, model_defaults()[kind][key]))
    )


def test_the_answer_depends_on_nothing_that_is_excused() -> None:
    for kind in TYPES:
        for key in excused(kind) - {"num_hidden_layers"}:
            figures = next(bases(kind))
            rope = {**figures.get("rope_parameters", {}), "factor": 2.0}
            other = {"hidden_act": "gelu", "rope_parameters": rope}
            changed = {**figures, key: other.get(key, 7)}
            assert answer(changed) == answer(figures), (kind, key)


def test_a_factor_that_the_definition_has_is_a_constant() -> None:
    config = load("deepseek-v3")
    (need,) = (n for n in needs(config, Deployment()) if n.op_type == "moe")
    assert need.constants["routed_scaling_factor"] == 2.5


@pytest.mark.parametrize("name", mapped())
def test_every_key_of_a_published_config_is_read_or_said(name: str) -> None:
    config = load(name)
    left = unplaced(config, Deployment())
    unread = config.figures.keys() - config.asked - IRRELEVANT.keys() - {"text_config"}
    asked_for = {key for key in unread if config.figures[key] is not False}
    assert not asked_for - UNPLACED.keys(), left


def test_a_key_that_nothing_is_known_of_is_said() -> None:
    figures = {**load("llama-3.1-8b").figures, "z_loss": 0.1, "odd": None}
    config = config_of("tiny", figures)
    assert unplaced(config, Deployment()) == ["what 'z_loss' changes"]


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_architecture_has_defaults(kind: str) -> None:
    assert ARCHITECTURES[kind].defaults or kind in model_defaults()


def test_reasons_name_each_key_once() -> None:
    assert not IRRELEVANT.keys() & UNPLACED.keys()
