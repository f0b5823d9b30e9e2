"""Gradient of an embedding's table: the sum over the places where a token stands."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "embedding_backward",
    name_tokens={"v": "vocab_size", "h": "hidden_size"},
    figures={
        "vocab_size": Figure(("vocab_size",)),
        "hidden_size": Figure(("hidden_size", "n_embd")),
    },
    absent={
        "flashinfer": "FlashInfer has no backward passes",
        "sglang": "SGLang has no backward passes",
    },
)
