"""Reference tests of op_type mamba_ssu.

Rendered: don't edit. `gen-tests --op-type mamba_ssu` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
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

from generator.ops.op_types.mamba_ssu.relations import mamba_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Trial
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.mamba_ssu.relations

PAD_SLOT = -1
_CANCELLING = (
    "the 129 products of an output cancel from magnitudes that add up to about 100, and "
    "float32 adds them with an error of 128·2^-24 of that, 8e-4, at most; large steps "
    "make sums of 1600, whose errors cancel as well and stay within it"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-3, nmse=5e-6),
        f"one rounding to bfloat16: half an ulp is 2^-8 at most; {_CANCELLING}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-3, nmse=5e-6),
        "both sides round a float32 value once, to neighbours at most: 2^-7; "
        f"{_CANCELLING}",
    ),
    Override(
        "new_state",
        Tolerance(rtol=4e-3, atol=1e-5, nmse=5e-6),
        "one rounding to bfloat16: half an ulp is 2^-8 at most; two float32 products "
        "cancel from about 20, of which four roundings of 2^-24 are 5e-6",
        source="oracle",
    ),
    Override(
        "new_state",
        Tolerance(rtol=8e-3, atol=3e-5, nmse=5e-6),
        "both sides round a float32 value once, to neighbours at most: 2^-7; the fast "
        "logarithm in the kernel's softplus is off by 2^-21.4 near 1, which A·state and "
        "B·x, 45 together, make 2e-5",
    ),
)
# on SM90 FlashInfer selects one by the batch size
_SIMPLE, _VERTICAL = Backend("simple"), Backend("vertical", min_sm=90)


def cases(definition: Definition) -> list[Case]:
    """Return the cases: shuffled slots, padding, tiny and large steps, batches."""
    return [
        _case("one-sequence", "small", 1, 3),
        _case("shuffled-slots", "small", 3, 6),
        _case("padding", "small", 4, 6, padding=(1, 3)),
        # softplus(-9 ± 1) is about exp(-9): the state hardly changes
        _case("tiny-steps", "small", 2, 3, dt_mean=-9.0),
        # around 20, where kernels replace softplus by the identity
        _case("large-steps", "small", 2, 3, dt_mean=20.0),
        _case("batch", "medium", 8, 12, padding=(3, 7)),
        _case("past-limits", LIMITS, 131, 290, padding=(3, 7)),
        _case("large-batch", "large", 96, 133, padding=(0, 50, 94, 95)),
    ]


def _case(
    name: str,
    size: str,
    batch_size: int,
    slots: int,
    padding: tuple[int, ...] = (),
    dt_mean: float = -0.5,
) -> Case:
    # more slots than rows, so that a slot read as a row shows
    axes = {"batch_size": batch_size, "state_cache_size": slots}
    return Case(name, size, axes, {"padding": padding, "dt_mean": dt_mean})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; dt, A, D and dt_bias have one value a head.

    state bfloat16 [state_cache_size, nheads, head_dim, dstate]; x and dt bfloat16
    [batch_size, nheads, head_dim]; A float32 [nheads, head_dim, dstate]; B and C
    bfloat16 [batch_size, ngroups, dstate]; D and dt_bias bfloat16 [nheads, head_dim];
    state_batch_indices int32 [batch_size]. Decay rates -A are 1/16 … 16, as
    in trained models.
    """
    axes = {**definition.axes, **case.axes}
    batch, heads, dim = axes["batch_size"], axes["nheads"], axes["head_dim"]
    dstate = axes["dstate"]
    bf16 = torch.bfloat16

    def drawn(name: str, *shape: int, std: float = 1.0) -> torch.Tensor:
        return stream.child(name).values(shape, std)

    # powers of two times a factor: an exponential would differ between libraries
    powers = torch.tensor([2.0**n for n in stream.child("A").integers(-4, 4, heads)])
    rates = powers * (1.0 + drawn("mantissa", heads, std=0.4).abs())
    # a workload has neither, but slots of its own
    dt_mean, padding = case.params.get("dt_mean", -0.5), case.params.get("padding", ())
    bias = (drawn("dt_bias", heads) + dt_mean).to(bf16)
    slots = stream.child("slots").permutation(axes["state_cache_size"])[:batch]
    slots[list(padding)] = PAD_SLOT
    dt = drawn("dt", batch, heads, std=0.5).to(bf16)
    skip = drawn("D", heads, std=2.0).to(bf16)
    groups = (batch, axes["ngroups"], dstate)
    return {
        "state": drawn("state", axes["state_cache_size"], heads, dim, dstate).to(bf16),
        "x": drawn("x", batch, heads, dim).to(bf16),
        "dt": dt[:, :, None].expand(batch, heads, dim).contiguous(),
        "A": -rates[:, None, None].expand(heads, dim, dstate).contiguous(),
        "B": drawn("B", *groups).to(bf16),
        "C": drawn("C", *groups).to(bf16),
        "D": skip[:, None].expand(heads, dim).contiguous(),
        "dt_bias": bias[:, None].expand(heads, dim).contiguous(),
        "state_batch_indices": slots.to(torch.int32),
    }


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output, shaped as x, and the pool, shaped as state, in float64."""
    wide = {name: tensor.double() for name, tensor in inputs.items()}
    output, pool = torch.zeros_like(wide["x"]), wide["state"]
    ratio = definition.axes["nheads"] // definition.axes["ngroups"]
    for row, slot in enumerate(inputs["state_batch_indices"].tolist()):
        if slot == PAD_SLOT:
            continue
        for group in range(definition.axes["ngroups"]):
            heads = slice(group * ratio, (group + 1) * ratio)
            raw = wide["dt"][row, heads] + wide["dt_bias"][heads]
            # log(1 + e^raw) without overflow, and accurate for small values
            step = torch.logaddexp(raw, torch.zeros_like(raw))
            x = wide["x"][row, heads]
            state = pool[slot, heads] * torch.exp(wide["A"][heads] * step[..., None])
            state = state + torch.outer(
                (step * x).flatten(), wide["B"][row, group]
            ).view(state.shape)
            pool[slot, heads] = state
            output[row, heads] = state @ wide["C"][row, group] + wide["D"][heads] * x
    return output, pool


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows that are not padding: bool [batch_size].

    For padding the kernels compute with a state of zeros and return a meaningless output.
    """
    rows: torch.Tensor = inputs["state_batch_indices"] != PAD_SLOT
    return rows


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return both kernels, independent of the batch size."""
    return (_SIMPLE, _VERTICAL)


# inputs of one value a head → their axes up to the heads
_ONE_A_HEAD = {"dt": 2, "A": 1, "D": 1, "dt_bias": 1}


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and pool of FlashInfer, which updates the pool in place."""
    from flashinfer.mamba import selective_state_update

    state = inputs["state"]
    views = {n: _one_a_head(inputs[n], left) for n, left in _ONE_A_HEAD.items()}
    output = selective_state_update(
        state,
        inputs["x"],
        views["dt"],
        views["A"],
        inputs["B"],
        inputs["C"],
        views["D"],
        dt_bias=views["dt_bias"],
        dt_softplus=True,
        state_batch_indices=inputs["state_batch_indices"],
        pad_slot_id=PAD_SLOT,
        algorithm=backend,
    )
    return output, state


