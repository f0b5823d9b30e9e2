"""Definitions needed by MLPs and mixtures of experts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.models.config import Config
from generator.models.deployed import Deployed
from generator.models.layers import DENSE, MOE, experts
from generator.models.need import Need
from generator.models.projections import (
    BLOCK,
    FP8_BLOCK,
    MXFP4,
    quantisation,
)
from generator.problems.messages import show

_LARGEST_FACTOR = 1000
_TOP_K = ("num_experts_per_tok", "moe_topk", "num_experts_per_token")
_EXPERT_SIZE = (
    "moe_intermediate_size",
    "expert_intermediate_size",
    "intermediate_size",
)
_SHARED_SIZE = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
)
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "relu2": "relu2",
}
_SCORES = {
    "sigmoid": "sigmoid",
    "softmax": "softmax",
    # dots.llm1's file has the name of the method here; its code knows no other score
    "noaux_tc": "sigmoid",
}
_METHODS = {"noaux_tc": "", "greedy": "unbiased_", "group_limited_greedy": "unbiased_"}
"""How DeepSeek's configs call a choice of experts: with a learned bias or without."""
_PLAIN = {
    "topk_grouped_unbiased_softmax": "",
    "topk_grouped_unbiased_softmax_renorm": "_renorm",
}
"""Choices that are plain ones of a softmax, where there is one group and no factor."""
_MXFP4_BLOCK = 32
_MOE_MODULES = ("mlp", "mixer", "feed_forward", "block_sparse_moe")
_EXPERT_MODULES = tuple(f"{module}.experts" for module in _MOE_MODULES)
_ROUTER_MODULES = tuple(
    f"{module}.{router}" for module in _MOE_MODULES for router in ("gate", "router")
)


def feed_forward(model: Deployed) -> Iterator[Need]:
    """Yield what MLPs need, then what experts need. Raises Failure as figures do."""
    config = model.config
    feeds = {layer.feed for layer in model.layers}
    # Llama 4 has another size in its dense layers
    keys = ("intermediate_size_mlp", "intermediate_size")
    key = next((key for key in keys if config.get(key)), keys[-1])
    if DENSE in feeds:
        yield from _mlp(model, "MLP", key, config.size(key), DENSE)
    if MOE in feeds:
        yield from _experts(model)


def _mlp(
    model: Deployed, module: str, key: str, size: int, where: str
) -> Iterator[Need]:
    """Yield the products and the activation of an MLP of an intermediate size.

    `where` is the kind of layers that have it.
    """
    config, of = model.config, model.projections(where)
    hidden = config.size("hidden_size")
    width = model.deployment.share(config, key, size)
    gated = config.architecture.gated
    bias = _mlp_bias(config)
    if config.architecture.bias_key == "use_bias":
        bias = config.flag("use_bias")
    owners = ("mlp", "mixer", "feed_forward")
    if where == MOE:
        owners = ("shared_experts", "shared_expert", "shared_mlp")
    ups = ("gate_proj", "up_proj", "gate_up_proj")
    parts = (width, width) if gated else (width,)
    yield from of.linear(
        f"{module}, {'gate and up' if gated else 'up'}",
        sum(parts),
        hidden,
        *(f"{owner}.{up}" for owner in owners for up in ups),
        parts=parts,
        divided="n",
        bias=bias,
    )
    name = _act(config, gated) + f"_i{width}"
    yield Need(f"{module}, activation", "activation", name, at=("act_fn",))
    yield from of.linear(
        f"{module}, down",
        hidden,
        width,
        *(f"{owner}.down_proj" for owner in owners),
        divided="k",
        bias=bias,
    )


def _mlp_bias(config: Config) -> bool:
    return config.architecture.mlp_bias and config.flag("mlp_bias")


def _act(config: Config, gated: bool) -> str:
    """Return the beginning of an activation's name. Raises Failure for an unknown one."""
    keys = ("hidden_act", "hidden_activation", "mlp_hidden_act")
    kind = config.word(*keys, known=_ACTIVATIONS, default="silu")
    return f"{kind}_and_mul" if gated else kind


