"""Roundings of kernels that a generic defect of a reference repeats, so that it passes.

Each is bound by the kernel's own error: a solution may do what the kernel does. The
statement before the arrow is the reference's, what stands behind it the defect's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KernelRounding:
    """Name op_types, what begins the change of a defect, and where a kernel does it."""

    op_types: tuple[str, ...]
    change: str
    why: str
    kind: str = ""


_ATTENTION = ("gqa_paged", "gqa_ragged", "gqa_single", "mla_paged", "mla_ragged")
_EXPERTS = "SGLang's fused experts keep what each product gives in bfloat16"
ROUNDINGS = (
    KernelRounding(
        _ATTENTION,
        "logits.softmax(dim=-1) → logits.softmax(dim=-1).bfloat16()",
        "FlashInfer's fa2 and fa3 multiply values by weights of the values' dtype",
    ),
    KernelRounding(
        ("comm",),
        "hidden_states.float() → hidden_states",
        "FlashInfer's allreduce_sum adds in float32 and returns the inputs' dtype",
    ),
    KernelRounding(
        ("gemm",),
        "a @ rows.float().T → (a @ rows.float().T).bfloat16()",
        "cuBLAS may add the parts of a product that it split in bfloat16",
    ),
    *(
        KernelRounding(("moe", "moe_experts"), change, _EXPERTS)
        for change in (
            "x[token] @ dequantize(w13[expert]",
            "states[tokens] @ ",
            "inner @ gemm2_weights",
        )
    ),
    KernelRounding(
        ("adaptive_layernorm",),
        "gain.float() → gain",
        "SGLang's folded layer norm rounds 1 + gain to bfloat16",
    ),
    KernelRounding(
        ("rope",),
        "500000 → 499999",
        "frequencies by exponents in float32 turn a pair as far off, at each position",
        kind="constant",
    ),
)


def rounding_of(op_type: str, defect: str) -> str:
    """Return why a kernel rounds as a defect does, empty where none is known to.

    `defect` is the name of a generic one: `KIND LINE:COLUMN BEFORE → AFTER`.
    """
    kind, _, change = defect.partition(" ")
    change = change.partition(" ")[2]
    found = (
        r.why
        for r in ROUNDINGS
        if op_type in r.op_types
        and change.startswith(r.change)
        and kind in ((r.kind,) if r.kind else ("precision", "dropped"))
    )
    return next(found, "")