def heads_have_one_value(trial: Trial) -> None:
    """Skip inputs with several values a head, of which FlashInfer's kernel reads one."""
    for name, left in _ONE_A_HEAD.items():
        tensor = trial.inputs[name]
        if not torch.equal(_one_a_head(tensor, left), tensor):
            skip(Kind.NO_KERNEL, f"{name} has several values a head")


def _one_a_head(tensor: torch.Tensor, axes_left: int) -> torch.Tensor:
    """Return a view with stride 0 along all but the first `axes_left` axes.

    The kernel requires it; the values along these axes are equal.
    """
    first = tensor.flatten(axes_left)[..., 0].contiguous()
    return first.view(first.shape + (1,) * (tensor.dim() - axes_left)).expand_as(tensor)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=mamba_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(
            flashinfer_backends,
            flashinfer_ground_truth,
            check_inputs=heads_have_one_value,
        )
    },
)


# ---- the interfaces

INTERFACE_MAMBA_SSU_DECODE = Interface(
    inputs={
        "state": "bfloat16[state_cache_size, nheads, head_dim, dstate]",
        "x": "bfloat16[batch_size, nheads, head_dim]",
        "dt": "bfloat16[batch_size, nheads, head_dim]",
        "A": "float32[nheads, head_dim, dstate]",
        "B": "bfloat16[batch_size, ngroups, dstate]",
        "C": "bfloat16[batch_size, ngroups, dstate]",
        "D": "bfloat16[nheads, head_dim]",
        "dt_bias": "bfloat16[nheads, head_dim]",
        "state_batch_indices": "int32[batch_size]",
    },
    outputs={
        "output": "bfloat16[batch_size, nheads, head_dim]",
        "new_state": "bfloat16[state_cache_size, nheads, head_dim, dstate]",
    },
    constraints=("nheads % ngroups == 0", "state_cache_size >= batch_size"),
)

