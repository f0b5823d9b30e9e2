"""Logits before sampling: penalties, biases, masks of grammars, top log-probabilities."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "logits",
    name_tokens={"v": "vocab_size", "k": "num_logprobs"},
    figures={"vocab_size": Figure(("vocab_size",))},
    absent={"flashinfer": "FlashInfer has no penalties, biases, masks and log-probs"},
    domains={
        "scaling_penalties": "non-negative",
        "repetition_penalties": "non-negative",
    },
)
