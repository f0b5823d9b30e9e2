"""Mixtures of experts with float8 weights, and with dequantised weights of fp4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from generator.ops.family import Axis, Spec
from generator.ops.op_types.moe.family_table import TABLE, MoeGeometry, row_of
from generator.ops.op_types.moe.family_tensors import inputs, outputs
from generator.ops.op_types.moe.workloads import moe_fits, moe_structure
from generator.ops.reference_text import ReferenceText, reference_text

CAPTURED = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"
BLOCK = 128
_ROUTING = {
    "deepseek": (
        "Tokens choose as in DeepSeek-V3: sigmoid scores plus a bias choose {top_k}"
        " experts, {groups}; the weights are the scores without the bias, divided by"
        " their sum, times routed_scaling_factor. Experts that are not here add nothing."
    ),
    "renorm": (
        "Tokens choose the {top_k} largest logits; the weights are a softmax over these."
    ),
    "llama4": (
        "Tokens choose the expert of the largest logit, whose sigmoid scales what goes"
        " into the expert. routing_bias is ignored, as the kernel and Llama 4 have none."
    ),
    "routed": (
        "Experts and weights are given: topk_ids holds (expert << 16) | bits of the"
        " weight as bfloat16; the weights scale the experts' outputs."
    ),
}
_WEIGHTS = {
    "fp8_block_scale": "float8 weights with a scale for each block of 128 x 128",
    "fp4_block_scale": (
        "weights in float32 that were fp4, as they are after dequantising: no packed"
        " codes, no scales and no quantised activations are part of it"
    ),
    "fp8_per_tensor_scale": "float8 weights with one scale for each expert",
}


_ELSEWHERE = (
    " Experts are numbered as in the model; those that are not here add nothing."
)
# the names that a model asks for: their weights are stored as float8 in blocks
_ROUTINGS = {"ds_routing": "deepseek", "renorm": "renorm", "renorm_shard": "renorm"}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(moe_spec(row) for row in TABLE)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's.

    The name says how many experts are here, `constants` how many the model has.
    """
    kind = name.partition("_topk")[0].removeprefix("moe_fp8_block_scale_")
    if kind not in _ROUTINGS:
        return None
    local, experts = sizes["e"], constants["num_experts"]
    # of DeepSeek's routing every definition counts the model's experts apart
    is_part = experts != local or kind == "ds_routing"
    row = row_of(
        _ROUTINGS[kind],
        "fp8_block_scale",
        model,
        local,
        sizes["h"],
        sizes["i"],
        constants["top_k"],
        "",
        experts=experts if is_part else None,
        groups=(constants.get("n_group", 1), constants.get("topk_group", 1)),
        scaling=constants.get("routed_scaling_factor"),
    )
    return moe_spec(row)


def moe_spec(row: MoeGeometry) -> Spec:
    """Return the definition for one row of the table."""
    groups = f"from the best {row.topk_group} of {row.n_group} groups"
    if row.n_group == 1:
        groups = "from all of them"
    elsewhere = _ELSEWHERE if row.shard and row.routing != "deepseek" else _alone(row)
    return Spec(
        name=row.name,
        description=(
            f"Mixture of experts: {_WEIGHTS[row.weights]}; an expert gives"
            " down(silu(gate) * up), with up and gate the halves of the first product in"
            f" this order. {_ROUTING[row.routing].format(top_k=row.top_k, groups=groups)}"
            f"{elsewhere}"
        ),
        op_type="moe",
        tags=row.tags,
        axes=_axes(row),
        inputs=inputs(row),
        outputs=outputs(),
        constraints=()
        if row.n_group > 1
        else (
            "gemm1_weights.shape[1] == 2 * intermediate_size",
            "gemm2_weights.shape[1] == hidden_size",
            "gemm2_weights.shape[2] == intermediate_size",
        ),
        reference=_reference(row),
        captured_from=CAPTURED,
        structure=partial(moe_structure, experts=row.experts),
        fits=moe_fits,
        scalars={} if row.scaling is None else {"routed_scaling_factor": row.scaling},
    )


def _alone(row: MoeGeometry) -> str:
    """Return what to say of a row that holds as many experts as a shard, and is none."""
    for other in TABLE:
        like = replace(other, name=row.name, tags=row.tags, experts=row.experts)
        if other.shard and replace(like, shard=False) == row:
            return (
                f" It is a layer of {row.local} experts: a device that holds {row.local}"
                f" of the model's {other.experts} chooses among all of them."
            )
    return ""


def _reference(row: MoeGeometry) -> ReferenceText:
    if row.routing == "deepseek":
        return reference_text(
            "moe",
            "moe_fp8_block_scale_ds_routing",
            TOP_K=row.top_k,
            N_GROUP=row.n_group,
            TOPK_GROUP=row.topk_group,
        )
    shard = ("shard",) * row.shard
    if row.weights == "fp4_block_scale":
        words = {"llama4": "topk1", "routed": "routed"}.get(row.routing)
        return reference_text(
            "moe",
            "trtllm_fp4_block_scale_moe",
            (*filter(None, [words]), *shard),
            **({} if words else {"TOP_K": row.top_k}),
        )
    module = f"trtllm_{row.weights}_moe"
    if row.weights == "fp8_block_scale":
        module = "moe_fp8_block_scale_renorm"
    if row.routing == "llama4":
        return reference_text("moe", f"{module}_topk1")
    return reference_text("moe", module, shard, TOP_K=row.top_k)


def _axes(row: MoeGeometry) -> dict[str, Axis]:
    axes = {"seq_len": Axis("Number of tokens.")}
    if row.shard:
        # where the choice is given, no tensor has this length
        if row.routing != "routed":
            axes["num_experts"] = Axis("Number of experts of the model.", row.experts)
    elif row.weights != "fp8_block_scale":
        axes["num_experts"] = Axis("Number of experts.", row.experts)
    if row.weights == "fp8_block_scale" or row.shard:
        local = "Number of experts whose weights are here."
        axes["num_local_experts"] = Axis(local, row.local)
    axes["hidden_size"] = Axis("Length of a token.", row.hidden)
    axes["intermediate_size"] = Axis("Length between the products.", row.intermediate)
    axes["gemm1_out_size"] = Axis("Up and gate together.", 2 * row.intermediate)
    if row.n_group == 1:
        axes["top_k"] = Axis("Number of experts that a token goes to.", row.top_k)
    if row.weights == "fp8_block_scale":
        blocks = {
            "num_hidden_blocks": row.hidden,
            "num_intermediate_blocks": row.intermediate,
            "num_gemm1_out_blocks": 2 * row.intermediate,
        }
        for name, length in blocks.items():
            whole = name.removeprefix("num_").removesuffix("_blocks")
            axes[name] = Axis(f"Blocks of 128 along {whole}.", length // BLOCK)
    return axes
