"""The modules of a model, and the definition that each one needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generator.models import attention, mixture
from generator.models.config import Config
from generator.models.need import Need, Projections, norm
from generator.models.parallel import Deployment

_SAMPLING = {
    "top_k": ("sampling", "top_k_sampling_from_probs"),
    "top_p": ("sampling", "top_p_sampling_from_probs"),
    "top_k, top_p": ("sampling", "top_k_top_p_sampling_from_probs"),
    "min_p": ("sampling", "min_p_sampling"),
    "softmax": ("probs", "softmax"),
    "top_k renormalised": ("probs", "top_k_renorm_probs"),
    "top_p renormalised": ("probs", "top_p_renorm_probs"),
}
_UNPLACED = {
    "vision_config": "the vision tower",
    "audio_config": "the audio tower",
    "num_nextn_predict_layers": "the layers that draft several tokens",
    "final_logit_softcapping": "the soft cap of the last logits",
    "attention_chunk_size": "attention within chunks",
}
"""Modules that no definition is named for, by the key of a config that has them."""


def needs(config: Config, deployment: Deployment) -> list[Need]:
    """Return what one GPU runs, in the order of a forward pass, each definition once.

    Raises Failure where a figure is missing, contradicts another or can't be divided.
    """
    found: dict[str, Need] = {}
    for need in modules(config, deployment):
        found.setdefault(need.name, need)
    return list(found.values())


def unplaced(config: Config) -> list[str]:
    """Return the modules of a model for which this software names no definition."""
    return [what for key, what in _UNPLACED.items() if config.get(key)]


def modules(config: Config, deployment: Deployment) -> Iterator[Need]:
    """Yield the need of each module, in the order of a forward pass.

    Several modules may need one definition. Raises Failure as `needs` does.
    """
    norms = _norm_constants(config)
    hidden = config.size("hidden_size")
    vocabulary = config.size("vocab_size")
    shard = deployment.share(config, "vocab_size", vocabulary)
    scaled = "gemma_" if config.architecture.scaled else ""
    yield Need("embedding", "embedding", f"{scaled}embedding_v{shard}_h{hidden}")
    yield norm("norm before the first layer", hidden, norms)
    yield from attention.needs(config, deployment, norms)
    yield norm("norms that add the residual", hidden, norms, fused=True)
    if deployment.tp > 1 and not config.architecture.sandwich:
        name = f"allreduce_add_rmsnorm_tp{deployment.tp}_h{hidden}"
        yield Need("norms behind an all-reduce", "comm", name, norms)
    yield from _feed_forward(config, deployment, hidden)
    yield from Projections(config).head("lm_head", shard, hidden)
    for what, (op_type, kernel) in _SAMPLING.items():
        yield Need(f"sampling, {what}", op_type, f"{kernel}_v{vocabulary}")


def _norm_constants(config: Config) -> Mapping[str, Any]:
    eps = config.get("rms_norm_eps", "norm_eps", "layer_norm_epsilon", "norm_epsilon")
    if not isinstance(eps, float) or not 0.0 < eps < 1e-2:
        config.refuse("rms_norm_eps", "is no number between 0 and 0.01")
    return {"eps": eps, "unit_offset": config.architecture.unit_offset}


def _feed_forward(
    config: Config, deployment: Deployment, hidden: int
) -> Iterator[Need]:
    experts = config.count("num_experts", "num_local_experts", "n_routed_experts")
    key = "intermediate_size"
    if config.get("intermediate_size_mlp"):
        key = "intermediate_size_mlp"
        has_dense = config.size("interleave_moe_layer_step", default=1) > 1
    else:
        first = config.count("first_k_dense_replace")
        has_dense = bool(first or config.get("mlp_only_layers"))
    if not experts or has_dense:
        size = config.size(key)
        yield from mixture.mlp(config, deployment, "MLP", hidden, key, size)
    if experts:
        yield from mixture.needs(config, deployment, hidden, experts)
