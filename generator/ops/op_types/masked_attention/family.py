"""Encoders of text and images, and transformers of images that read a text."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA

FLOATS, PADDING, T5 = "attention_float_mask", "cross_attention_padding", "t5_attention"
# heads, their length: models, how many keys there are (0: as many as queries)
_SELF = (0,)
ATTENTIONS = {
    (FLOATS, 12, 64): (("bert-base-uncased",), _SELF),
    (FLOATS, 16, 64): (("bge-large-en-v1.5",), _SELF),
    (FLOATS, 16, 72): (("siglip2-so400m-patch16-naflex",), _SELF),
    (FLOATS, 24, 128): (("hunyuan-video",), _SELF),
    (PADDING, 16, 72): (("pixart-sigma-xl",), (120, 300)),
    (PADDING, 32, 64): (("ltx-video",), (128, 256)),
    (T5, 64, 64): (("t5-v1_1-xxl", "umt5-xxl"), _SELF),
    (T5, 32, 64): (("t5-v1_1-xl",), _SELF),
    (T5, 12, 64): (("t5-base",), _SELF),
}
_MOST_TOKENS = 2048
_WHAT = {
    FLOATS: (
        "Attention of all queries to all keys of their sequence, with a number added to"
        " each pair's logit: minus infinity, or a large negative number, where a query"
        " may not see a key. Logits are products of q and k over the root of {dim}."
    ),
    PADDING: (
        "Attention of the patches of an image to the tokens of a text that were not"
        " padded: keys whose mask is false are not seen. Logits are products of q and k"
        " over the root of {dim}; of a sequence without a key the output is 0."
    ),
    T5: (
        "Attention of T5's encoder: logits are products of q and k, not scaled, plus a"
        " number for each head and bucket of key position less query position. Of 32"
        " buckets, the upper 16 are of keys behind the query. Of each 16, 8 are of"
        " distances 0 to 7, and 8 of ones that grow as the logarithm up to 128, the last"
        " of all beyond."
    ),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        attention_spec(kind, heads, dim, models, keys)
        for (kind, heads, dim), (models, keys) in ATTENTIONS.items()
    )


def attention_spec(
    kind: str, heads: int, dim: int, models: tuple[str, ...], keys: tuple[int, ...]
) -> Spec:
    """Return the definition of one kind for these heads."""
    axes = {"batch_size": Axis("Number of sequences.")}
    if kind == T5:
        rows = columns = "seq_len"
        axes["seq_len"] = Axis("Tokens of each.")
    else:
        rows, columns = "q_len", "kv_len"
        axes |= {"q_len": Axis("Queries of each."), "kv_len": Axis("Keys of each.")}
    queries, cache = (
        ("batch_size", axis, "num_heads", "head_dim") for axis in (rows, columns)
    )
    inputs = {
        "q": Tensor(queries, "bfloat16", "Queries."),
        "k": Tensor(cache, "bfloat16", "Keys."),
        "v": Tensor(cache, "bfloat16", "Values."),
    }
    constants = {
        "num_heads": Axis("Number of heads.", heads),
        "head_dim": Axis("Length of a head.", dim),
    }
    if kind == FLOATS:
        mask = ("batch_size", "q_len", "kv_len")
        inputs["mask"] = Tensor(mask, "bfloat16", "Added to logits of all heads.")
    elif kind == PADDING:
        inputs["mask"] = Tensor(("batch_size", "kv_len"), "bool", "Whether it is seen.")
    else:
        constants["num_buckets"] = Axis("Buckets of distances.", 32)
        buckets = ("num_buckets", "num_heads")
        inputs["relative_bias"] = Tensor(buckets, "bfloat16", "Added to logits.")

    def batch(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
        tokens = captured.axes["M"]
        sizes = {"batch_size": rng.choice((1, 2)), "q_len": tokens, "seq_len": tokens}
        return Structure({**sizes, "kv_len": rng.choice(keys) or tokens})

    return Spec(
        name=f"{kind}_h{heads}_d{dim}",
        description=(
            f"{_WHAT[kind].format(dim=dim)} In float32, rounded once to bfloat16."
        ),
        op_type="masked_attention",
        tags=tuple(f"model:{model}" for model in models),
        axes={**axes, **constants},
        inputs=inputs,
        outputs={"output": Tensor(queries, "bfloat16", "What each query sees.")},
        constraints=("num_buckets == 32",) if kind == T5 else (),
        reference=reference_text("masked_attention", kind),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=batch,
        fits=lengths_fit,
    )


def lengths_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether logits of so many queries and keys are held at once."""
    return captured.axes["M"] <= _MOST_TOKENS
