"""Reference tests of op_type residual_add.

Rendered: don't edit. `gen-tests --op-type residual_add` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- PyTorch's CUDA kernel, live, on a CUDA device
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

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.residual_add.relations import sum_relations
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
# relations: generator.ops.op_types.residual_add.relations

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=0.0, nmse=1.6e-5),
        "a sum that is rounded once to bfloat16: half an ulp is 2^-8 of a value at most, "
        "and 2^-16 = 1.53e-5 its square",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=0.0, nmse=1.6e-5),
        "both sides add in float32, where nothing cancels that they do not share, and "
        "round once: to neighbours at most, 2^-7 apart",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return batches of ordinary rows, of sums that cancel and of unlike sizes."""
    return [
        Case("one-row", "small", {"num_tokens": 1}),
        Case("odd-rows", "small", {"num_tokens": 7}),
        Case("nearly-cancelled", "small", {"num_tokens": 3}, {"opposite": True}),
        Case("large-residual", "small", {"num_tokens": 3}, {"std": 300.0}),
        Case("zero-rows", "small", {"num_tokens": 5}, {"zero_rows": 2}),
        Case("batch", "medium", {"num_tokens": 67}),
        past_limits("num_tokens", 8_219),
        Case("long-batch", "large", {"num_tokens": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden_states and residual, bfloat16 [num_tokens, hidden_size].

    Of as many rows as the case says what is added is zero, of as many others the stream.
    """
    shape = (case.axes["num_tokens"], definition.axes["hidden_size"])
    x = stream.child("hidden_states").values(shape)
    residual = stream.child("residual").values(shape, case.params.get("std", 2.0))
    if case.params.get("opposite"):
        residual = 0.01 * residual - x
    zero_rows = case.params.get("zero_rows", 0)
    x[:zero_rows] = 0.0
    residual[zero_rows : 2 * zero_rows] = 0.0
    return {
        "hidden_states": x.to(torch.bfloat16),
        "residual": residual.to(torch.bfloat16),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the sum, float64 [num_tokens, hidden_size]."""
    both = torch.stack([inputs["hidden_states"].double(), inputs["residual"].double()])
    return both.sum(dim=0)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's elementwise kernel."""
    return (Backend("add"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return torch.add of the inputs as they are."""
    return torch.add(inputs["hidden_states"], inputs["residual"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=sum_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_RESIDUAL_ADD = Interface(
    inputs={
        "hidden_states": "bfloat16[num_tokens, hidden_size]",
        "residual": "bfloat16[num_tokens, hidden_size]",
    },
    outputs={"output": "bfloat16[num_tokens, hidden_size]"},
)

# ---- the tests


class ResidualAddTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of residual_add share."""

    op_type = "residual_add"
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
# (1) a sum that is rounded once to bfloat16.
# (2) both sides add in float32, where nothing cancels that they do not share, and round
# once.


# Residual add: hidden_states + residual, rounded once to bfloat16. Layers whose next
# norm is not fused with the sum have it, as before a last norm or between a norm's
# output and the stream.
# Tolerances:
#   output  source   rtol   atol  NMSE     reason
#   output  oracle   0.004  0     1.6e-05  (1)
#   output  pytorch  0.008  0     1.6e-05  (2)
def reference_residual_add():
    import torch


    @torch.no_grad()
    def run(hidden_states: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        total = hidden_states.float() + residual.float()
        return total.to(residual.dtype)

    return run


class ResidualAddBase(ResidualAddTests):
    reference = staticmethod(reference_residual_add)
    interface = INTERFACE_RESIDUAL_ADD

class TestResidualAddH1280(ResidualAddBase):
    name = "residual_add_h1280"  # model:whisper-large-v3
    axes = {"hidden_size": 1280}
    sha256 = "b2a50cd9a2fe1973e3a2c4b2f39558cbde3783b1e0dde52d9f0c97cbb2fd48e3"

# model:qwen3-30b-a3b, model:qwen3-next-80b-a3b, model:llama-3.2-1b
class TestResidualAddH2048(ResidualAddBase):
    name = "residual_add_h2048"
    axes = {"hidden_size": 2048}
    sha256 = "78a5bd3c7c7668ad9ccdfb419aff22d49ac90397ee45744c6c22010d56cbdb1b"

class TestResidualAddH2880(ResidualAddBase):
    name = "residual_add_h2880"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"hidden_size": 2880}
    sha256 = "be582fe7da6a4547c50f88e568941d22bc73758f84ded3db642eedaddc9dba6b"

class TestResidualAddH4096(ResidualAddBase):
    name = "residual_add_h4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"hidden_size": 4096}
    sha256 = "3b872dac4f1b01b6227fc7a56de26db66e81fc486bfd0fc5667df48eab4d7c79"

class TestResidualAddH5376(ResidualAddBase):
    name = "residual_add_h5376"  # model:gemma-3-27b
    axes = {"hidden_size": 5376}
    sha256 = "19ad92273a654b8c7ec8627e49e6ea068210458e8844c751c5fcaf294d6adb6e"

class TestResidualAddH7168(ResidualAddBase):
    name = "residual_add_h7168"  # model:deepseek-v3, model:deepseek-r1, model:kimi-k2
    axes = {"hidden_size": 7168}
    sha256 = "0f2cdb85de5083c5cae22fcd1eeb92407db6a97879ac41013a7576d03e1d5d1e"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