def _experts(model: Deployed) -> Iterator[Need]:
    """Yield router, routing, experts and shared experts."""
    config, deployment = model.config, model.deployment
    every, hidden = experts(config), config.size("hidden_size")
    top_k = config.size(*_TOP_K)
    if top_k > every:
        config.refuse(_TOP_K[0], f"is {top_k}, more than the {every} experts")
    local = config.divided("number of experts", every, deployment.ep, "--ep")
    yield _router(model, every, hidden)
    kind = quantisation(config)
    inner, label = _expert_size(model, kind)
    width = config.count("moe_latent_size") or hidden
    of, at = model.projections(MOE), _EXPERT_MODULES
    name, constants = _routing(config, every, top_k)
    fused = kind == FP8_BLOCK
    if fused and of.excluded(at) != frozenset():
        why = "has experts: they are only known in float8 if all are"
        config.refuse("quantization_config.modules_to_not_convert", why)
    if not fused:
        yield Need("routing", "moe_routing", name, constants)
    if width != hidden:
        module = "experts, into their latent space"
        bias = _mlp_bias(config)
        yield from of.linear(module, width, hidden, "fc1_latent_proj", bias=bias)
    if deployment.ep > 1:
        name = f"moe_dispatch_ep{deployment.ep}_topk{top_k}_e{every}_h{width}"
        yield Need("tokens to the GPUs of their experts", "moe_exchange", name)
    shape = f"e{local}_h{width}_i{inner}"
    if fused:
        constants |= {"top_k": top_k, "num_experts": every}
        word = _fused_word(config, constants, is_part=deployment.ep > 1)
        act = _act(config, config.architecture.gated)
        if act != "silu_and_mul":
            word = f"{act.removesuffix('_and_mul')}_{word}"
        name = f"moe_fp8_block_scale_{word.format(top_k=top_k)}_{shape}"
        yield Need("routing and experts", "moe", name, constants, at=at)
    else:
        name = f"moe_{_expert_word(config, kind)}_topk{top_k}_{shape}"
        yield Need(label, "moe_experts", name, at=at)
    if deployment.ep > 1:
        name = f"moe_combine_ep{deployment.ep}_h{width}"
        yield Need("experts' outputs back to their tokens", "moe_exchange", name)
    if width != hidden:
        module = "experts, out of their latent space"
        yield from of.linear(module, hidden, width, "fc2_latent_proj", bias=bias)
    yield from _shared(model, hidden)


def _router(model: Deployed, every: int, hidden: int) -> Need:
    kind = model.config.architecture.router
    at = _ROUTER_MODULES
    if kind:
        word = {"f32_out": "bf16_f32", "f32": "f32"}[kind]
        return Need("router", "gemm", f"gemm_{word}_n{every}_k{hidden}", at=at)
    # gpt-oss's router has the biases of its attention
    bias = bool(model.config.architecture.sinks)
    return model.projections(MOE).plain("router", every, hidden, *at, bias=bias)


