"""mamba1: a state for each channel that decays by steps of its own, read and gated.

The oracle adds up all tokens before one at a time in float64, each decayed by the sum of
the steps since. SGLang's Triton kernel computes the decode step; of scans it has none.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.mamba1.relations import state_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_CANCELLING = (
    "the 17 products of an output cancel from magnitudes that add up to about 60, times a "
    "gate of 4: float32 adds them with an error of 17 times 2^-24 of that, 2.5e-4, at most"
)
_STATES = (
    "two float32 products of up to 20 are added, a few tokens back each: four roundings of "
    "2^-24 are 5e-6 each time, of which decay leaves few"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=2.5e-4, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_CANCELLING}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=5e-4, nmse=1.6e-5),
        "both sides round a float32 value once, to neighbours at most, 2^-7 apart; "
        f"{_CANCELLING}, on either side",
    ),
    Override(
        "new_state",
        Tolerance(rtol=2e-6, atol=1e-5, nmse=1e-11),
        _STATES,
        source="oracle",
    ),
    Override(
        "new_state",
        Tolerance(rtol=4e-6, atol=3e-5, nmse=1e-9),
        f"{_STATES}; the kernel's softplus, log(1 + exp(x)), is off by 2^-24 of 1, which "
        "A times state and B times x, 60 together, make 4e-6",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, tiny and large steps, batches, and many tokens."""
    is_scan = "state" not in definition.interface.inputs
    sizes: dict[str, tuple[str, int, int, float]] = {
        "one-token": ("small", 1, 1, -0.5),
        "three-sequences": ("small", 3, 7, -0.5),
        # softplus(-9 ± 1) is about exp(-9): the state hardly changes
        "tiny-steps": ("small", 2, 5, -9.0),
        # around 20, where kernels replace softplus by the identity
        "large-steps": ("small", 2, 4, 20.0),
        "batch": ("medium", 9 if not is_scan else 2, 67, -0.5),
        "past-limits": (LIMITS, 3 if is_scan else 139, 531, -0.5),
        "long": ("large", 2 if is_scan else 256, 1_024, -0.5),
    }
    return [
        Case(
            name,
            size,
            {"batch_size": rows, **({"seq_len": length} if is_scan else {})},
            {"dt_mean": mean},
        )
        for name, (size, rows, length, mean) in sizes.items()
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs in their shapes; decay rates -A are 1/8 to 16, of each channel."""
    lengths = {**definition.axes, **case.axes}
    inputs: dict[str, Any] = {}
    for name, spec in definition.interface.input_specs.items():
        shape, drawn = shape_of(spec, lengths), stream.child(name)
        if name == "A":
            rates = torch.arange(1.0, shape[1] + 1.0).expand(shape)
            inputs[name] = -rates * (1.0 + 0.7 * drawn.values(shape, 0.5))
            inputs[name] = -inputs[name].abs().clamp(0.125, 16.0)
        elif name == "dt_bias":
            inputs[name] = drawn.values(shape) + case.params.get("dt_mean", -0.5)
        elif spec.dtype == "float32":
            inputs[name] = drawn.values(shape)
        else:
            std = 0.5 if name == "dt" else 1.0
            inputs[name] = drawn.values(shape, std).to(torch.bfloat16)
    return inputs


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and states in float64, from the sums of steps since each token."""
    wide = {name: value.double() for name, value in inputs.items()}
    is_step = "state" in inputs
    if is_step:
        for name in ("x", "dt", "B", "C", "z"):
            wide[name] = wide[name][:, None]
    raw = wide["dt"] + wide["dt_bias"]
    steps = torch.logaddexp(raw, torch.zeros_like(raw))
    total = steps.cumsum(dim=1)
    outputs = []
    for t in range(total.shape[1]):
        since = total[:, t : t + 1] - total[:, : t + 1]
        read = torch.zeros_like(total[:, t])
        states = []
        for n, rates in enumerate(wide["A"].T):
            # what is left of each token: [batch_size, tokens so far, dim]
            left = torch.exp(rates * since) * (steps * wide["x"])[:, : t + 1]
            state = torch.einsum("btd,bt->bd", left, wide["B"][:, : t + 1, n])
            if is_step:
                state = state + wide["state"][..., n] * torch.exp(rates * total[:, t])
            states.append(state)
            read = read + state * wide["C"][:, t, n, None]
        z = wide["z"][:, t]
        gated = (read + wide["D"] * wide["x"][:, t]) * z * torch.sigmoid(z)
        outputs.append(gated)
    output = torch.stack(outputs, dim=1)
    return (output[:, 0] if is_step else output), torch.stack(states, dim=-1)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's Triton kernel for a step; it has no scan with a step a channel."""
    is_step = "state" in definition.interface.inputs
    return (Backend("triton", needs=("triton",)),) if is_step else ()


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output, and the states that were given, which the kernel updates."""
    from sglang.kernels.ops.mamba.triton_ops import mamba_ssm

    state, x = inputs["state"], inputs["x"]
    output = torch.empty_like(x)
    mamba_ssm.selective_state_update(
        state,
        x,
        inputs["dt"],
        inputs["A"],
        inputs["B"],
        inputs["C"],
        D=inputs["D"],
        z=inputs["z"],
        dt_bias=inputs["dt_bias"],
        dt_softplus=True,
        out=output,
    )
    return output, state


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=state_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)
