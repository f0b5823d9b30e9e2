"""Reference tests of op_type mamba_ssd.

Rendered: don't edit. `gen-tests --op-type mamba_ssd` renders this file anew.

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
from itertools import accumulate, pairwise
from typing import Any

import torch

from generator.ops.op_types.mamba_ssd.relations import prefill_relations
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
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.mamba_ssd.relations

# of Nemotron-H; the result does not depend on it
_CHUNK = 128
_CHUNKED = (
    "the kernel multiplies chunks of tokens in bfloat16: weights of tokens, B scaled by "
    "steps, and the outputs are rounded, each by 1.6e-3 of a product (2^-8/sqrt(3)/1.44), "
    "three of which are 8e-6 of the power; outputs have a deviation of 3 or less, and 7 "
    "deviations of the error are 5e-2"
)
_CANCELLING = (
    "the 129 products of an output cancel from magnitudes that add up to about 100, of "
    "which an error of sqrt(129)·2^-24 is 7e-5"
)
# a case in which B and C are zero
_FADES = "state-only-fades"
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-4, nmse=5e-6),
        f"one rounding to bfloat16: half an ulp is 2^-8 at most; {_CANCELLING}",
        source="oracle",
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-5, atol=1e-5, nmse=1e-11),
        "float32 sums of a few products for each of 40 tokens: 40 errors of 2^-24 of a "
        "value of 4 at most",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-4, nmse=1e-5),
        "all products with B and C are zeros: both sides round D·x, of float32, once, to "
        "neighbours at most",
        case=_FADES,
    ),
    Override(
        "new_state",
        Tolerance(rtol=4e-4, atol=1e-6, nmse=1e-7),
        "the kernel multiplies the state by the exponential of a sum of A·step, all in "
        "float32: steps of a fast logarithm, off by 2^-22, make 1.5e-4 of 29 tokens and an "
        "A of 22; sums of 100 round by 3e-5 in all, and states that faded by more are "
        "below atol",
        case=_FADES,
    ),
    Override("output", Tolerance(rtol=1.6e-2, atol=5e-2, nmse=2e-5), _CHUNKED),
    Override(
        "new_state",
        Tolerance(rtol=1.6e-2, atol=5e-2, nmse=2e-5),
        f"states are sums of products with a scaled B: {_CHUNKED}",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one sequence and several, tiny and large steps, and more than a chunk.

    Kernels multiply B, C and x in bfloat16. Where B and C are zero, nothing of that is
    left, and what they keep in float32 shows: A, D, dt_bias and the state.
    """
    return [
        _case("one-token", "small", (1,)),
        _case("several", "small", (3, 1, 5)),
        # softplus(-9 ± 1) is about exp(-9): the state hardly changes
        _case("tiny-steps", "small", (4,), dt_mean=-9.0),
        # around 20, where softplus is the identity and most states are forgotten
        _case("large-steps", "small", (2, 3), dt_mean=20.0),
        _case(_FADES, "small", (24, 5), zero=("B", "C")),
        _case("longer", "medium", (17, 2, 9)),
        _case("past-limits", LIMITS, (2_060, *[100] * 62), dt_mean=2.0),
        _case("chunks", "large", (300, 128, 1)),
    ]


