"""The inputs and outputs of the mixtures of experts."""

from __future__ import annotations

from generator.ops.family import Tensor
from generator.ops.op_types.moe.family_table import MoeGeometry

_FIRST = ("gemm1_out_size", "hidden_size")
_SECOND = ("hidden_size", "intermediate_size")


def inputs(row: MoeGeometry) -> dict[str, Tensor]:
    """Return a definition's inputs in their order."""
    is_block = row.weights == "fp8_block_scale"
    experts = "num_local_experts" if is_block or row.shard else "num_experts"
    tensors = _routing(row)
    if row.weights == "fp4_block_scale":
        return {
            **tensors,
            "hidden_states": Tensor(
                ("seq_len", "hidden_size"), "bfloat16", "Input of each token."
            ),
            **_products(experts, "float32", "Dequantised"),
            **_place(row),
            **_unused_bias(row),
        }
    tensors["hidden_states"] = Tensor(
        ("seq_len", "hidden_size"), "float8_e4m3fn", "Input of each token, quantised."
    )
    products = _products(experts, "float8_e4m3fn", "Quantised")
    if row.weights == "fp8_per_tensor_scale":
        return tensors | _with_scalars(products, experts) | _unused_bias(row)
    tensors["hidden_states_scale"] = Tensor(
        ("num_hidden_blocks", "seq_len"),
        "float32",
        "Scale of each block of 128 of a token: the token comes last.",
    )
    tensors |= _with_blocks(products, experts) | _place(row)
    if row.routing == "deepseek":
        tensors["routed_scaling_factor"] = Tensor(
            None, "float32", "Factor of the normalised weights."
        )
    return tensors


def outputs() -> dict[str, Tensor]:
    """Return the outputs, the same for all."""
    return {
        "output": Tensor(
            ("seq_len", "hidden_size"),
            "bfloat16",
            "Sum of the outputs of each token's experts, by weight.",
        )
    }


def _place(row: MoeGeometry) -> dict[str, Tensor]:
    if not row.shard:
        return {}
    what = "Number in the model of the first expert that is here."
    return {"local_expert_offset": Tensor(None, "int32", what)}


def _routing(row: MoeGeometry) -> dict[str, Tensor]:
    if row.routing == "routed":
        return {
            "topk_ids": Tensor(
                ("seq_len", "top_k"),
                "int32",
                "Expert in the upper 16 bits, bfloat16 weight in the lower ones.",
            )
        }
    is_local = row.weights == "fp8_block_scale" and not row.shard
    experts = "num_local_experts" if is_local else "num_experts"
    dtype = "float32" if row.routing == "deepseek" else "bfloat16"
    tensors = {
        "routing_logits": Tensor(("seq_len", experts), dtype, "The router's logits.")
    }
    if row.routing == "deepseek":
        tensors["routing_bias"] = Tensor(
            (experts,), "bfloat16", "Added to the sigmoid scores for choosing only."
        )
    return tensors


def _unused_bias(row: MoeGeometry) -> dict[str, Tensor]:
    """Return the bias that Llama 4's interface has, last, and its routing has not."""
    if row.routing != "llama4":
        return {}
    return {
        "routing_bias": Tensor(
            ("num_experts",), "bfloat16", "Ignored: the routing of Llama 4 has no bias."
        )
    }


def _products(experts: str, dtype: str, how: str) -> dict[str, Tensor]:
    return {
        "gemm1_weights": Tensor(
            (experts, *_FIRST), dtype, f"{how} weights of up, then those of gate."
        ),
        "gemm2_weights": Tensor((experts, *_SECOND), dtype, f"{how} weights of down."),
    }


def _with_blocks(products: dict[str, Tensor], experts: str) -> dict[str, Tensor]:
    """Return the weights, each followed by the scales of its blocks."""
    blocks = {
        "gemm1_weights": ("num_gemm1_out_blocks", "num_hidden_blocks"),
        "gemm2_weights": ("num_hidden_blocks", "num_intermediate_blocks"),
    }
    tensors = {}
    for name, tensor in products.items():
        tensors[name] = tensor
        tensors[f"{name}_scale"] = Tensor(
            (experts, *blocks[name]), "float32", "Scale of each block of 128 x 128."
        )
    return tensors


def _with_scalars(products: dict[str, Tensor], experts: str) -> dict[str, Tensor]:
    """Return the weights, each followed by its experts' factors."""

    def scale(description: str) -> Tensor:
        return Tensor((experts,), "float32", description)

    return {
        "gemm1_weights": products["gemm1_weights"],
        "output1_scales_scalar": scale("Factor of up."),
        "output1_scales_gate_scalar": scale("Factor of gate, ahead of silu."),
        "gemm2_weights": products["gemm2_weights"],
        "output2_scales_scalar": scale("Factor of the expert's output."),
    }
