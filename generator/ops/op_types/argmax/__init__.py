"""Greedy sampling: the most probable token of each row."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "argmax",
    name_tokens={"v": "vocab_size"},
    figures={"vocab_size": Figure(("vocab_size",))},
    absent={
        "flashinfer": "FlashInfer has no argmax of logits",
        "sglang": "SGLang calls PyTorch's argmax",
    },
)
