"""Attention of models that are trained: its gradients in bfloat16."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA

_LONGEST = 512
QUERIES = ("batch_size", "seq_len", "num_qo_heads", "head_dim")
KEYS = ("batch_size", "seq_len", "num_kv_heads", "head_dim")
# heads of queries and of keys, their length: models
GEOMETRIES = {
    (12, 12, 64): ("gpt2",),
    (32, 8, 64): ("llama-3.2-1b",),
    (32, 8, 128): ("llama-3.1-8b", "qwen3-8b"),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(backward_spec(*sizes, models) for sizes, models in GEOMETRIES.items())


def backward_spec(heads: int, kv_heads: int, dim: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for one geometry of heads."""
    return Spec(
        name=f"gqa_causal_backward_h{heads}_kv{kv_heads}_d{dim}",
        description=(
            "Gradients of causal grouped-query attention for queries, keys and values,"
            " from the output and the natural log-sum-exp of the forward pass: with P ="
            " exp(q k^T * sm_scale - lse), grad_v = P^T grad_output and the gradient of"
            " the logits is P * (grad_output v^T - sum(grad_output * output)). Keys and"
            " values get the sum over the query heads of their group. In float32,"
            " rounded once to bfloat16."
        ),
        op_type="attention_backward",
        tags=(*(f"model:{model}" for model in models), "mode:training"),
        axes={
            "batch_size": Axis("Number of sequences."),
            "seq_len": Axis("Tokens of a sequence."),
            "num_qo_heads": Axis("Heads of queries.", heads),
            "num_kv_heads": Axis("Heads of keys and of values.", kv_heads),
            "head_dim": Axis("Length of a head.", dim),
        },
        inputs={
            "grad_output": Tensor(QUERIES, "bfloat16", "Gradient of the output."),
            "q": Tensor(QUERIES, "bfloat16", "Queries."),
            "k": Tensor(KEYS, "bfloat16", "Keys."),
            "v": Tensor(KEYS, "bfloat16", "Values."),
            "output": Tensor(QUERIES, "bfloat16", "What the forward pass gave."),
            "lse": Tensor(
                ("batch_size", "num_qo_heads", "seq_len"),
                "float32",
                "Natural logarithm of each query's sum of exponentials.",
            ),
            "sm_scale": Tensor(None, "float32", "Factor of the logits."),
        },
        outputs={
            "grad_q": Tensor(QUERIES, "bfloat16", "Gradient of the queries."),
            "grad_k": Tensor(KEYS, "bfloat16", "Gradient of the keys."),
            "grad_v": Tensor(KEYS, "bfloat16", "Gradient of the values."),
        },
        reference=reference_text("attention_backward", "gqa_causal_backward"),
        captured_from=LLAMA,
        captured_op_type="gemm",
        sm_scale=dim**-0.5,
        structure=sequences,
        fits=sequences_fit,
    )


def sequences(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return a batch of one or two sequences of the captured tokens' number."""
    return Structure({"batch_size": rng.randint(1, 2), "seq_len": captured.axes["M"]})


def sequences_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether there are several tokens, whose logits can be held at a time."""
    return 1 < captured.axes["M"] <= _LONGEST
