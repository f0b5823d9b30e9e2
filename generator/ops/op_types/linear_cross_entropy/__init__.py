"""Cross-entropy of hidden states times a vocabulary's weight, without stored logits."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "linear_cross_entropy",
    name_tokens={"v": "vocab_size", "h": "hidden_size"},
    name_words={"zloss": ("z_loss", 1e-05)},
    variant_constants=("z_loss",),
    figures={
        "vocab_size": Figure(("vocab_size",)),
        "hidden_size": Figure(("hidden_size", "n_embd")),
    },
    # logits of about one: a gradient is exp(logit - lse), of an lse that is drawn as well
    domains={"hidden_states": "unit"},
    absent={
        "flashinfer": "FlashInfer has no losses",
        "sglang": "SGLang has no losses",
    },
)
