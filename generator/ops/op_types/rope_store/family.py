"""Heads of served models, between their projections and attention."""

from __future__ import annotations

import random
from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, distinct
from generator.ops.workloads.tokens import LLAMA, QWEN

_MOST_TOKENS = 64
_CONTEXT = 8_192


@dataclass(frozen=True)
class Heads:
    """The heads of one GPU, and the models that have them.

    `kind` is empty, gptj, normed or "normed gemma"; `eps` is of the norm.
    """

    kind: str
    num_qo_heads: int
    num_kv_heads: int
    head_size: int
    rotary_dim: int
    models: tuple[str, ...]
    tp: int = 1
    eps: float = 1e-6

    @property
    def captured(self) -> str:
        """Return whose batches it has."""
        return QWEN if self.kind else LLAMA


_GPT_OSS = ("gpt-oss-120b", "gpt-oss-20b")
HEADS = (
    Heads("", 32, 8, 128, 128, ("llama-3.1-8b", "mistral-7b-v0.1")),
    Heads("", 8, 1, 128, 128, ("llama-3.1-70b", "llama-3.3-70b"), 8),
    Heads("", 64, 8, 64, 64, _GPT_OSS),
    Heads("", 28, 4, 128, 128, ("qwen2.5-7b",)),
    Heads("", 48, 8, 128, 128, ("mixtral-8x22b",)),
    Heads("gptj", 40, 8, 128, 128, ("llama-4-scout", "llama-4-maverick")),
    Heads("normed", 32, 8, 128, 128, ("qwen3-8b",)),
    Heads("normed", 40, 8, 128, 128, ("qwen3-14b",)),
    Heads("normed", 64, 8, 128, 128, ("qwen3-32b",)),
    Heads("normed", 32, 4, 128, 128, ("qwen3-30b-a3b",)),
    Heads("normed", 64, 4, 128, 128, ("qwen3-235b-a22b",)),
    Heads("normed", 16, 1, 128, 128, ("qwen3-235b-a22b",), 4),
    Heads("normed", 96, 8, 128, 64, ("glm-4.6",), eps=1e-5),
    Heads("normed", 12, 1, 128, 64, ("glm-4.6",), 8, eps=1e-5),
    Heads("normed", 32, 8, 64, 64, ("lfm2-8b-a1b",), eps=1e-5),
    Heads("normed gemma", 32, 16, 128, 128, ("gemma-3-27b",)),
    Heads("normed gemma", 16, 2, 256, 64, ("qwen3-next-80b-a3b",)),
)
_PAIRS = {
    False: "dimension i of a head turns with dimension i + rotary_dim / 2",
    True: "dimension 2i of a head turns with dimension 2i + 1",
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(store_spec(heads) for heads in HEADS)


def store_spec(heads: Heads) -> Spec:
    """Return the definition for one set of constants."""
    normed, eps = "normed" in heads.kind, heads.eps
    query, key = (
        ("num_tokens", count, "head_size") for count in ("num_qo_heads", "num_kv_heads")
    )
    cache = ("num_slots", "num_kv_heads", "head_size")
    scales = {
        f"{name}_weight": Tensor(("head_size",), "bfloat16", f"Scale of {what}.")
        for name, what in (("q", "queries"), ("k", "keys"))
    }
    constants = {"EPS": eps} if normed else {}
    return Spec(
        name=_name(heads),
        description=_description(heads),
        op_type="rope_store",
        tags=(*(f"model:{model}" for model in heads.models), f"tp:{heads.tp}"),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "num_qo_heads": Axis("Query heads.", heads.num_qo_heads),
            "num_kv_heads": Axis("Heads of keys and of values.", heads.num_kv_heads),
            "head_size": Axis("Length of a head.", heads.head_size),
            "rotary_dim": Axis("Dimensions of a head that turn.", heads.rotary_dim),
            "max_seq_len": Axis("Positions of the cache of cosines."),
            "num_slots": Axis("Slots of a cache of keys or values."),
        },
        inputs={
            "q": Tensor(query, "bfloat16", "Queries."),
            "k": Tensor(key, "bfloat16", "Keys."),
            "v": Tensor(key, "bfloat16", "Values."),
            **(scales if normed else {}),
            "cos_sin_cache": Tensor(
                ("max_seq_len", "rotary_dim"),
                "float32",
                "rotary_dim / 2 cosines of each position, then as many sines.",
            ),
            "positions": Tensor(
                ("num_tokens",), "int64", "Each token's row of cos_sin_cache."
            ),
            "k_cache": Tensor(cache, "bfloat16", "The cache of keys."),
            "v_cache": Tensor(cache, "bfloat16", "The cache of values."),
            "slot_mapping": Tensor(
                ("num_tokens",), "int64", "A slot each, none twice."
            ),
        },
        outputs={
            "q_out": Tensor(query, "bfloat16", "Turned queries."),
            "k_cache_out": Tensor(cache, "bfloat16", "The cache of keys afterwards."),
            "v_cache_out": Tensor(cache, "bfloat16", "The cache of values afterwards."),
        },
        reference=reference_text(
            "rope_store", "rope_store", heads.kind.split(), **constants
        ),
        captured_from=heads.captured,
        captured_op_type="gemm",
        structure=_tokens,
        fits=_fits,
    )


def _name(heads: Heads) -> str:
    sizes = (
        f"h{heads.num_qo_heads}_kv{heads.num_kv_heads}_d{heads.head_size}"
        f"_rd{heads.rotary_dim}"
    )
    if "normed" not in heads.kind:
        return f"rope_store_{heads.kind or 'neox'}_{sizes}"
    word = f"eps_{heads.eps:.0e}".replace("e-0", "em")
    gemma = "gemma_" if "gemma" in heads.kind else ""
    return f"{gemma}qk_rmsnorm_rope_store_{word}_{sizes}"


def _description(heads: Heads) -> str:
    weight = "(1 + weight)" if "gemma" in heads.kind else "weight"
    before = (
        f"RMS norm of each head of queries and keys, x * rsqrt(mean(x^2) + {heads.eps})"
        f" * {weight}, then rotary embedding, in float32 and rounded once"
        if "normed" in heads.kind
        else "Rotary embedding of queries and keys"
    )
    return (
        f"{before}: {_PAIRS[heads.kind == 'gptj']}; those from rotary_dim on pass"
        " through. Turned keys and the values, as they are, go to the slots of the cache"
        " that slot_mapping names; what is not written stays. In serving the caches are"
        " written in place."
    )


def _tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return positions of sequences and a slot for each token, none twice."""
    tokens = captured.axes["M"]
    axes = {"num_tokens": tokens, "max_seq_len": _CONTEXT, "num_slots": 2 * tokens}
    positions = [rng.randrange(_CONTEXT) for _ in range(tokens)]
    chosen = distinct(tokens, 2 * tokens, rng)
    return Structure(axes, {"positions": positions, "slot_mapping": chosen})


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a batch is of a decode's size."""
    return captured.axes["M"] <= _MOST_TOKENS
