"""Reference tests of op_type gated_rmsnorm.

Rendered: don't edit. `gen-tests --op-type gated_rmsnorm` renders this file anew.

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

from generator.ops.limit_cases import rows_past_limits
from generator.ops.op_types.gated_rmsnorm.relations import gated_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.gated_rmsnorm.relations

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-30, nmse=1.6e-5),
        "float32 arithmetic and one rounding to bfloat16: half an ulp is 2^-8 of a "
        "value at most, and 2^-16 = 1.53e-5 its square",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-30, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart, and most to the same",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, a variance of about eps, and gates that are closed."""
    return [
        Case("one-row", "small", {"batch_size": 1}),
        Case("tiny-variance", "small", {"batch_size": 8}, {"std": 2e-3}),
        Case("large-values", "small", {"batch_size": 3}, {"std": 1e4}),
        Case("closed-gates", "small", {"batch_size": 3}, {"gate": -8.0}),
        Case("zero-rows", "small", {"batch_size": 5}, {"zero_rows": 2}),
        Case("batch", "medium", {"batch_size": 67}),
        *rows_past_limits("batch_size", definition.axes["hidden_size"]),
        Case("long-batch", "large", {"batch_size": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden_states and gate, bfloat16 [batch_size, hidden_size], and weight.

    The weight is bfloat16, around one half: [hidden_size], or [num_groups, group_size].
    Columns differ in size, so
    that the groups of a row have different means.
    """
    rows, columns = case.axes["batch_size"], definition.axes["hidden_size"]
    x = stream.child("hidden_states").values((rows, columns), 1.0)
    x *= case.params.get("std", 1.0) * torch.linspace(0.25, 2.0, columns)
    x[: case.params.get("zero_rows", 0)] = 0.0
    gate = stream.child("gate").values((rows, columns), 2.0)
    shape: tuple[int, ...] = (columns,)
    if "num_groups" in definition.axes:
        shape = (definition.axes["num_groups"], definition.axes["group_size"])
    weight = 0.5 + stream.child("weight").values(shape, 0.4)
    return {
        "hidden_states": x.to(torch.bfloat16),
        "gate": (gate + case.params.get("gate", 0.0)).to(torch.bfloat16),
        "weight": weight.to(torch.bfloat16),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows, float64 [batch_size, hidden_size], by the length of each group."""
    x, gate = inputs["hidden_states"].double(), inputs["gate"].double()
    weight = inputs["weight"].double().flatten()
    # silu by exp(-log(1 + exp(-gate)))
    opened = gate * torch.exp(-torch.logaddexp(torch.zeros_like(gate), -gate))
    if "gate_first" not in definition.constants:
        alone: torch.Tensor = _normed(definition, x) * weight * opened
        return alone
    size = definition.axes["group_size"]
    parts = [_normed(definition, part) for part in (x * opened).split(size, dim=1)]
    grouped: torch.Tensor = torch.cat(parts, dim=1) * weight
    return grouped


def _normed(definition: Definition, x: torch.Tensor) -> torch.Tensor:
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    eps = definition.constants["eps"]
    normed: torch.Tensor = x / torch.sqrt(length * length / x.shape[1] + eps)
    return normed


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, and the kernel that it judges."""
    return (Backend("native", needs_cuda=False), Backend("triton", needs=("triton",)))


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return bfloat16 rows; the native code is asked one group at a time."""
    from sglang.kernels.ops.attention.fla import layernorm_gated

    x, gate, weight = (
        inputs["hidden_states"],
        inputs["gate"],
        inputs["weight"].flatten(),
    )
    size = definition.axes.get("group_size", x.shape[1])
    options = {
        "eps": definition.constants["eps"],
        "norm_before_gate": "gate_first" not in definition.constants,
    }
    if backend == "triton":
        out: torch.Tensor = layernorm_gated.rms_norm_gated(
            x=x,
            weight=weight,
            bias=None,
            z=gate,
            group_size=size,
            is_rms_norm=True,
            **options,
        )
        return out
    places = range(0, x.shape[1], size)
    parts = [
        layernorm_gated.rms_norm_ref(
            *(tensor[..., i : i + size] for tensor in (x, weight)),
            None,
            z=gate[:, i : i + size],
            **options,
        )
        for i in places
    ]
    return torch.cat(parts, dim=1)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gated_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_GATED_GROUP_RMSNORM = Interface(
    inputs={
        "hidden_states": "bfloat16[batch_size, hidden_size]",
        "gate": "bfloat16[batch_size, hidden_size]",
        "weight": "bfloat16[num_groups, group_size]",
    },
    outputs={"output": "bfloat16[batch_size, hidden_size]"},
    constraints=("group_size == hidden_size // num_groups",),
)
INTERFACE_GATED_RMSNORM = INTERFACE_GATED_GROUP_RMSNORM.but(
    inputs={"weight": "bfloat16[hidden_size]"},
    constraints=(),
)

# ---- the tests


class GatedRmsnormTests(
    GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of gated_rmsnorm share."""

    op_type = "gated_rmsnorm"
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
# (1) float32 arithmetic and one rounding to bfloat16.
# (2) both sides round nearly the same float32 value once.


# Gated RMS normalisation of what a Mamba layer gives: y = x * silu(gate) with silu(g) =
# g * sigmoid(g), then y * rsqrt(mean(y^2) + 1e-05) * weight, where the mean is that of
# one of num_groups groups of columns. In float32, rounded to bfloat16 at the end.
# model:nemotron-h-8b
# Tolerances:
#   output  source  rtol   atol   NMSE     reason
#   output  oracle  0.004  1e-30  1.6e-05  (1)
#   output  sglang  0.008  1e-30  1.6e-05  (2)
def reference_gated_group_rmsnorm():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        gated = hidden_states.float() * torch.nn.functional.silu(gate.float())
        groups = gated.reshape(len(gated), *weight.shape)
        inverse_rms = torch.rsqrt(groups.square().mean(dim=-1, keepdim=True) + EPS)
        normed = (groups * inverse_rms * weight.float()).reshape(gated.shape)
        return normed.to(hidden_states.dtype)

    return run


class GatedGroupRmsnormBase(GatedRmsnormTests):
    reference = staticmethod(reference_gated_group_rmsnorm)
    interface = INTERFACE_GATED_GROUP_RMSNORM
    axes = {"group_size": 1024}
    constants = ("gate_first", "eps")
    GATE_FIRST = True  # "group" in the name
    EPS = 1e-05  # rms_norm_eps of nemotron-h-8b

class TestGatedGroupRmsnormH4096Ng4(GatedGroupRmsnormBase):
    name = "gated_group_rmsnorm_h4096_ng4"  # tp:2
    axes = {"hidden_size": 4096, "num_groups": 4}
    sha256 = "7d3f3b1fb2a97cd5f98abfb4c0384663490351e53a69fea720c91f9c231fbe5f"

class TestGatedGroupRmsnormH8192Ng8(GatedGroupRmsnormBase):
    name = "gated_group_rmsnorm_h8192_ng8"  # tp:1
    axes = {"hidden_size": 8192, "num_groups": 8}
    sha256 = "97b3899675600ea0e63eb3acfcd49ca4b0ae271626e5a0c97fbf4cc68f5ca09c"


# Gated RMS normalisation of the heads of a delta net, one row a head: x *
# rsqrt(mean(x^2) + 1e-06) * weight * silu(gate), silu(g) = g * sigmoid(g). In float32,
# rounded to bfloat16 at the end.
# model:qwen3-next-80b-a3b, tp:1
# Tolerances: those of reference_gated_group_rmsnorm.
def reference_gated_rmsnorm():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        x = hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        normed = x * inverse_rms * weight.float()
        return (normed * torch.nn.functional.silu(gate.float())).to(hidden_states.dtype)

    return run


class TestGatedRmsnormH128(GatedRmsnormTests):
    name = "gated_rmsnorm_h128"
    reference = staticmethod(reference_gated_rmsnorm)
    interface = INTERFACE_GATED_RMSNORM
    axes = {"hidden_size": 128}
    constants = ("eps",)
    EPS = 1e-06  # rms_norm_eps of qwen3-next-80b-a3b
    sha256 = "42f432add371af029812bcd6c91465f23cbfa3d1566648ea72fb70ffe0cee191"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
