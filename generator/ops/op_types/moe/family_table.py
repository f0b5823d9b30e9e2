"""The constants of the moe definitions, one row a definition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MoeGeometry:
    """Hold the constants of one definition.

    `experts` counts the model's experts, `local` those whose weights are inputs.
    `scaling` is the model's routed_scaling_factor, for derived workloads.
    """

    name: str
    routing: str
    weights: str
    tags: tuple[str, ...]
    experts: int
    local: int
    hidden: int
    intermediate: int
    top_k: int
    n_group: int = 1
    topk_group: int = 1
    scaling: float | None = None


_IN_NAME = {"deepseek": "ds_routing", "renorm": "renorm"}


def _row(
    routing: str,
    weights: str,
    models: str,
    local: int,
    hidden: int,
    intermediate: int,
    top_k: int,
    ranks: str,
    *,
    early: str = "",
    experts: int | None = None,
    groups: tuple[int, int] = (1, 1),
    scaling: float | None = None,
) -> MoeGeometry:
    """Return a row; `ranks` are the tags ep and tp, `early` those before fi_api."""
    fi_api = f"trtllm_{weights}_{'routed_' if routing == 'routed' else ''}moe"
    name = f"{fi_api}_topk{top_k}"
    if weights == "fp8_block_scale":
        name = f"moe_{weights}_{_IN_NAME[routing]}_topk{top_k}"
    if routing == "deepseek":
        name += f"_ng{groups[0]}_kg{groups[1]}"
    fp4 = weights == "fp4_block_scale"
    tags = (
        *(f"model:{model}" for model in models.split()),
        "quantization:float4_e2m1fn_mxfp4" if fp4 else "quantization:float8_e4m3fn",
        *early.split(),
        f"fi_api:flashinfer.fused_moe.{fi_api}",
        *(("gpu:sm100",) if fp4 else ()),
        *(("routing:pre-computed",) if routing == "routed" else ()),
        *ranks.split(),
    )
    return MoeGeometry(
        f"{name}_e{local}_h{hidden}_i{intermediate}",
        routing,
        weights,
        tags,
        experts or local,
        local,
        hidden,
        intermediate,
        top_k,
        *groups,
        scaling,
    )


_DS = ("deepseek", "fp8_block_scale")
_F8 = ("renorm", "fp8_block_scale")
_F4, _F4_LLAMA, _F4_ROUTED = (
    (routing, "fp4_block_scale") for routing in ("renorm", "llama4", "routed")
)
_F8_TENSOR, _F8_TENSOR_LLAMA = (
    (routing, "fp8_per_tensor_scale") for routing in ("renorm", "llama4")
)
_NEXT, _30B, _235B = "qwen3-next-80b-a3b", "qwen3-30b-a3b", "qwen3-235b-a22b"
_MAVERICK, _SCOUT = "llama-4-maverick", "llama-4-scout"
_DEEPSEEK = "deepseek-v3 deepseek-r1"

# Published fp4 rows may have a tag ep before fi_api, and another behind it: kept as is.
TABLE = (
    _row(*_DS, "kimi-k2", 384, 7168, 2048, 8, "ep:1 tp:8", scaling=2.827),
    _row(*_DS, "kimi-k2", 48, 7168, 2048, 8, "ep:8 tp:8", experts=384, scaling=2.827),
    _row(
        *_DS,
        _DEEPSEEK,
        32,
        7168,
        2048,
        8,
        "ep:8",
        experts=256,
        groups=(8, 4),
        scaling=2.5,
    ),
    _row(*_F8, _NEXT, 128, 2048, 512, 10, "ep:1"),
    _row(*_F8, _30B, 128, 2048, 768, 8, "ep:1 tp:1"),
    _row(*_F8, _235B, 128, 4096, 1536, 8, "ep:1 tp:8"),
    _row(*_F4, _NEXT, 128, 2048, 512, 10, "ep:1", early="ep:4"),
    _row(*_F4_LLAMA, _MAVERICK, 128, 5120, 8192, 1, "ep:1"),
    _row(*_F4_LLAMA, _SCOUT, 16, 5120, 8192, 1, "ep:1 tp:8"),
    _row(*_F4, _30B, 128, 2048, 768, 8, "ep:1 tp:1"),
    _row(*_F4, _235B, 64, 4096, 1536, 8, "tp:8", early="ep:2"),
    _row(*_F4_ROUTED, _NEXT, 128, 2048, 512, 10, "ep:1", early="ep:4"),
    _row(*_F4_ROUTED, _MAVERICK, 128, 5120, 8192, 1, "ep:1"),
    _row(*_F4_ROUTED, _SCOUT, 16, 5120, 8192, 1, "ep:1 tp:8"),
    _row(*_F4_ROUTED, _30B, 128, 2048, 768, 8, "ep:1 tp:1"),
    _row(*_F4_ROUTED, _235B, 64, 4096, 1536, 8, "tp:8", early="ep:2"),
    _row(*_F8_TENSOR_LLAMA, _MAVERICK, 128, 5120, 8192, 1, "ep:1"),
    _row(*_F8_TENSOR_LLAMA, _SCOUT, 16, 5120, 8192, 1, "ep:1 tp:8"),
    _row(*_F8_TENSOR, _30B, 128, 2048, 768, 8, "ep:1 tp:1"),
)