def _expert_size(model: Deployed, kind: str) -> tuple[int, str]:
    """Return the experts' intermediate size on a GPU, and what the module is called."""
    config, deployment = model.config, model.deployment
    key, tp = _expert_key(config), deployment.tp
    size = config.size(key)
    block = {FP8_BLOCK: BLOCK, MXFP4: _MXFP4_BLOCK}.get(kind, 1)
    if deployment.ep > 1 or tp == 1:
        if size % block:
            config.refuse(key, f"is {size}, no multiple of blocks of {block}")
        return size, "experts"
    if kind == MXFP4:
        # SGLang's gpt_oss.py deals out whole blocks: the last GPU may have fewer
        blocks = config.divided(key, size, block, "blocks of")
        share = -(-blocks // tp) * block
        rest = " (fewer on the last GPU)" if blocks % tp else ""
        return share, f"experts{rest}"
    share = deployment.share(config, key, size)
    if share % block:
        why = f"is {size}: {share} of a GPU at tp {tp} is no multiple of {block}; use --ep"
        config.refuse(key, why)
    return share, "experts"


def _expert_key(config: Config) -> str:
    """Return the key that states the intermediate size of one expert."""
    return next((key for key in _EXPERT_SIZE if config.get(key)), _EXPERT_SIZE[0])


def _expert_word(config: Config, kind: str) -> str:
    """Return what a name of experts says of weights and activation."""
    architecture = config.architecture
    # the definition of mxfp4 has gpt-oss's biases and activation
    word = "mxfp4" if kind == MXFP4 else "bf16"
    if architecture.activation:
        _act(config, gated=True)
        return word if kind == MXFP4 else f"bf16_{architecture.activation}"
    act = _act(config, architecture.gated)
    if act != "silu_and_mul" or kind == MXFP4:
        word += f"_{act.removesuffix('_and_mul')}"
    return word + ("_scaled_input" if architecture.routing == "llama4" else "")


def _routing(config: Config, every: int, top_k: int) -> tuple[str, dict[str, Any]]:
    """Return the name of a routing and the constants that it does not carry."""
    shape, constants = f"e{every}_k{top_k}", dict[str, Any]()
    kind = config.architecture.routing
    if kind == "llama4":
        return f"topk_sigmoid_{shape}", constants
    stated = config.flag("norm_topk_prob", "moe_renormalize")
    is_one = config.architecture.renormalised or stated
    if kind == "softmax":
        return f"topk_softmax_{shape}{'_renorm' if is_one else ''}", constants
    constants["n_group"] = config.size("n_group", "num_expert_group", default=1)
    constants["topk_group"] = config.size("topk_group", default=1)
    groups = "_ng{n_group}_kg{topk_group}".format(**constants)
    word = _choice(config, is_one)
    if word in _PLAIN and constants["n_group"] == 1 and _scaling(config) == 1:
        return f"topk_softmax_{shape}{_PLAIN[word]}", {}
    return f"{word}_{shape}{groups}", constants


def _choice(config: Config, is_one: bool) -> str:
    unbiased, _, scores = config.architecture.scores.rpartition("_")
    keys = ("scoring_func", "moe_router_activation_func")
    scores = config.word(*keys, known=_SCORES, default=scores)
    method = "greedy" if unbiased else "noaux_tc"
    biased = config.word("topk_method", known=_METHODS, default=method)
    if not config.flag("use_routing_bias", default=True):
        biased = "unbiased_"
    _scaling(config)
    if scores == "sigmoid" and not biased and is_one:
        return "fused_topk_deepseek"
    return f"topk_grouped_{biased}{scores}{'_renorm' if is_one else ''}"


def _fused_word(config: Config, constants: dict[str, Any], *, is_part: bool) -> str:
    """Return what the name of routing and experts in one says of the routing."""
    kind = config.architecture.routing
    shard = "_shard" if is_part else ""
    if kind == "sigmoid":
        constants["routed_scaling_factor"] = _scaling(config)
        chosen = _routing(config, 1, 1)[0].partition("_e1_k1")[0]
        # a shard chooses among all experts; DeepSeek's definitions do so in any case
        word = "ds_routing" if chosen == "fused_topk_deepseek" else chosen
        return "{}_topk{{top_k}}_ng{n_group}_kg{topk_group}".format(word, **constants)
    if kind == "softmax":
        renormalised = _routing(config, 1, 1)[0].endswith("_renorm")
        kind = "renorm" if renormalised else "softmax"
    return f"{kind}{shard}_topk{{top_k}}"


def _scaling(config: Config) -> float:
    """Return what a token's normalised weights are multiplied by; 1 where not stated."""
    keys = ("routed_scaling_factor", "router_scaling_factor")
    key = next((key for key in keys if config.get(key) is not None), keys[0])
    stated = config.get(key)
    if stated is None:
        return 1.0
    if type(stated) not in (int, float) or not 0 < stated < _LARGEST_FACTOR:
        above = f"not a number above 0 and below {_LARGEST_FACTOR}"
        config.refuse(key, f"is {show(stated)}, {above}")
    return float(stated)


def _shared(model: Deployed, hidden: int) -> Iterator[Need]:
    """Yield what experts need that every token goes to."""
    config = model.config
    count = config.count("n_shared_experts", "num_shared_experts")
    key = next((k for k in _SHARED_SIZE if config.count(k)), "")
    size = config.size(key) if key else 0
    if not key and count:
        key, size = "n_shared_experts", count * config.size(_expert_key(config))
    elif not key and config.architecture.routing == "llama4":
        key, size = "intermediate_size", config.size("intermediate_size")
    if not size or (count == 0 and config.stated("n_shared_experts") == 0):
        return
    yield from _mlp(model, "shared expert", key, size, MOE)
    if config.architecture.shared_gate:
        gate, sizes = "shared expert, gate", model.projections(MOE)
        yield sizes.plain(gate, 1, hidden, "shared_expert_gate")
        name = f"sigmoid_and_mul_row_h{hidden}"
        yield Need("shared expert times its gate", "activation", name)