# ---- the tests


class MambaSsuTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of mamba_ssu share."""

    op_type = "mamba_ssu"
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
# (2) both sides round a float32 value once, to neighbours at most.


# Selective state update of Mamba 2, one token a sequence: with step = softplus(dt +
# dt_bias) the state becomes state * exp(A * step) + step * x * B, and the output is its
# product with C, plus D * x. nheads heads share ngroups groups of B and C. States lie
# in a pool; a row of slot -1 is padding: it gives output 0 and no state is written.
# stage:decode, model:nemotron-h-8b, fi_api:flashinfer.mamba.selective_state_update
# Tolerances:
#   output     source      rtol   atol   NMSE   reason
#   output     oracle      0.004  0.001  5e-06  (1)
#   output     flashinfer  0.008  0.001  5e-06  (2)
#   new_state  oracle      0.004  1e-05  5e-06  (1)
#   new_state  flashinfer  0.008  3e-05  5e-06  (2)
def reference_mamba_ssu_decode():
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
        dt_bias: torch.Tensor,
        state_batch_indices: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        heads_per_group = x.shape[1] // B.shape[1]

        # Slot -1 marks padding: such a row returns 0 and writes no state.
        rows = (state_batch_indices >= 0).nonzero().squeeze(1)
        slots = state_batch_indices[rows].long()

        inputs = x[rows].float()  # [rows, nheads, head_dim]
        steps = torch.nn.functional.softplus(dt[rows].float() + dt_bias.float())
        # Heads g * heads_per_group ... (g + 1) * heads_per_group - 1 share group g.
        to_state = B[rows].float().repeat_interleave(heads_per_group, dim=1)
        to_output = C[rows].float().repeat_interleave(heads_per_group, dim=1)

        # [rows, nheads, head_dim, dstate]
        decay = torch.exp(A.float() * steps.unsqueeze(-1))
        added = (steps * inputs).unsqueeze(-1) * to_state.unsqueeze(2)
        updated = state[slots].float() * decay + added

        # The output reads the state before it is rounded to the pool's dtype.
        read = torch.einsum("rhds,rhs->rhd", updated, to_output)
        output = torch.zeros_like(x)
        output[rows] = (read + D.float() * inputs).to(x.dtype)
        new_state = state.clone()
        new_state[slots] = updated.to(state.dtype)
        return output, new_state

    return run


class MambaSsuDecodeBase(MambaSsuTests):
    reference = staticmethod(reference_mamba_ssu_decode)
    interface = INTERFACE_MAMBA_SSU_DECODE
    axes = {"head_dim": 64, "dstate": 128}

class TestMambaSsuDecodeH128D64S128Ng8(MambaSsuDecodeBase):
    name = "mamba_ssu_decode_h128_d64_s128_ng8"  # tp:1
    axes = {"nheads": 128, "ngroups": 8}
    sha256 = "2eb6eef57a73d7edafc7c9888fee277aecc6bf48a395bf6fa36020eefe86e521"

class TestMambaSsuDecodeH64D64S128Ng4(MambaSsuDecodeBase):
    name = "mamba_ssu_decode_h64_d64_s128_ng4"  # tp:2
    axes = {"nheads": 64, "ngroups": 4}
    sha256 = "98cd682d0612b709a175bb76963d7b5074cba4d4d4556a9bc57e11edaeb72c67"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
