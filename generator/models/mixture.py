"""What MLPs and mixtures of experts need."""

from __future__ import annotations

from collections.abc import Iterator

from generator.models.config import Config
from generator.models.need import FP8_BLOCK, MXFP4, Need, Projections, quantisation
from generator.models.parallel import Deployment
from generator.problems.messages import show

_LARGEST_FACTOR = 1000
_TOP_K = ("num_experts_per_tok", "moe_topk", "num_experts_per_token")
_EXPERT_SIZE = (
    "moe_intermediate_size",
    "expert_intermediate_size",
    "intermediate_size",
)


def mlp(
    config: Config,
    deployment: Deployment,
    module: str,
    hidden: int,
    key: str,
    size: int,
) -> Iterator[Need]:
    """Yield the products and the activation of an MLP of an intermediate size."""
    width = deployment.share(config, key, size)
    linear = Projections(config).linear
    architecture = config.architecture
    gated = 2 if architecture.activation and architecture.fused else 1
    up = {2: "gate and up", 1: "up"}[gated]
    yield from linear(f"{module}, {up}", gated * width, hidden)
    name = f"{architecture.activation or 'relu2'}_i{width}"
    yield Need(f"{module}, activation", "activation", name)
    yield from linear(f"{module}, down", hidden, width)


def needs(
    config: Config, deployment: Deployment, hidden: int, experts: int
) -> Iterator[Need]:
    """Yield router, routing, experts and shared experts. Raises Failure as figures do."""
    top_k = config.size(*_TOP_K)
    if top_k > experts:
        config.refuse(_TOP_K[0], f"is {top_k}, more than the {experts} experts")
    local = config.divided("number of experts", experts, deployment.ep, "--ep")
    key = next((k for k in _EXPERT_SIZE if config.get(k)), _EXPERT_SIZE[0])
    size = config.size(key)
    inner = size if deployment.ep > 1 else deployment.share(config, key, size)
    yield from Projections(config).head("router", experts, hidden)
    routing = config.architecture.routing
    groups, constants = "", dict[str, float]()
    if routing == "ds_routing":
        constants |= {n: config.size(n, default=1) for n in ("n_group", "topk_group")}
        groups = "_ng{n_group}_kg{topk_group}".format(**constants)
    shape = f"e{local}_h{hidden}_i{inner}"
    kind = quantisation(config)
    if kind == FP8_BLOCK:
        # a shard chooses among all experts; DeepSeek's definitions do so in any case
        is_shard = deployment.ep > 1 and routing != "ds_routing"
        kernel = f"moe_fp8_block_scale_{routing}{'_shard' if is_shard else ''}"
        name = f"{kernel}_topk{top_k}{groups}_{shape}"
        constants |= {"top_k": top_k, "num_experts": experts}
        if routing == "ds_routing":
            constants["routed_scaling_factor"] = _scaling(config)
        yield Need("routing and experts", "moe", name, constants)
    else:
        name = _routing(routing, experts, top_k, groups)
        yield Need("routing", "moe_routing", name, constants)
        weights = "mxfp4" if kind == MXFP4 else "bf16"
        weights += "_scaled_input" if routing == "llama4" else ""
        yield Need("experts", "moe_experts", f"moe_{weights}_topk{top_k}_{shape}")
    yield from _shared(config, deployment, hidden, size)


def _scaling(config: Config) -> float:
    """Return what a token's normalised weights are multiplied by; 1 where not stated."""
    key = "routed_scaling_factor"
    found = config.get(key)
    if found is None:
        return 1.0
    if type(found) not in (int, float) or not 0 < found < _LARGEST_FACTOR:
        above = f"not a number above 0 and below {_LARGEST_FACTOR}"
        config.refuse(key, f"is {show(found)}, {above}")
    return float(found)


def _routing(routing: str, experts: int, top_k: int, groups: str) -> str:
    if routing == "ds_routing":
        return f"fused_topk_deepseek_e{experts}_k{top_k}{groups}"
    if routing == "llama4":
        return f"topk_sigmoid_e{experts}_k{top_k}"
    return f"topk_softmax_e{experts}_k{top_k}_renorm"


def _shared(
    config: Config, deployment: Deployment, hidden: int, size: int
) -> Iterator[Need]:
    key = "shared_expert_intermediate_size"
    width = config.count(key)
    if not width and (count := config.count("n_shared_experts")):
        key, width = "n_shared_experts", count * size
    if not width and config.architecture.routing == "llama4":
        key, width = "intermediate_size", size
    if width:
        yield from mlp(config, deployment, "shared expert", hidden, key, width)
