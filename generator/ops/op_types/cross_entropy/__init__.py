"""Cross-entropy of a vocabulary's logits and its gradient, with z-loss where it has one."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "cross_entropy",
    name_tokens={"v": "vocab_size"},
    name_words={"zloss": ("z_loss", 1e-05)},
    variant_constants=("z_loss",),
    figures={"vocab_size": Figure(("vocab_size",))},
    absent={
        "flashinfer": "FlashInfer has no losses",
        "sglang": "SGLang has no losses",
    },
)
