"""Kimi delta attention of Kimi Linear: decode and prefill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.kda import workloads
from generator.ops.reference_text import reference_text

# Kimi Linear 48B A3B, whole and in tensor-parallel parts: heads, parallelism.
SHARDS = ((32, 1), (16, 2), (8, 4))
MODEL = "kimi-linear-48b-a3b"
HEAD_DIM = 128

STATE = ("num_heads", "head_dim", "head_dim")
RULE = (
    "q and k are divided by sqrt(sum(x^2) + 1e-6) of their head, and q by sqrt(head_dim)."
    " With g = exp(-exp(A_log) * softplus(a + dt_bias)), one gate for each channel of"
    " the key, and beta = sigmoid(b), each token makes column i of its head's state S"
    " g[i] S[:, i], then adds beta (v - S k) k^T, and the output is S q. States are"
    " [values, keys]."
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        stage(heads, HEAD_DIM, MODEL, tp)
        for stage in (decode_spec, prefill_spec)
        for heads, tp in SHARDS
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    stage = decode_spec if name.startswith("kda_decode_") else prefill_spec
    return stage(sizes["h"], sizes["d"], model)


def decode_spec(heads: int, head_dim: int, model: str, tp: int = 1) -> Spec:
    """Return the definition of one token a sequence."""
    return Spec(
        name=f"kda_decode_h{heads}_d{head_dim}",
        description=f"Kimi delta attention, one token a sequence. {RULE}",
        op_type="kda",
        tags=_tags("decode", model, tp),
        axes={
            "batch_size": Axis("Number of sequences."),
            **_heads(heads, head_dim),
        },
        inputs=_inputs("batch_size", "batch_size"),
        outputs=_outputs("batch_size", "batch_size"),
        reference=reference_text("kda", "kda_decode"),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        fits=workloads.batch_fits,
    )


def prefill_spec(heads: int, head_dim: int, model: str, tp: int = 1) -> Spec:
    """Return the definition of sequences of different lengths."""
    ends = "Sequence b's tokens: cu_seqlens[b]:cu_seqlens[b + 1]."
    return Spec(
        name=f"kda_prefill_h{heads}_d{head_dim}",
        description=(
            "Kimi delta attention over whole sequences, which lie one after another."
            f" {RULE} An empty sequence keeps its state."
        ),
        op_type="kda",
        tags=_tags("prefill", model, tp),
        axes={
            "total_tokens": Axis("Tokens of all sequences."),
            "num_seqs": Axis("Number of sequences."),
            "len_cu_seqlens": Axis("Number of sequences + 1."),
            **_heads(heads, head_dim),
        },
        inputs={
            **_inputs("total_tokens", "num_seqs"),
            "cu_seqlens": Tensor(("len_cu_seqlens",), "int32", ends),
        },
        outputs=_outputs("total_tokens", "num_seqs"),
        constraints=(
            "len_cu_seqlens == num_seqs + 1",
            "total_tokens == cu_seqlens[-1].item()",
        ),
        reference=reference_text("kda", "kda_prefill"),
        captured_from="gqa_ragged_prefill_causal_h32_kv4_d128",
        captured_op_type="gqa_ragged",
        structure=workloads.sequences,
        fits=workloads.sequences_fit,
    )


def _tags(stage: str, model: str, tp: int) -> tuple[str, ...]:
    return (f"stage:{stage}", f"model:{model}", f"tp:{tp}")


def _heads(heads: int, head_dim: int) -> dict[str, Axis]:
    return {
        "num_heads": Axis("Heads, each with a state.", heads),
        "head_dim": Axis("Length of queries, keys and values.", head_dim),
    }


def _inputs(rows: str, states: str) -> dict[str, Tensor]:
    heads, channels = ("num_heads",), ("num_heads", "head_dim")
    state = "State before each sequence's first token, keys along the last axis."
    return {
        "q": Tensor((rows, *channels), "bfloat16", "Queries of any length."),
        "k": Tensor((rows, *channels), "bfloat16", "Keys of any length."),
        "v": Tensor((rows, *channels), "bfloat16", "Values."),
        "a": Tensor((rows, *channels), "bfloat16", "Step of each channel of the key."),
        "b": Tensor((rows, *heads), "bfloat16", "Share of an update, before sigmoid."),
        "A_log": Tensor(heads, "float32", "Logarithm of the decay's rate."),
        "dt_bias": Tensor(channels, "float32", "Bias of the step."),
        "state": Tensor((states, *STATE), "float32", state),
    }


def _outputs(rows: str, states: str) -> dict[str, Tensor]:
    return {
        "output": Tensor(
            (rows, "num_heads", "head_dim"), "bfloat16", "What each query reads."
        ),
        "new_state": Tensor(
            (states, *STATE), "float32", "State behind each sequence's last token."
        ),
    }
