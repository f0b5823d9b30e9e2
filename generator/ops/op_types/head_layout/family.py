"""Heads of models, as projections write them and as products and caches want them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.head_layout import SPEC
from generator.ops.reference_text import ReferenceText, reference_text
from generator.ops.workloads.tokens import DEEPSEEK, LLAMA, QWEN, tokens, tokens_fit

# heads of queries and of keys, their length: models, tp, whose batches
SPLITS = {
    (8, 1, 128): (("llama-3.1-70b", "llama-3.3-70b"), 8, LLAMA),
    (28, 4, 128): (("qwen2.5-7b",), 1, QWEN),
    (32, 4, 128): (("qwen3-30b-a3b",), 1, QWEN),
    (32, 8, 128): (("llama-3.1-8b", "qwen3-8b"), 1, LLAMA),
    (64, 8, 64): (("gpt-oss-120b", "gpt-oss-20b"), 1, QWEN),
}
# heads, their length: models
TURNS = {
    "heads_first": {
        (128, 128): ("deepseek-v3", "deepseek-r1"),
        (64, 128): ("kimi-k2",),
    },
    "tokens_first": {
        (128, 128): ("deepseek-v3", "deepseek-r1"),
        (64, 128): ("kimi-k2",),
    },
}
KEYS = {(128, 128, 64): ("deepseek-v3", "deepseek-r1"), (64, 128, 64): ("kimi-k2",)}
_TURNED = {
    "heads_first": (
        (
            "Heads before tokens, as the batched products of latent attention with each"
            " head's weight want the queries: out[h, t] = x[t, h]."
        ),
        ("num_tokens", "num_heads", "head_dim"),
    ),
    "tokens_first": (
        (
            "Tokens before heads, as the output projection of latent attention wants what"
            " the batched products gave: out[t, h] = x[h, t]."
        ),
        ("num_heads", "num_tokens", "head_dim"),
    ),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return (
        *(split_spec(*sizes, *others) for sizes, others in SPLITS.items()),
        *(
            turn_spec(kind, *sizes, models)
            for kind, turns in TURNS.items()
            for sizes, models in turns.items()
        ),
        *(key_spec(*sizes, models) for sizes, models in KEYS.items()),
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    if name.startswith("split_qkv_"):
        return split_spec(sizes["h"], sizes["kv"], sizes["d"], (model,), 1, LLAMA)
    if name.startswith("concat_mla_k_"):
        return key_spec(sizes["h"], sizes["nope"], sizes["rope"], (model,))
    kind = name.partition("_h")[0]
    kind = name[: name.rindex("_h")] if "_h" in name else kind
    return turn_spec(kind, sizes["h"], sizes["d"], (model,)) if kind in TURNS else None


def split_spec(
    heads: int, kv_heads: int, dim: int, models: tuple[str, ...], tp: int, captured: str
) -> Spec:
    """Return the definition that splits fused rows with these numbers of heads."""
    outputs = {
        name: Tensor(("num_tokens", axis, "head_dim"), "bfloat16", f"The {what}.")
        for name, axis, what in (
            ("q", "num_qo_heads", "queries"),
            ("k", "num_kv_heads", "keys"),
            ("v", "num_kv_heads", "values"),
        )
    }
    return _spec(
        f"split_qkv_h{heads}_kv{kv_heads}_d{dim}",
        (
            "Queries, keys and values of the rows of a fused projection, each contiguous."
            " A row has all query heads, then all key heads, then all value heads."
        ),
        (*models, *([f"tp:{tp}"] if tp > 1 else [])),
        {
            "num_qo_heads": Axis("Heads of queries.", heads),
            "num_kv_heads": Axis("Heads of keys and of values.", kv_heads),
            "head_dim": Axis("Length of a head.", dim),
            "qkv_size": Axis("Length of a row.", (heads + 2 * kv_heads) * dim),
        },
        {"qkv": Tensor(("num_tokens", "qkv_size"), "bfloat16", "Fused rows.")},
        outputs,
        reference_text(
            "head_layout", "split_qkv", NUM_QO_HEADS=heads, NUM_KV_HEADS=kv_heads
        ),
        captured,
        ("qkv_size == (num_qo_heads + 2 * num_kv_heads) * head_dim",),
    )


def turn_spec(kind: str, heads: int, dim: int, models: tuple[str, ...]) -> Spec:
    """Return the definition that exchanges heads and tokens."""
    what, shape = _TURNED[kind]
    return _spec(
        f"{kind}_h{heads}_d{dim}",
        what,
        models,
        {
            "num_heads": Axis("Number of heads.", heads),
            "head_dim": Axis("Length of a head.", dim),
        },
        {"x": Tensor(shape, "bfloat16", "Heads as they are.")},
        {"output": Tensor((shape[1], shape[0], shape[2]), "bfloat16", "Turned heads.")},
        reference_text("head_layout", "turned"),
        DEEPSEEK,
    )


def key_spec(heads: int, nope: int, rope: int, models: tuple[str, ...]) -> Spec:
    """Return the definition that puts together the keys of latent attention."""
    head = ("num_tokens", "num_heads")
    return _spec(
        f"concat_mla_k_h{heads}_nope{nope}_rope{rope}",
        (
            "Keys of latent attention before compression: each head's own part, then the"
            " rotary part, which all heads of a token share."
        ),
        models,
        {
            "num_heads": Axis("Number of heads.", heads),
            "nope_dim": Axis("Length of the part without positions.", nope),
            "rope_dim": Axis("Length of the rotary part.", rope),
            "key_dim": Axis("Length of a key.", nope + rope),
        },
        {
            "k_nope": Tensor((*head, "nope_dim"), "bfloat16", "Each head's own part."),
            "k_rope": Tensor(
                ("num_tokens", "rope_dim"), "bfloat16", "The shared part."
            ),
        },
        {"k": Tensor((*head, "key_dim"), "bfloat16", "The keys.")},
        reference_text("head_layout", "concat_mla_k"),
        DEEPSEEK,
        ("key_dim == nope_dim + rope_dim",),
    )


def _spec(
    name: str,
    description: str,
    models: tuple[str, ...],
    axes: Mapping[str, Axis],
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    reference: ReferenceText,
    captured_from: str,
    constraints: tuple[str, ...] = (),
) -> Spec:
    tags = [m if m.startswith("tp:") else f"model:{m}" for m in models]
    return Spec(
        name=name,
        description=f"{description} Bits are copied, none is computed.",
        op_type="head_layout",
        tags=(*tags, *SPEC.kernel_tags(name)),
        axes={"num_tokens": Axis("Number of tokens."), **axes},
        inputs=inputs,
        outputs=outputs,
        reference=reference,
        captured_from=captured_from,
        captured_op_type="gemm",
        constraints=constraints,
        structure=tokens,
        fits=tokens_fit,
    )
