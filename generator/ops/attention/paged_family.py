"""Interface shared by all attention over a paged cache."""

from __future__ import annotations

from generator.ops.family import Axis, Tensor

LEN_INDPTR = "len_indptr == batch_size + 1"
TOTAL_Q = "total_q == qo_indptr[-1].item()"
NUM_KV_INDICES = "num_kv_indices == kv_indptr[-1].item()"

EMPTY_DECODE = "A sequence without keys gives output 0 and lse -inf."
NO_KEY = "A query that sees no key gives output 0 and lse -inf."
EMPTY_PREFILL = (
    "The mask is causal and aligned bottom-right: query i of q_len sees keys"
    f" 0 ... kv_len - q_len + i. {NO_KEY}"
)
KV_LEN_PS1 = "A page holds one token."
KV_LEN = (
    "A sequence has (pages - 1) * page_size + kv_last_page_len keys,"
    " none where it has no pages."
)

CALLED = (
    "The interface is that of calls of FlashInfer's wrapper: without return_lse output is"
    " the one value. Solutions are installed under the name without return_lse."
)
RETURN_LSE = Tensor(
    None, "bool", "Whether lse is returned; calls pass it always.", optional=True
)

VAR_AXES = {
    "batch_size": Axis("Number of sequences."),
    "total_q": Axis("Number of queries of all sequences."),
    "num_pages": Axis("Pages of the cache, used or not."),
    "len_indptr": Axis("Length of the indptr arrays: one more than sequences."),
    "num_kv_indices": Axis("Pages of all sequences."),
    "mask_len": Axis("Queries times keys, added up over the sequences."),
}


def structural_inputs(prefill: bool, page_size: int) -> dict[str, Tensor]:
    """Return the inputs behind the cache: who reads which pages, and sm_scale."""
    inputs = {}
    if prefill:
        inputs["qo_indptr"] = Tensor(
            ("len_indptr",), "int32", "Sequence b's queries: qo_indptr[b]:[b + 1]."
        )
    inputs["kv_indptr"] = Tensor(
        ("len_indptr",), "int32", "Sequence b's part of kv_indices: kv_indptr[b]:[b+1]."
    )
    inputs["kv_indices"] = Tensor(
        ("num_kv_indices",), "int32", "Page numbers, in the order of the tokens."
    )
    if page_size > 1:
        inputs["kv_last_page_len"] = Tensor(
            ("batch_size",),
            "int32",
            "Filled slots of each sequence's last page, 1 to page_size;"
            " ignored for a sequence without pages.",
        )
    inputs["sm_scale"] = Tensor(None, "float32", "Factor of the logits before softmax.")
    return inputs


def lse_output(rows: str) -> Tensor:
    """Return the declaration of the log-sum-exp output."""
    return Tensor(
        (rows, "num_qo_heads"),
        "float32",
        "Base-2 log of the sum of exponentials of the scaled logits.",
    )
