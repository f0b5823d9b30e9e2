"""Each key of a config is read: another value is another answer, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytest

from generator.models.architectures import ARCHITECTURES
from generator.models.config import config_of, load, model_defaults, names
from generator.models.keys import IRRELEVANT, UNPLACED
from generator.models.modules import needs, unplaced
from generator.models.parallel import Deployment
from generator.problems import Failure

WINDOWED = {"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 2}
# as configs before transformers 5 have RoPE
TURNED: dict[str, Any] = {"rope_parameters": {"rope_type": "default"}}
SOME_DENSE = {"mlp_only_layers": [0]}
# figures beside the defaults, under which keys matter that else would not
BESIDE: Mapping[str, list[dict[str, Any]]] = {
    "qwen2": [WINDOWED],
    "qwen3": [WINDOWED],
    # its default has 96 heads of 4096 / 96
    "glm4_moe": [{"head_dim": 128, **TURNED}],
    "qwen3_moe": [WINDOWED, SOME_DENSE],
    "qwen3_next": [SOME_DENSE, TURNED],
    "llama4_text": [{"interleave_moe_layer_step": 2}],
    "nemotron_h": [
        {"hybrid_override_pattern": "ME*E-"},
        {"layers_block_type": ["linear_attention", "full_attention"]},
    ],
}
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
    "layer_types": [["full_attention"] * 200, ["sliding_attention"] * 200],
    "mlp_layer_types": [["sparse"] * 200],
    "mlp_only_layers": [[1]],
    "moe_layers": [[0]],
    "no_rope_layers": [[1] * 200],
    "layers_block_type": [["mlp"]],
    "mtp_layers_block_type": [["full_attention"]],
    "time_step_limit": [[0.0, 5.0]],
    "rope_parameters": [{"rope_type": "default", "partial_rotary_factor": 0.75}],
    "mamba_ssm_cache_dtype": ["bfloat16"],
}
# what the answer does not depend on, and why
SAME = {
    ("", "num_hidden_layers"): "how often, not what",
    ("", "routed_scaling_factor"): "an input of the routing, see the test below",
    ("deepseek_v3", "num_key_value_heads"): "each head has keys made of the latent",
    ("deepseek_v32", "num_key_value_heads"): "each head has keys made of the latent",
    ("deepseek_v3", "head_dim"): "it is qk_rope_head_dim",
    ("deepseek_v32", "head_dim"): "it is qk_rope_head_dim",
    ("deepseek_v3", "rope_parameters"): "they are in the cache and in sm_scale, inputs",
    (
        "deepseek_v32",
        "rope_parameters",
    ): "they are in the cache and in sm_scale, inputs",
    ("gpt_oss", "hidden_act"): "experts have an activation of their own",
}
TYPES = sorted(model_defaults())
KEYS = [
    (kind, key)
    for kind in TYPES
    for key in model_defaults()[kind]
    if ("", key) not in SAME and (kind, key) not in SAME
]


def bases(kind: str) -> Iterator[dict[str, Any]]:
    """Yield figures of an architecture: those of transformers, and some beside."""
    figures = {k: v for k, v in model_defaults()[kind].items() if v not in (None, [])}
    figures = {"model_type": kind, **figures}
    beside = BESIDE.get(kind, [])
    if kind not in ("nemotron_h", "glm4_moe"):
        yield figures
    for more in beside:
        yield {**figures, **more}


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
    assert isinstance(value, (int, float)), (key, value)
    return [value * 2, value // 2, 0, 1]


@pytest.mark.parametrize("kind", TYPES)
def test_the_defaults_of_transformers_are_accepted(kind: str) -> None:
    for figures in bases(kind):
        assert not isinstance(answer(figures), str), answer(figures)


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_another_value_is_another_answer(kind: str, key: str) -> None:
    assert key not in IRRELEVANT
    different = [
        answer({**figures, key: other}) != answer(figures)
        for figures in bases(kind)
        for other in others(key, figures.get(key, model_defaults()[kind][key]))
    ]
    assert any(different)


def test_the_answer_depends_on_nothing_that_is_excused() -> None:
    for kind, key in SAME:
        for each in [kind] if kind else TYPES:
            if key in model_defaults()[each] and key != "num_hidden_layers":
                other = {"hidden_act": "gelu", "rope_parameters": {"factor": 2.0}}
                for figures in bases(each):
                    changed = {**figures, key: other.get(key, 7)}
                    assert answer(changed) == answer(figures), (each, key)


def test_a_factor_that_the_definition_has_is_a_constant() -> None:
    config = load("deepseek-v3")
    (need,) = (n for n in needs(config, Deployment()) if n.op_type == "moe")
    assert need.constants["routed_scaling_factor"] == 2.5


@pytest.mark.parametrize("name", names())
def test_every_key_of_a_published_config_is_read_or_said(name: str) -> None:
    config = load(name)
    left = unplaced(config, Deployment())
    unread = config.figures.keys() - config.asked - IRRELEVANT.keys() - {"text_config"}
    assert not unread - UNPLACED.keys(), left


def test_a_key_that_nothing_is_known_of_is_said() -> None:
    figures = {**load("llama-3.1-8b").figures, "z_loss": 0.1, "odd": None}
    config = config_of("tiny", figures)
    assert unplaced(config, Deployment()) == ["what 'z_loss' changes"]


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_architecture_has_defaults(kind: str) -> None:
    assert ARCHITECTURES[kind].defaults or kind in model_defaults()


def test_reasons_name_each_key_once() -> None:
    assert not IRRELEVANT.keys() & UNPLACED.keys()
