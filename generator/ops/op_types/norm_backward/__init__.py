"""Gradients of RMS norms and layer norms, for training."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "norm_backward",
    name_tokens={"h": "hidden_size"},
    name_words={"1em5": ("eps", 1e-05), "1em6": ("eps", 1e-06)},
    constants={"eps": None},
    figures={"hidden_size": Figure(("hidden_size", "n_embd"))},
    absent={
        "flashinfer": "FlashInfer has no backward passes",
        "sglang": "SGLang has no backward passes",
    },
)
