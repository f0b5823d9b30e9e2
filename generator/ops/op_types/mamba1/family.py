"""Models whose layers are Mamba 1, or some of them."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA

UPDATE, SCAN = "mamba1_update", "mamba1_scan"
# channels, numbers of a channel's state: models
SIZES = {
    (1536, 16): ("mamba-130m",),
    (5120, 16): ("mamba-2.8b",),
    (8192, 16): ("jamba-v0.1", "falcon-mamba-7b"),
}
_MOST_TOKENS, _MOST_SEQUENCES = 1024, 256
_WHAT = {
    UPDATE: "One decode step of Mamba 1",
    SCAN: "Mamba 1 over whole sequences, whose states begin at 0",
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        channel_spec(kind, dim, dstate, models)
        for kind in (UPDATE, SCAN)
        for (dim, dstate), models in SIZES.items()
    )


def channel_spec(kind: str, dim: int, dstate: int, models: tuple[str, ...]) -> Spec:
    """Return the definition of a step, or of a scan, for so many channels."""
    rows = ("batch_size",) if kind == UPDATE else ("batch_size", "seq_len")
    axes = {"batch_size": Axis("Number of sequences.")}
    if kind == SCAN:
        axes["seq_len"] = Axis("Tokens of each.")
    state = Tensor(("batch_size", "dim", "dstate"), "float32", "Each channel's state.")
    inputs = {"state": state} if kind == UPDATE else {}
    inputs |= {
        "x": Tensor((*rows, "dim"), "bfloat16", "Channels, behind the convolution."),
        "dt": Tensor((*rows, "dim"), "bfloat16", "Steps, before the bias."),
        "A": Tensor(("dim", "dstate"), "float32", "Decay rates, below 0."),
        "B": Tensor((*rows, "dstate"), "bfloat16", "What a token adds to states."),
        "C": Tensor((*rows, "dstate"), "bfloat16", "What is read of states."),
        "D": Tensor(("dim",), "float32", "Factor of x itself."),
        "z": Tensor((*rows, "dim"), "bfloat16", "The gate, before SiLU."),
        "dt_bias": Tensor(("dim",), "float32", "Added to steps."),
    }

    def batch(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
        rows = captured.axes["M"]
        if kind == UPDATE:
            return Structure({"batch_size": rows})
        return Structure({"batch_size": rng.choice((1, 2)), "seq_len": rows})

    return Spec(
        name=f"{kind}_d{dim}_s{dstate}",
        description=(
            f"{_WHAT[kind]}: step = softplus(dt + dt_bias), state = state * exp(A * step)"
            " + step * x * B, output = (state * C summed + D * x) * silu(z). Each channel"
            " has its own step. In float32, the output rounded once to bfloat16."
        ),
        op_type="mamba1",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            **axes,
            "dim": Axis("Number of channels.", dim),
            "dstate": Axis("Numbers of a channel's state.", dstate),
        },
        inputs=inputs,
        outputs={
            "output": Tensor((*rows, "dim"), "bfloat16", "The gated channels."),
            "new_state": Tensor(
                state.shape, "float32", "States behind the last token."
            ),
        },
        reference=reference_text("mamba1", kind),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=batch,
        fits=rows_fit,
    )


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a batch decodes so many sequences, or a scan so many tokens."""
    most = _MOST_TOKENS if "seq_len" in spec.axes else _MOST_SEQUENCES
    return captured.axes["M"] <= most
