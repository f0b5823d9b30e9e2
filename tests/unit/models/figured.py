"""Configs with other figures, and what the map says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from generator.dataset.paths import discover_definitions
from generator.models.config import Config, load
from generator.models.coverage import ModuleCoverage, coverage
from generator.models.modules import needs
from generator.models.parallel import Deployment
from tests.builders import ROOT

FP8: dict[str, Any] = {"quant_method": "fp8", "weight_block_size": [128, 128]}
NEMOTRON_3 = {
    "model_type": "nemotron_h",
    "hidden_size": 2688,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 1856,
    "num_hidden_layers": 6,
    "vocab_size": 131072,
    "hybrid_override_pattern": "MEM*EM",
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "n_routed_experts": 128,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "n_shared_experts": 1,
    "routed_scaling_factor": 2.5,
    "layer_norm_epsilon": 1e-5,
}


def with_figures(model: str | Config, **figures: Any) -> Config:
    config = load(model) if isinstance(model, str) else model
    return replace(config, figures={**config.figures, **figures}, asked=set())


def named(config: Config, **options: Any) -> dict[str, set[str]]:
    """Return module → the names of what it needs."""
    found: dict[str, set[str]] = {}
    for need in needs(config, Deployment(**options)):
        found.setdefault(need.module, set()).add(need.name)
    return found


def covered(config: Config, **options: Any) -> list[ModuleCoverage]:
    found = discover_definitions(ROOT)
    return coverage(config, Deployment(**options), ROOT, found, {})
