"""Places of tokens by expert in whole blocks, as grouped products read them."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "moe_align",
    name_tokens={"k": "topk"},
    name_constants={"e": "num_experts", "bs": "block_size"},
    constants={"num_experts": None, "block_size": None},
    figures={
        "num_experts": Figure(("num_experts", "n_routed_experts", "num_local_experts")),
        "topk": Figure(("num_experts_per_tok",)),
    },
    absent={"flashinfer": "FlashInfer's experts sort tokens inside their kernels"},
)
