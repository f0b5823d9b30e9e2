"""Reference tests of op_type mamba1.

Rendered: don't edit. `gen-tests --op-type mamba1` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.op_types.mamba1.relations import state_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.mamba1.relations

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


# ---- the interfaces

INTERFACE_MAMBA1_SCAN = Interface(
    inputs={
        "x": "bfloat16[batch_size, seq_len, dim]",
        "dt": "bfloat16[batch_size, seq_len, dim]",
        "A": "float32[dim, dstate]",
        "B": "bfloat16[batch_size, seq_len, dstate]",
        "C": "bfloat16[batch_size, seq_len, dstate]",
        "D": "float32[dim]",
        "z": "bfloat16[batch_size, seq_len, dim]",
        "dt_bias": "float32[dim]",
    },
    outputs={
        "output": "bfloat16[batch_size, seq_len, dim]",
        "new_state": "float32[batch_size, dim, dstate]",
    },
)
INTERFACE_MAMBA1_UPDATE = Interface(
    inputs={
        "state": "float32[batch_size, dim, dstate]",
        "x": "bfloat16[batch_size, dim]",
        "dt": "bfloat16[batch_size, dim]",
        "A": "float32[dim, dstate]",
        "B": "bfloat16[batch_size, dstate]",
        "C": "bfloat16[batch_size, dstate]",
        "D": "float32[dim]",
        "z": "bfloat16[batch_size, dim]",
        "dt_bias": "float32[dim]",
    },
    outputs={
        "output": "bfloat16[batch_size, dim]",
        "new_state": "float32[batch_size, dim, dstate]",
    },
)

# ---- the tests


class Mamba1Tests(GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic):
    """What the tests of mamba1 share."""

    op_type = "mamba1"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) one rounding to bfloat16.
# (2) both sides round a float32 value once, to neighbours at most, 2^-7 apart.
# (3) two float32 products of up to 20 are added, a few tokens back each.


# Mamba 1 over whole sequences, whose states begin at 0: step = softplus(dt + dt_bias),
# state = state * exp(A * step) + step * x * B, output = (state * C summed + D * x) *
# silu(z). Each channel has its own step. In float32, the output rounded once to
# bfloat16.
# Tolerances:
#   output     source  rtol   atol     NMSE     reason
#   output     oracle  0.004  0.00025  1.6e-05  (1)
#   output     sglang  0.008  0.0005   1.6e-05  (2)
#   new_state  oracle  2e-06  1e-05    1e-11    (3)
#   new_state  sglang  4e-06  3e-05    1e-09    (3)
def reference_mamba1_scan():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        dt: torch.Tensor,
        A: torch.Tensor,
        B: torch.Tensor,
        C: torch.Tensor,
        D: torch.Tensor,
        z: torch.Tensor,
        dt_bias: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, seq_len, dim = x.shape
        channels = x.float()
        steps = torch.nn.functional.softplus(dt.float() + dt_bias)
        state = torch.zeros(batch_size, dim, A.shape[1], device=x.device)
        reads = []
        for t in range(seq_len):
            step = steps[:, t]
            decay = torch.exp(step.unsqueeze(-1) * A)
            added = (step * channels[:, t]).unsqueeze(-1) * B[:, t].float().unsqueeze(1)
            state = state * decay + added
            reads.append((state * C[:, t].float().unsqueeze(1)).sum(dim=-1))
        gate = torch.nn.functional.silu(z.float())
        output = (torch.stack(reads, dim=1) + D * channels) * gate
        return output.to(x.dtype), state

    return run


class Mamba1ScanBase(Mamba1Tests):
    reference = staticmethod(reference_mamba1_scan)
    interface = INTERFACE_MAMBA1_SCAN
    axes = {"dstate": 16}

class TestMamba1ScanD1536S16(Mamba1ScanBase):
    name = "mamba1_scan_d1536_s16"  # model:mamba-130m
    axes = {"dim": 1536}
    sha256 = "e5790e78ba6fd15cfe4bba91f86273e017e9089d417d7b2e9070b9c102c9ce3d"

class TestMamba1ScanD5120S16(Mamba1ScanBase):
    name = "mamba1_scan_d5120_s16"  # model:mamba-2.8b
    axes = {"dim": 5120}
    sha256 = "3076d7787a1e9f1b43beab00804664ab1d76bb98ac2d7655d6f7635ec2c59748"

class TestMamba1ScanD8192S16(Mamba1ScanBase):
    name = "mamba1_scan_d8192_s16"  # model:jamba-v0.1, model:falcon-mamba-7b
    axes = {"dim": 8192}
    sha256 = "e5920660faeb2edf862eccd7af1432c83b9f5a10739d790cdefc2aebc7986445"


# One decode step of Mamba 1: step = softplus(dt + dt_bias), state = state * exp(A *
# step) + step * x * B, output = (state * C summed + D * x) * silu(z). Each channel has
# its own step. In float32, the output rounded once to bfloat16.
# Tolerances: those of reference_mamba1_scan.
def reference_mamba1_update():
    import torch


    @torch.no_grad()
    def run(
        state: torch.Tensor,
        x: torch.Tensor,
        dt: torch.Tensor,
        A: torch.Tensor,
        B: torch.Tensor,
        C: torch.Tensor,
        D: torch.Tensor,
        z: torch.Tensor,
        dt_bias: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        channels = x.float()
        steps = torch.nn.functional.softplus(dt.float() + dt_bias)
        decay = torch.exp(steps.unsqueeze(-1) * A)
        added = (steps * channels).unsqueeze(-1) * B.float().unsqueeze(1)
        new_state = state * decay + added

        read = (new_state * C.float().unsqueeze(1)).sum(dim=-1)
        gate = torch.nn.functional.silu(z.float())
        output = (read + D * channels) * gate
        return output.to(x.dtype), new_state

    return run


class Mamba1UpdateBase(Mamba1Tests):
    reference = staticmethod(reference_mamba1_update)
    interface = INTERFACE_MAMBA1_UPDATE
    axes = {"dstate": 16}

class TestMamba1UpdateD1536S16(Mamba1UpdateBase):
    name = "mamba1_update_d1536_s16"  # model:mamba-130m
    axes = {"dim": 1536}
    sha256 = "fa921cc1db6c00dae405810d008ab64b64783e6af007368b554211a25cbd3ade"

class TestMamba1UpdateD5120S16(Mamba1UpdateBase):
    name = "mamba1_update_d5120_s16"  # model:mamba-2.8b
    axes = {"dim": 5120}
    sha256 = "37c1c37188e954e914b00c5317e2f47193cb060925fd73f1e0aa0b1fd8c4928f"

class TestMamba1UpdateD8192S16(Mamba1UpdateBase):
    name = "mamba1_update_d8192_s16"  # model:jamba-v0.1, model:falcon-mamba-7b
    axes = {"dim": 8192}
    sha256 = "8585935205d0973e25be66911d649f3da7492f52dc93d691a89b099134e971ec"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
