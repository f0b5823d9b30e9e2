"""Models that are not bundled, and each key of each architecture with another value.

What the map says of them is what transformers builds; else it says that it does not know.
"""

from __future__ import annotations

from typing import Any

import pytest

from generator.models.config import config_of, model_defaults
from generator.models.modules import needs, unplaced
from generator.models.parallel import Deployment
from generator.problems import Failure
from tests.unit.models.foreign import FOREIGN
from tests.unit.models.test_data import OTHER, answers, ask, with_transformers

# figures that change modules, constants or sizes; None is the other of yes and no
VALUES: dict[str, Any] = {
    "attention_bias": None,
    "attention_out_bias": None,
    "mlp_bias": None,
    "use_bias": None,
    "use_conv_bias": None,
    "qkv_bias": None,
    "mamba_proj_bias": None,
    "use_qk_norm": None,
    "norm_topk_prob": None,
    "use_sliding_window": None,
    "attn_output_gate": None,
    "rope_interleave": None,
    "head_dim": 48,
    "num_key_value_heads": 2,
    "rms_norm_eps": 3e-6,
    "layer_norm_epsilon": 3e-6,
    "hidden_act": "gelu",
    "hidden_activation": "gelu",
    "mlp_hidden_act": "silu",
    "sliding_window": 777,
    "sliding_window_pattern": 2,
    "max_window_layers": 2,
    "num_experts_per_tok": 3,
    "num_experts": 24,
    "num_local_experts": 24,
    "n_routed_experts": 24,
    "n_shared_experts": 3,
    "moe_intermediate_size": 320,
    "moe_latent_size": 96,
    "first_k_dense_replace": 2,
    "mlp_only_layers": [1],
    "decoder_sparse_step": 2,
    "interleave_moe_layer_step": 2,
    "n_group": 2,
    "partial_rotary_factor": 0.25,
    "q_lora_rank": None,
    "kv_lora_rank": 256,
    "v_head_dim": 96,
    "intermediate_size": 736,
    "linear_num_value_heads": 16,
    "linear_conv_kernel_dim": 3,
    "n_groups": 4,
}
# set also where an architecture has no such key
EVERYWHERE = (
    "mlp_bias",
    "partial_rotary_factor",
    "attention_out_bias",
    "moe_latent_size",
)
CONTRADICTING = {
    # RoPE has another length than what it turns: transformers fails in its forward
    ("deepseek_v3", "head_dim"),
    ("glm4_moe_lite", "head_dim"),
    ("glm4_moe_lite", "partial_rotary_factor"),
    ("mistral4", "head_dim"),
    ("olmoe", "head_dim"),
    ("youtu", "head_dim"),
    # and here it wants a rank
    ("deepseek_v32", "q_lora_rank"),
    ("glm_moe_dsa", "q_lora_rank"),
}


def variants() -> dict[str, dict[str, Any]]:
    """Return the architectures as transformers has them, each with one other figure."""
    found = {}
    for kind, defaults in model_defaults().items():
        base = {"model_type": kind, **OTHER.get(kind, {})}
        if kind == "nemotron_h":
            base |= {"hybrid_override_pattern": "M-*EM-*E", "num_hidden_layers": 8}
        found[kind] = base
        for key, value in VALUES.items():
            known = key in defaults or key in EVERYWHERE
            if not known or (kind, key) in CONTRADICTING:
                continue
            is_flag = value is None and key != "q_lora_rank"
            other = not defaults.get(key, False) if is_flag else value
            found[f"{kind}, {key} {other}"] = {**base, key: other}
    return found


def said(whole: dict[str, Any]) -> str:
    """Return what the map says that it does not know, or why it refuses."""
    try:
        return "; ".join(unplaced(config_of("model", whole), Deployment()))
    except Failure as failure:
        return f"refused: {failure}"


@pytest.mark.parametrize("name", FOREIGN)
def test_a_model_of_somebody_else_is_mapped(name: str) -> None:
    assert needs(config_of(name, FOREIGN[name]), Deployment())


@with_transformers
@pytest.mark.parametrize("name", FOREIGN)
def test_it_is_what_transformers_builds(name: str) -> None:
    assert answers()[name] == []


@pytest.mark.slow
@with_transformers
def test_each_other_figure_is_followed_or_said_to_be_unknown() -> None:
    silent = {}
    every = variants()
    placed = {k: v for k, v in every.items() if not said(v).startswith("refused")}
    found = ask(placed, {})
    for name, whole in every.items():
        _, _, asked = name.partition(", ")
        words, lines = said(whole), found.get(name, [])
        if lines and f"'{asked.partition(' ')[0]}'" not in words:
            silent[name] = lines[:2]
    assert len(found) > 400
    assert silent == {}
