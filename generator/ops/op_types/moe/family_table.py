"""The constants of the moe definitions, one row a definition."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MoeGeometry:
    """The constants of one definition.

    `experts` counts those that tokens choose among, `local` those whose weights are
    inputs. A `shard` knows where in the model its experts begin. `scaling` is the
    model's routed_scaling_factor, for derived workloads.
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
    shard: bool = False


_IN_NAME = {"deepseek": "ds_routing", "renorm": "renorm"}


def row_of(
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
    """Return a row; `ranks` are the tags ep and tp, `early` those before fi_api.

    `experts` is given where it is not `local`. What DeepSeek's routing chooses may be
    elsewhere in any case; of the others' names a shard's says so.
    """
    fi_api = f"trtllm_{weights}_{'routed_' if routing == 'routed' else ''}moe"
    shard = "_shard" if experts and routing != "deepseek" else ""
    name = f"{fi_api}{shard}_topk{top_k}"
    if weights == "fp8_block_scale":
        name = f"moe_{weights}_{_IN_NAME[routing]}{shard}_topk{top_k}"
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
        bool(shard) or routing == "deepseek",
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

# Of the rows without `experts`, "ep:4" of 512 experts and "ep:2" of 128 choose among
# the experts that are here alone: published so, and no device's share of their models.
# Published fp4 rows may have a tag ep before fi_api, and another behind it: kept as is.
TABLE = (
    row_of(*_DS, "kimi-k2", 384, 7168, 2048, 8, "ep:1 tp:8", scaling=2.827),
    row_of(*_DS, "kimi-k2", 48, 7168, 2048, 8, "ep:8 tp:8", experts=384, scaling=2.827),
    row_of(
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
    row_of(*_F8, _NEXT, 128, 2048, 512, 10, "ep:1"),
    row_of(*_F8, _30B, 128, 2048, 768, 8, "ep:1 tp:1"),
    row_of(*_F8, _235B, 128, 4096, 1536, 8, "ep:1 tp:8"),
    row_of(*_F4, _NEXT, 128, 2048, 512, 10, "ep:1", early="ep:4"),
    row_of(*_F4_LLAMA, _MAVERICK, 128, 5120, 8192, 1, "ep:1"),
    row_of(*_F4_LLAMA, _SCOUT, 16, 5120, 8192, 1, "ep:1 tp:8"),
    row_of(*_F4, _30B, 128, 2048, 768, 8, "ep:1 tp:1"),
    row_of(*_F4, _235B, 64, 4096, 1536, 8, "tp:8", early="ep:2"),
    row_of(*_F4_ROUTED, _NEXT, 128, 2048, 512, 10, "ep:1", early="ep:4"),
    row_of(*_F4_ROUTED, _MAVERICK, 128, 5120, 8192, 1, "ep:1"),
    row_of(*_F4_ROUTED, _SCOUT, 16, 5120, 8192, 1, "ep:1 tp:8"),
    row_of(*_F4_ROUTED, _30B, 128, 2048, 768, 8, "ep:1 tp:1"),
    row_of(*_F4_ROUTED, _235B, 64, 4096, 1536, 8, "tp:8", early="ep:2"),
    row_of(*_F8_TENSOR_LLAMA, _MAVERICK, 128, 5120, 8192, 1, "ep:1"),
    row_of(*_F8_TENSOR_LLAMA, _SCOUT, 16, 5120, 8192, 1, "ep:1 tp:8"),
    row_of(*_F8_TENSOR, _30B, 128, 2048, 768, 8, "ep:1 tp:1"),
    *(
        row_of(*kind, _NEXT, 128, 2048, 512, 10, "ep:4", experts=512)
        for kind in (_F8, _F4, _F4_ROUTED)
    ),
    *(
        row_of(*kind, _235B, 64, 4096, 1536, 8, "ep:2", experts=128)
        for kind in (_F4, _F4_ROUTED)
    ),
)
