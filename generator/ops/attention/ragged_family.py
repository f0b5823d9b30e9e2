"""Interface shared by all attention over keys and values without a cache."""

from __future__ import annotations

from generator.ops.family import Axis, Tensor

FI_API = "fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper"
CONSTRAINTS = ("total_q == qo_indptr[-1].item()", "total_kv == kv_indptr[-1].item()")

VAR_AXES = {
    "len_indptr": Axis("Length of the indptr arrays: one more than sequences."),
    "total_q": Axis("Number of queries of all sequences."),
    "total_kv": Axis("Number of keys of all sequences."),
}


def inputs(qk_dim: str, vo_dim: str, dtype: str = "bfloat16") -> dict[str, Tensor]:
    """Return the inputs; `qk_dim`, `vo_dim` name the axes of a key's, a value's length."""
    return {
        "q": Tensor(
            ("total_q", "num_qo_heads", qk_dim),
            dtype,
            "Queries of all sequences, one after the other.",
        ),
        "k": Tensor(
            ("total_kv", "num_kv_heads", qk_dim),
            dtype,
            "Keys of all sequences, one after the other.",
        ),
        "v": Tensor(
            ("total_kv", "num_kv_heads", vo_dim),
            dtype,
            "Values of all sequences, one after the other.",
        ),
        "qo_indptr": Tensor(
            ("len_indptr",), "int32", "Sequence b's queries: qo_indptr[b]:[b + 1]."
        ),
        "kv_indptr": Tensor(
            ("len_indptr",),
            "int32",
            "Sequence b's keys and values: kv_indptr[b]:[b + 1].",
        ),
        "sm_scale": Tensor(None, "float32", "Factor of the logits before softmax."),
    }
