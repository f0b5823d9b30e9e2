"""Embedding: rows of a vocabulary, or of a shard of it."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "embedding",
    name_tokens={"v": "vocab_size", "h": "hidden_size"},
    name_words={"gemma": ("scaled", True)},
    variant_constants=("scaled",),
    figures={
        # SGLang fills a vocabulary that GPUs can't divide
        "vocab_size": Figure(("vocab_size",), "tp", padding=64),
        "hidden_size": Figure(("hidden_size",)),
    },
    absent={"flashinfer": "FlashInfer has no embedding"},
)
