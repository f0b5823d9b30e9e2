"""Causal convolutions: of whole sequences, and of one token a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.causal_conv1d.workloads import slots, slots_fit
from generator.ops.reference_text import reference_text

STAGES = ("fwd", "update")
POOL = ("num_slots", "dim", "state_len")


@dataclass(frozen=True)
class Channels:
    """The constants of one layer's convolution, and the models that have it."""

    dim: int
    models: tuple[str, ...]
    width: int = 4
    bias: bool = False
    tp: int = 1
    # linear, gated, or silu where it is empty
    kind: str = ""


LAYERS = (
    Channels(8192, ("qwen3-next-80b-a3b",)),
    Channels(10240, ("nemotron-h-8b",), bias=True),
    Channels(4096, ("kimi-linear-48b-a3b",)),
    *(
        Channels(dim, models, 3, kind=kind)
        for kind in ("linear", "gated")
        for dim, models in (
            (1024, ("lfm2-350m",)),
            (1536, ("lfm2-700m",)),
            (2048, ("lfm2-1.2b", "lfm2-2.6b", "lfm2-8b-a1b")),
        )
    ),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(conv_spec(layer, stage) for layer in LAYERS for stage in STAGES)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    bias = "_bias_" in name
    kind = next((k for k in ("linear", "gated") if f"_{k}_" in name), "")
    layer = Channels(sizes["d"], (model,), sizes["w"], bias, kind=kind)
    return conv_spec(layer, "update" if "_update_" in name else "fwd")


def conv_spec(layer: Channels, stage: str) -> Spec:
    """Return the definition of one layer and stage."""
    fwd = stage == "fwd"
    rows = ("total_tokens" if fwd else "batch_size", "dim")
    word = "_bias" if layer.bias else f"_{layer.kind}" if layer.kind else ""
    return Spec(
        name=f"causal_conv1d_{stage}{word}_d{layer.dim}_w{layer.width}",
        description=_description(layer, fwd),
        op_type="causal_conv1d",
        tags=(
            f"stage:{'prefill' if fwd else 'decode'}",
            *(f"model:{model}" for model in layer.models),
            f"tp:{layer.tp}",
        ),
        axes=_axes(layer, fwd),
        inputs=_inputs(layer, fwd, rows),
        outputs={
            "output": Tensor(rows, "bfloat16", _OUTPUTS[layer.kind]),
            "new_conv_states": Tensor(
                POOL, "bfloat16", "The pool after the call; other slots as before."
            ),
        },
        constraints=(
            (
                "state_len == width - 1",
                "len_cu_seqlens == num_seqs + 1",
                "total_tokens == cu_seqlens[-1].item()",
                # kernels skip a sequence of slot -1 and leave its rows as they were
                "cache_indices.min() >= 0",
            )
            if fwd
            else ("state_len == width - 1", "num_slots >= batch_size")
        ),
        reference=reference_text("causal_conv1d", stage, word[1:].split()),
        captured_from=(
            "gqa_ragged_prefill_causal_h32_kv4_d128"
            if fwd
            else "fused_add_rmsnorm_h2048"
        ),
        captured_op_type="gqa_ragged" if fwd else "rmsnorm",
        structure=slots,
        fits=slots_fit,
    )


_OUTPUTS = {
    "": "Convolved rows, after silu.",
    "linear": "Convolved rows.",
    "gated": "Convolved rows, times the second gate.",
}
# what is done, to what, and what a state holds
_KINDS = {
    "": (", then silu(x) = x * sigmoid(x)", "x", ", before silu"),
    "linear": (" and no activation behind it", "x", ""),
    "gated": (
        " of u = b_gate * x, rounded to bfloat16, then times c_gate",
        "u",
        "",
    ),
}


def _description(layer: Channels, fwd: bool) -> str:
    added = "bias + " if layer.bias else ""
    last = layer.width - 1
    how, what, before = _KINDS[layer.kind]
    text = (
        f"Causal convolution of each channel{how}: {added}the"
        f" sum over j of weight[j] * {what}[t - {last} + j]. A sequence's state is its"
        f" last {last} inputs, in a slot of a pool: the oldest first{before}."
    )
    if fwd:
        return (
            f"{text} Several sequences, whose tokens stand one after another; before the"
            " first token of one without an initial state are zeros. Every sequence has a"
            " slot: of one with slot -1, which kernels skip, nothing is defined."
        )
    return (
        f"{text} One token a sequence. A row of slot -1 is padding: no state is written,"
        " and its output is 0."
    )


def _axes(layer: Channels, fwd: bool) -> dict[str, Axis]:
    return {
        **(
            {
                "total_tokens": Axis("Tokens of all sequences."),
                "num_seqs": Axis("Number of sequences."),
                "len_cu_seqlens": Axis("Number of sequences + 1."),
            }
            if fwd
            else {"batch_size": Axis("Number of sequences, padding included.")}
        ),
        "num_slots": Axis("Slots of the pool, used or not."),
        "dim": Axis("Channels.", layer.dim),
        "width": Axis("Inputs that an output sees.", layer.width),
        "state_len": Axis("Inputs that a state holds.", layer.width - 1),
    }


def _inputs(layer: Channels, fwd: bool, rows: tuple[str, ...]) -> dict[str, Tensor]:
    bias = {"bias": Tensor(("dim",), "bfloat16", "Added to each channel.")}
    ends = {
        "cu_seqlens": Tensor(
            ("len_cu_seqlens",),
            "int32",
            "Sequence b's tokens: cu_seqlens[b]:cu_seqlens[b + 1].",
        )
    }
    sequences = "num_seqs" if fwd else "batch_size"
    initial = {
        "has_initial_state": Tensor(
            ("num_seqs",), "bool", "Whether a sequence goes on from its slot's state."
        )
    }
    gates = {
        "b_gate": Tensor(rows, "bfloat16", "Multiplied with x."),
        "c_gate": Tensor(rows, "bfloat16", "Multiplied with what was convolved."),
    }
    return {
        **(gates if layer.kind == "gated" else {}),
        "x": Tensor(rows, "bfloat16", "One row a token."),
        "conv_states": Tensor(POOL, "bfloat16", "Pool of states."),
        "weight": Tensor(
            ("dim", "width"), "bfloat16", "Taps, the oldest input's first."
        ),
        **(bias if layer.bias else {}),
        **(ends if fwd else {}),
        "cache_indices": Tensor(
            (sequences,),
            "int32",
            f"Each sequence's slot of the pool{'' if fwd else ', -1 for padding'}.",
        ),
        **(initial if fwd else {}),
    }
