"""Top-k transforms of sparse attention's scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.topk_transform import workloads
from generator.ops.reference_text import reference_text

# k: the models whose indexer chooses so many
MODELS = {2048: ("deepseek-v3.2", "glm-5"), 512: ("deepseek-v4-flash",)}
# pages of the indexer's cache, and the flat table that sparse attention reads
PAGES = (64, 1)
ROWS = ("num_rows",)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return (
        *(
            paged_spec(k, page, models)
            for k, models in MODELS.items()
            for page in PAGES
        ),
        *(ragged_spec(k, models) for k, models in MODELS.items()),
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    _, _, page_size = name.rpartition("_ps")
    if page_size.isdecimal():
        return paged_spec(sizes["k"], int(page_size), (model,))
    return ragged_spec(sizes["k"], (model,))


def paged_spec(k: int, page_size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for a paged cache."""
    axes = {
        "batch_size": Axis("Number of sequences."),
        "max_pages_per_seq": Axis("Columns of the page table."),
    }
    inputs = {
        "src_page_table": Tensor(
            ("batch_size", "max_pages_per_seq"), "int32", "Pages of each sequence."
        ),
        "lengths": Tensor(ROWS, "int32", "Each row's number of scores."),
        "row_to_batch": Tensor(ROWS, "int32", "Each row's sequence."),
    }
    return _spec(
        "top_k_page_table_transform",
        f"_k{k}_ps{page_size}",
        f"page * {page_size} + offset in the page, where the page is that of the row's"
        " sequence",
        models,
        k,
        axes,
        inputs,
        PAGE_SIZE=page_size,
    )


def ragged_spec(k: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for sequences one after another."""
    inputs = {
        "offsets": Tensor(ROWS, "int32", "Where each row's sequence begins."),
        "lengths": Tensor(ROWS, "int32", "Each row's number of scores."),
    }
    return _spec(
        "top_k_ragged_transform",
        f"_k{k}",
        "the row's offset + column",
        models,
        k,
        {},
        inputs,
    )


def _spec(
    kind: str,
    sizes: str,
    place: str,
    models: tuple[str, ...],
    k: int,
    axes: Mapping[str, Axis],
    inputs: Mapping[str, Tensor],
    **constants: int,
) -> Spec:
    return Spec(
        name=f"{kind}{sizes}",
        description=(
            f"Chooses the {k} highest of each row's first `lengths` scores, all where"
            f" these are fewer, and returns their places: {place}. -1 stands behind"
            " them. The order is free, and of scores that tie with the last any may be"
            " chosen."
        ),
        op_type="topk_transform",
        tags=(
            *(f"model:{model}" for model in models),
            f"fi_api:flashinfer.topk.{kind}",
        ),
        axes={
            "num_rows": Axis("Number of queries."),
            "max_len": Axis("Columns of the scores."),
            **axes,
            "k": Axis("Scores that are chosen.", k),
        },
        inputs={
            "input": Tensor(("num_rows", "max_len"), "float32", "Scores, finite."),
            **inputs,
        },
        outputs={"indices": Tensor(("num_rows", "k"), "int32", "Places, then -1.")},
        reference=reference_text("topk_transform", kind, K=k, **constants),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        structure=workloads.paged if constants else workloads.ragged,
        fits=workloads.rows_fit,
        traffic=workloads.long_rows,
    )
