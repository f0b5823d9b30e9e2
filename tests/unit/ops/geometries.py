"""Small geometries that stand for all of an interface: the same defects, in less time."""

from __future__ import annotations

from generator.ops import geometry
from tests.builders import known, loaded, replaced, run_of, sized
from tests.golden.op_types import kept

GQA = {"num_qo_heads": 6, "num_kv_heads": 2, "head_dim": 16}
SPARSE = {"num_qo_heads": 2, "topk": 256}
GDN = {"num_q_heads": 2, "num_k_heads": 2, "num_v_heads": 4, "head_size": 16}
EXPERTS = {"hidden_size": 256, "intermediate_size": 128, "gemm1_out_size": 256}
BLOCKS = {
    "num_hidden_blocks": 2,
    "num_intermediate_blocks": 1,
    "num_gemm1_out_blocks": 2,
}
# w2 has a matrix of block scales too
WIDE_EXPERTS = {"hidden_size": 256, "intermediate_size": 256, "gemm1_out_size": 512}
WIDE_BLOCKS = {
    "num_hidden_blocks": 2,
    "num_intermediate_blocks": 2,
    "num_gemm1_out_blocks": 4,
}
VOCABULARY = {"vocab_size": 2048}

# one definition of every op_type, and of every kind of geometry that it has
REPRESENTATIVES = tuple(kept("mutants").items())


def reference_of(name, axes):
    """Return a reference's text, its constants as the axes are."""
    text = loaded(name).reference
    if axes.get("topk") and "TOPK = " in text:
        text = replaced(text, "TOPK = 2048", f"TOPK = {axes['topk']}")
    return text


def definition_and_run(name, axes):
    """Return a definition of other axes, and its reference's run() for these."""
    return sized(name, **axes), run_of(reference_of(name, axes))


def reduced(name):
    """Return the axes in which a definition is tried where its own take too long.

    The numbers of heads, of experts and of groups stay: they are what mutants mix up.
    """
    definition = known(name)
    axes = definition.axes
    if definition.op_type == "gemm":
        square = axes["N"] == axes["K"]
        return {"N": min(axes["N"], 1024), "K": 1024 if square else 1536}
    if definition.op_type in (
        "gemm_fp8",
        "gemm_w8a8",
        "gemm_w4a16",
        "quantization",
        "moe_experts",
    ):
        return geometry.reduced(definition.op_type, axes)
    if definition.op_type == "moe":
        return WIDE_EXPERTS | (WIDE_BLOCKS if name.startswith("moe_fp8_block") else {})
    return {
        "sampling": VOCABULARY,
        "gdn": {"head_size": 16},
        "mamba_ssu": {"head_dim": 4, "dstate": 16},
        "mamba_ssd": {"head_dim": 4, "dstate": 16},
        "causal_conv1d": {"dim": 64},
        "embedding": {"vocab_size": 96},
    }.get(definition.op_type, {})
