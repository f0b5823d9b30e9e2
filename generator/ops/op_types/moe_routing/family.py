"""Routing of the models whose experts are products of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.moe_routing.workloads import (
    a_chunk,
    routed_tokens,
    table_fits,
)
from generator.ops.reference_text import reference_text

ORDER = "Experts stand in falling order of the score that chooses them."
BIASED = (
    " plus a bias choose the {k} experts; the scores without the bias, divided by their"
    " sum and multiplied by routed_scaling_factor, weigh them."
)
# reference: what it does
KINDS = {
    "topk_softmax": (
        "The softmax over all experts chooses the {k} largest, and is divided by the sum"
        " of these."
    ),
    "topk_sigmoid": (
        "The {k} largest logits choose the experts; the sigmoid of its own logit weighs"
        " each."
    ),
    "fused_topk_deepseek": (
        "Of {ng} groups of experts, each as good as the sum of its two best, the {kg}"
        f" best are left. In these sigmoid scores{BIASED}"
    ),
    "topk_sqrtsoftplus": f"Scores sqrt(log(1 + exp(logit))){BIASED}",
    "hash_topk": (
        "A table has the {k} experts of each token of the vocabulary. Scores"
        " sqrt(log(1 + exp(logit))), divided by their sum, weigh them. No"
        " routed_scaling_factor: the model multiplies the experts' sum by it (1.5 in"
        " DeepSeek V4)."
    ),
}


@dataclass(frozen=True)
class Router:
    """The constants of one definition; `models` are those that have them.

    `factor` is the value of routed_scaling_factor in the workloads.
    """

    kind: str
    experts: int
    top_k: int
    models: tuple[str, ...]
    groups: tuple[int, int] = (1, 1)
    factor: float = 1.0

    @property
    def name(self) -> str:
        """Return the definition's name."""
        head = f"{self.kind}_e{self.experts}_k{self.top_k}"
        groups = "_ng{}_kg{}".format(*self.groups)
        tails = {"topk_softmax": "_renorm", "fused_topk_deepseek": groups}
        return head + tails.get(self.kind, "")


ROUTERS = (
    Router("topk_softmax", 8, 2, ("mixtral-8x22b",)),
    Router("topk_softmax", 32, 4, ("gpt-oss-20b",)),
    Router("topk_softmax", 128, 4, ("gpt-oss-120b",)),
    Router("topk_softmax", 128, 8, ("qwen3-30b-a3b", "qwen3-235b-a22b")),
    Router("topk_softmax", 512, 10, ("qwen3-next-80b-a3b",)),
    Router("topk_sigmoid", 16, 1, ("llama-4-scout",)),
    Router("topk_sigmoid", 128, 1, ("llama-4-maverick",)),
    Router(
        "fused_topk_deepseek",
        256,
        8,
        ("deepseek-v3", "deepseek-r1"),
        (8, 4),
        factor=2.5,
    ),
    Router("fused_topk_deepseek", 384, 8, ("kimi-k2",), factor=2.827),
    Router("fused_topk_deepseek", 160, 8, ("glm-4.6",), factor=2.5),
    Router("fused_topk_deepseek", 256, 8, ("minimax-m2",)),
    Router("topk_sqrtsoftplus", 256, 6, ("deepseek-v4-flash",), factor=1.5),
    Router("hash_topk", 256, 6, ("deepseek-v4-flash",)),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(routing_spec(router) for router in ROUTERS)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kind = next((kind for kind in KINDS if name.startswith(f"{kind}_e")), None)
    if kind is None:
        return None
    groups = constants.get("n_group", 1), constants.get("topk_group", 1)
    return routing_spec(Router(kind, sizes["e"], sizes["k"], (model,), groups))


def routing_spec(router: Router) -> Spec:
    """Return the definition of one router."""
    kind, (n_group, topk_group) = router.kind, router.groups
    constants = {} if kind == "hash_topk" else {"TOP_K": router.top_k}
    if kind == "fused_topk_deepseek":
        constants |= {"N_GROUP": n_group, "TOPK_GROUP": topk_group}
    what = KINDS[kind].format(k=router.top_k, ng=n_group, kg=topk_group)
    order = "" if kind == "hash_topk" else f" {ORDER}"
    apis = {
        "fused_topk_deepseek": ("fi_api:flashinfer.fused_moe.fused_topk_deepseek",),
        "hash_topk": ("fi_api:flashinfer.fused_moe.hash_topk",),
    }
    axes = {
        "num_tokens": Axis("Number of tokens."),
        "num_experts": Axis("Experts of the model.", router.experts),
        "topk": Axis("Experts of a token.", router.top_k),
    }
    if kind == "hash_topk":
        axes["vocab_size"] = Axis("Tokens that the table knows.")
    return Spec(
        name=router.name,
        description=f"Routing of tokens to experts. {what}{order} All in float32.",
        op_type="moe_routing",
        tags=(*(f"model:{model}" for model in router.models), *apis.get(kind, ())),
        axes=axes,
        inputs=_inputs(kind),
        outputs={
            "topk_weights": Tensor(
                ("num_tokens", "topk"), "float32", "The weights of a token's experts."
            ),
            "topk_ids": Tensor(("num_tokens", "topk"), "int32", "Their numbers."),
        },
        reference=reference_text("moe_routing", kind, **constants),
        captured_from="gemm_n256_k7168",
        captured_op_type="gemm",
        structure=routed_tokens,
        fits=table_fits,
        traffic=a_chunk,
        scalars={"routed_scaling_factor": router.factor},
    )


def _inputs(kind: str) -> dict[str, Tensor]:
    biased = kind in ("fused_topk_deepseek", "topk_sqrtsoftplus")
    dtype = "float32" if biased or kind == "hash_topk" else "bfloat16"
    tensors = {
        "router_logits": Tensor(
            ("num_tokens", "num_experts"), dtype, "What the router's product gave."
        )
    }
    if biased:
        tensors["bias"] = Tensor(("num_experts",), "float32", "Added to choose only.")
        tensors["routed_scaling_factor"] = Tensor(
            None, "float32", "What a token's weights add up to."
        )
    if kind == "hash_topk":
        tensors["input_ids"] = Tensor(("num_tokens",), "int64", "Tokens as numbers.")
        tensors["tid2eid"] = Tensor(
            ("vocab_size", "topk"), "int32", "The experts of each token."
        )
    return tensors