def _case(
    name: str,
    size: str,
    lengths: tuple[int, ...],
    dt_mean: float = -1.5,
    **params: Any,
) -> Case:
    axes = {
        "total_tokens": sum(lengths),
        "num_seqs": len(lengths),
        "len_cu_seqlens": len(lengths) + 1,
    }
    return Case(name, size, axes, {"lengths": lengths, "dt_mean": dt_mean, **params})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs, in the interface's order.

    x bfloat16 [total_tokens, nheads, head_dim]; dt bfloat16 [total_tokens, nheads]; A, D
    and dt_bias float32 [nheads]; B and C bfloat16 [total_tokens, ngroups, dstate]; state
    float32 [num_seqs, nheads, head_dim, dstate]; cu_seqlens int32. Decay rates -A are
    1/16 … 16, as in trained models.
    """
    axes = {**definition.axes, **case.axes}
    tokens, heads, dstate = axes["total_tokens"], axes["nheads"], axes["dstate"]
    bf16 = torch.bfloat16

    def drawn(name: str, *shape: int, std: float = 1.0) -> torch.Tensor:
        return stream.child(name).values(shape, std)

    # powers of two times a factor: an exponential would differ between libraries
    powers = torch.tensor([2.0**n for n in stream.child("A").integers(-4, 4, heads)])
    groups = (tokens, axes["ngroups"], dstate)
    # a workload has ends of its own
    ends = [0, *accumulate(case.params.get("lengths", (tokens,)))]
    dt_mean = case.params.get("dt_mean", -1.5)
    large = dt_mean > 10.0
    inputs = {
        # steps of 20 would make states of 20
        "x": drawn("x", tokens, heads, axes["head_dim"], std=0.05 if large else 1.0).to(
            bf16
        ),
        "dt": drawn("dt", tokens, heads, std=0.5).to(bf16),
        "A": -powers * (1.0 + drawn("mantissa", heads, std=0.4).abs()),
        "B": drawn("B", *groups, std=0.5).to(bf16),
        "C": drawn("C", *groups, std=0.5).to(bf16),
        "D": drawn("D", heads),
        "dt_bias": drawn("dt_bias", heads) + dt_mean,
        "state": drawn(
            "state", axes["num_seqs"], heads, axes["head_dim"], dstate, std=0.3
        ),
        "cu_seqlens": torch.tensor(ends, dtype=torch.int32),
    }
    return inputs | {n: inputs[n].zero_() for n in case.params.get("zero", ())}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outputs and states in float64, in the dual form: sums over earlier tokens.

    A token t sees token s with weight C_t·B_s · exp(sum of A·step behind s) · step_s.
    """
    wide = {n: t.double() for n, t in inputs.items() if n != "cu_seqlens"}
    ratio = definition.axes["nheads"] // definition.axes["ngroups"]
    raw = wide["dt"] + wide["dt_bias"]
    # log(1 + e^raw) without overflow, and accurate for small values
    steps = torch.logaddexp(raw, torch.zeros_like(raw))
    output, states = torch.zeros_like(wide["x"]), torch.zeros_like(wide["state"])
    ends = inputs["cu_seqlens"].tolist()
    for sequence, (start, end) in enumerate(pairwise(ends)):
        for head in range(definition.axes["nheads"]):
            x, step = wide["x"][start:end, head], steps[start:end, head]
            b, c = (wide[name][start:end, head // ratio] for name in ("B", "C"))
            total = torch.cumsum(wide["A"][head] * step, 0)
            # exp of 0 and less alone: later tokens are left out before
            since = (total[:, None] - total[None, :]).tril()
            seen = (c @ b.T * torch.exp(since)).tril() * step
            before = wide["state"][sequence, head]
            read = torch.exp(total)[:, None] * (c @ before.T)
            skipped = wide["D"][head] * x
            output[start:end, head] = seen @ x + read + skipped
            left = torch.exp(total[-1] - total) * step
            decayed = torch.exp(total[-1]) * before
            states[sequence, head] = decayed + (left[:, None] * x).T @ b
    return output, states


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's chunked Triton kernels."""
    return (Backend("triton", min_sm=80, needs=("triton",)),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return outputs and states as a prefill of SGLang's Mamba layer computes them."""
    from sglang.kernels.ops.mamba.triton_ops import ssd_combined
    from sglang.srt.layers.attention.mamba.mamba2_metadata import Mamba2Metadata

    x, ends = inputs["x"], inputs["cu_seqlens"]
    lengths = ends.diff()
    places = torch.arange(len(lengths), dtype=torch.int32, device=x.device)
    indices, offsets = Mamba2Metadata._query_start_loc_to_chunk_indices_offsets(
        ends, _CHUNK, len(x)
    )
    output = torch.empty_like(x)
    states = ssd_combined.mamba_chunk_scan_combined(
        x[None],
        inputs["dt"][None],
        inputs["A"],
        inputs["B"][None],
        inputs["C"][None],
        chunk_size=_CHUNK,
        D=inputs["D"],
        dt_bias=inputs["dt_bias"],
        initial_states=inputs["state"],
        seq_idx=torch.repeat_interleave(places, lengths)[None],
        chunk_indices=indices,
        chunk_offsets=offsets,
        cu_seqlens=ends,
        dt_softplus=True,
        out=output[None],
        return_varlen_states=True,
        state_dtype=torch.float32,
    )
    return output, states


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=prefill_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_MAMBA_SSD_PREFILL = Interface(
    inputs={
        "x": "bfloat16[total_tokens, nheads, head_dim]",
        "dt": "bfloat16[total_tokens, nheads]",
        "A": "float32[nheads]",
        "B": "bfloat16[total_tokens, ngroups, dstate]",
        "C": "bfloat16[total_tokens, ngroups, dstate]",
        "D": "float32[nheads]",
        "dt_bias": "float32[nheads]",
        "state": "float32[num_seqs, nheads, head_dim, dstate]",
        "cu_seqlens": "int32[len_cu_seqlens]",
    },
    outputs={
        "output": "bfloat16[total_tokens, nheads, head_dim]",
        "new_state": "float32[num_seqs, nheads, head_dim, dstate]",
    },
    constraints=(
        "nheads % ngroups == 0",
        "len_cu_seqlens == num_seqs + 1",
        "total_tokens == cu_seqlens[-1].item()",
    ),
)

# ---- the tests


class MambaSsdTests(GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic):
    """What the tests of mamba_ssd share."""

    op_type = "mamba_ssd"
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
# (2) all products with B and C are zeros.
# (3) the kernel multiplies chunks of tokens in bfloat16.
# (4) float32 sums of a few products for each of 40 tokens.
# (5) the kernel multiplies the state by the exponential of a sum of A·step, all in
# float32.
# (6) states are sums of products with a scaled B.


# State space of Mamba 2 over several sequences, whose tokens stand one after another.
# Token by token, with step = softplus(dt + dt_bias), a sequence's state becomes state *
# exp(A * step) + step * x * B, and the output is its product with C, plus D * x. nheads
# heads share ngroups groups of B and C.
# stage:prefill, model:nemotron-h-8b
# Tolerances:
#   output     source                      rtol    atol    NMSE   reason
#   output     oracle                      0.004   0.0001  5e-06  (1)
#   output     sglang in state-only-fades  0.008   0.0001  1e-05  (2)
#   output     sglang                      0.016   0.05    2e-05  (3)
#   new_state  oracle                      1e-05   1e-05   1e-11  (4)
#   new_state  sglang in state-only-fades  0.0004  1e-06   1e-07  (5)
#   new_state  sglang                      0.016   0.05    2e-05  (6)
def reference_mamba_ssd_prefill():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        dt: torch.Tensor,
        A: torch.Tensor,
        B: torch.Tensor,
        C: torch.Tensor,
        D: torch.Tensor,
        dt_bias: torch.Tensor,
        state: torch.Tensor,
        cu_seqlens: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        heads_per_group = x.shape[1] // B.shape[1]
        inputs = x.float()
        steps = torch.nn.functional.softplus(dt.float() + dt_bias)
        # Heads g * heads_per_group ... (g + 1) * heads_per_group - 1 share group g.
        to_state = B.float().repeat_interleave(heads_per_group, dim=1)
        to_output = C.float().repeat_interleave(heads_per_group, dim=1)
        decay = torch.exp(A * steps)  # [total_tokens, nheads]
        weighted = steps.unsqueeze(2) * inputs

        output = torch.empty_like(x)
        new_state = state.clone()
        for sequence, current in enumerate(new_state):
            start, end = cu_seqlens[sequence : sequence + 2].tolist()
            for t in range(start, end):
                # [nheads, head_dim, dstate], updated in place
                current.mul_(decay[t, :, None, None])
                current.add_(weighted[t].unsqueeze(2) * to_state[t].unsqueeze(1))
                read = (current * to_output[t].unsqueeze(1)).sum(dim=2)
                output[t] = (read + D.unsqueeze(1) * inputs[t]).to(x.dtype)
        return output, new_state

    return run


class MambaSsdPrefillBase(MambaSsdTests):
    reference = staticmethod(reference_mamba_ssd_prefill)
    interface = INTERFACE_MAMBA_SSD_PREFILL
    axes = {"head_dim": 64, "dstate": 128}

class TestMambaSsdPrefillH128D64S128Ng8(MambaSsdPrefillBase):
    name = "mamba_ssd_prefill_h128_d64_s128_ng8"  # tp:1
    axes = {"nheads": 128, "ngroups": 8}
    sha256 = "e63acc2e35362918ceb9090e65bf960dfb4dd3e3fcb3747888c2359383c6fb19"

class TestMambaSsdPrefillH64D64S128Ng4(MambaSsdPrefillBase):
    name = "mamba_ssd_prefill_h64_d64_s128_ng4"  # tp:2
    axes = {"nheads": 64, "ngroups": 4}
    sha256 = "00d0321b4829c7f4ad34f985640644a101389f17ed264eb941fbb6407fa79da7"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
