"""Low-rank adapters of one model: requests of a batch that use different ones."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.segment_gemm import SPEC
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, split

_MOST_SEGMENTS, _MOST_WEIGHTS = 64, 16


@dataclass(frozen=True)
class Adapter:
    """The constants of one definition: features in and out."""

    k: int
    n: int
    use: str


ADAPTERS = (
    Adapter(4096, 16, "to rank 16"),
    Adapter(16, 4096, "from rank 16"),
    Adapter(4096, 64, "to rank 64"),
    Adapter(64, 4096, "from rank 64"),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(adapter_spec(adapter) for adapter in ADAPTERS)


def adapter_spec(adapter: Adapter) -> Spec:
    """Return the definition for one set of constants."""
    return Spec(
        name=f"segment_gemm_fp16_k{adapter.k}_n{adapter.n}",
        description=(
            "Products y_s = x_s @ W[i_s].T in float16 with float32 accumulation, for "
            "segments of rows that choose their weight: low-rank adapters of requests "
            f"in a batch, {adapter.use}. FlashInfer's SegmentGEMMWrapper computes them."
        ),
        op_type="segment_gemm",
        tags=("model:llama-3.1-8b", *SPEC.kernel_tags("segment_gemm_")),
        axes={
            "total_rows": Axis("Rows of all segments."),
            "num_weights": Axis("Number of weights."),
            "num_segments": Axis("Number of segments."),
            "len_indptr": Axis("Length of seg_indptr: one more than segments."),
            "N": Axis("Output features.", adapter.n),
            "K": Axis("Input features.", adapter.k),
        },
        inputs={
            "x": Tensor(("total_rows", "K"), "float16", "Rows, segment by segment."),
            "weights": Tensor(
                ("num_weights", "N", "K"), "float16", "One row an output feature."
            ),
            "seg_indptr": Tensor(
                ("len_indptr",), "int64", "Segment s has the rows [s]:[s + 1]."
            ),
            "weight_indices": Tensor(
                ("num_segments",), "int64", "The weight of each segment."
            ),
        },
        outputs={"y": Tensor(("total_rows", "N"), "float16", "The products.")},
        constraints=(
            "len_indptr == num_segments + 1",
            "total_rows == seg_indptr[-1].item()",
        ),
        reference=reference_text("segment_gemm", "segment_gemm"),
        captured_from="gemm_n28672_k4096",
        captured_op_type="gemm",
        structure=_segments,
    )


def _segments(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the captured gemm's rows, divided among requests that name weights."""
    rows = captured.axes["M"]
    count = rng.randint(1, min(rows, _MOST_SEGMENTS))
    weights = rng.randint(1, _MOST_WEIGHTS)
    axes = {
        "total_rows": rows,
        "num_weights": weights,
        "num_segments": count,
        "len_indptr": count + 1,
    }
    bounds = list(accumulate(split(rows, count, 1, rng), initial=0))
    indices = [rng.randrange(weights) for _ in range(count)]
    return Structure(axes, {"seg_indptr": bounds, "weight_indices": indices})
