"""Top-k of score rows, as places in a paged or ragged cache."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "topk_transform",
    name_tokens={"k": "k"},
    name_constants={"ps": "page_size"},
    variant_constants=("page_size",),
    figures={"k": Figure(("index_topk",))},
)
