"""Merging attention states: of two parts of the keys, and of several."""

from __future__ import annotations

from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.cascade_merge.workloads import states, states_fit
from generator.ops.reference_text import reference_text

# a captured gemm whose rows are a batch's tokens
LLAMA = "gemm_n28672_k4096"


@dataclass(frozen=True)
class MergedHeads:
    """The constants of two definitions, and the models that have them."""

    num_heads: int
    head_dim: int
    models: tuple[str, ...]


HEADS = (
    MergedHeads(16, 256, ("gemma-2-9b", "qwen3-next-80b-a3b")),
    MergedHeads(32, 128, ("llama-3.1-8b", "qwen3-30b-a3b", "mistral-7b-v0.1")),
    MergedHeads(40, 128, ("qwen3-14b", "llama-4-scout")),
    MergedHeads(64, 128, ("llama-3.1-70b", "qwen3-32b")),
    MergedHeads(64, 64, ("gpt-oss-120b", "gpt-oss-20b")),
)
_EMPTY = (
    "A part without keys has s = -inf and no weight; where no part has keys, v is 0 and"
    " s -inf."
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(make(heads) for make in (merge_state, merge_states) for heads in HEADS)


def merge_state(heads: MergedHeads) -> Spec:
    """Return the definition that merges two states."""
    inputs = {}
    for part in ("a", "b"):
        inputs[f"v_{part}"] = _v(("seq_len",), f"Attention over part {part}.")
        inputs[f"s_{part}"] = _s(("seq_len",), f"Base-2 LSE of part {part}.")
    return _spec(
        heads,
        "merge_state",
        "Attention over two parts of the keys becomes attention over both:"
        " v = (2^s_a v_a + 2^s_b v_b) / 2^s with s = log2(2^s_a + 2^s_b).",
        {},
        inputs,
    )


def merge_states(heads: MergedHeads) -> Spec:
    """Return the definition that merges several states."""
    rows = ("seq_len", "num_states")
    return _spec(
        heads,
        "merge_states",
        "Attention over several parts of the keys becomes attention over all:"
        " v = sum of 2^s_i v_i over 2^s, with s the log2 of the sum of 2^s_i.",
        {"num_states": Axis("Parts of the keys.")},
        {
            "v": _v(rows, "Attention over each part."),
            "s": _s(rows, "Base-2 LSE of each part."),
        },
    )


def _spec(
    heads: MergedHeads,
    kernel: str,
    formula: str,
    axes: dict[str, Axis],
    inputs: dict[str, Tensor],
) -> Spec:
    return Spec(
        name=f"{kernel}_h{heads.num_heads}_d{heads.head_dim}",
        description=f"{formula} {_EMPTY} In float32; v is rounded once.",
        op_type="cascade_merge",
        tags=(
            *(f"model:{model}" for model in heads.models),
            f"fi_api:flashinfer.cascade.{kernel}",
        ),
        axes={
            "seq_len": Axis("Number of queries."),
            **axes,
            "num_heads": Axis("Query heads.", heads.num_heads),
            "head_dim": Axis("Length of a head.", heads.head_dim),
        },
        inputs=inputs,
        outputs={
            "v_merged": _v(("seq_len",), "Attention over all keys."),
            "s_merged": _s(("seq_len",), "Base-2 LSE of all keys."),
        },
        reference=reference_text("cascade_merge", kernel),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=states,
        fits=states_fit,
    )


def _v(rows: tuple[str, ...], what: str) -> Tensor:
    return Tensor((*rows, "num_heads", "head_dim"), "bfloat16", what)


def _s(rows: tuple[str, ...], what: str) -> Tensor:
    return Tensor((*rows, "num_heads"), "float32", what)
