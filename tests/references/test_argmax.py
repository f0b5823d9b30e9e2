"""Reference tests of op_type argmax.

Rendered: don't edit. `gen-tests --op-type argmax` renders this file anew.

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
from generator.ops.op_types.argmax.relations import argmax_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.argmax.relations

TOLERANCES = (Override("tokens", EXACT, "tokens are numbers, of which one is right"),)
_KINDS = (
    *("normal", "tied", "near", "last", "first"),
    *("masked", "negative", "twice", "infinite", "hopeless"),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, and rows whose largest logit ties or stands at an edge."""
    return [
        Case("one-row", "small", {"batch_size": 1}, {"kinds": ("normal",)}),
        Case("ties", "small", {"batch_size": 4}, {"kinds": ("tied", "twice")}),
        Case("edges", "small", {"batch_size": 4}, {"kinds": ("last", "first")}),
        Case("near-ties", "small", {"batch_size": 3}, {"kinds": ("near",)}),
        Case(
            "infinite", "small", {"batch_size": 4}, {"kinds": ("infinite", "hopeless")}
        ),
        Case(
            "masked-and-negative",
            "small",
            {"batch_size": 4},
            {"kinds": ("masked", "negative")},
        ),
        Case("batch", "medium", {"batch_size": 11}, {"kinds": _KINDS}),
        past_limits("batch_size", 139, {"kinds": _KINDS}),
        Case("long-batch", "large", {"batch_size": 256}, {"kinds": _KINDS}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return logits float32 [batch_size, vocab_size]; rows are of the kinds in turn."""
    rows, size = case.axes["batch_size"], definition.axes["vocab_size"]
    kinds = case.params["kinds"]
    logits = stream.child("logits").matrix(rows, size, 3.0, torch.float32)
    places = stream.child("places").integers(1, size - 1, 2 * rows)
    for row in range(rows):
        one, other = places[2 * row], places[2 * row + 1]
        _shape(logits[row], kinds[row % len(kinds)], one, other)
    return {"logits": logits}


def _shape(row: torch.Tensor, kind: str, one: int, other: int) -> None:
    """Make one row of a kind, in place; its largest logit is at one of two places."""
    peak = 12.0
    if kind == "tied":
        # all values are among a few: many tie for the largest
        row.copy_(row.clamp(-2.0, 2.0).round())
    elif kind == "twice":
        row[one], row[other] = peak, peak
    elif kind == "near":
        # neighbours: one number in bfloat16, and so are their float16 forms
        row[one], row[other] = peak, peak + 2.0**-20
    elif kind in ("last", "first"):
        row[-1 if kind == "last" else 0] = peak
    elif kind == "masked":
        row[row > 0.0] = -torch.inf
        row[one] = -1e-3
    elif kind == "negative":
        row.sub_(100.0)
    elif kind == "infinite":
        row[one], row[other] = torch.inf, torch.inf
    elif kind == "hopeless":
        row.fill_(-torch.inf)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the first of each row's largest, int64 [batch_size], by a stable sort."""
    order = torch.sort(inputs["logits"].double(), descending=True, stable=True)
    return order.indices[:, 0]


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's reduction, which greedy sampling of engines calls."""
    return (Backend("argmax"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return torch.argmax of the rows."""
    return torch.argmax(inputs["logits"], dim=-1)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=argmax_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_ARGMAX_ROWS = Interface(
    inputs={"logits": "float32[batch_size, vocab_size]"},
    outputs={"tokens": "int64[batch_size]"},
)

# ---- the tests


class ArgmaxTests(GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic):
    """What the tests of argmax share."""

    op_type = "argmax"
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
# (1) tokens are numbers, of which one is right.


# Greedy sampling: the token of each row's largest logit. Of several that tie the first
# one is taken; logits of minus infinity are of masked tokens.
# Tolerances:
#   output  source           rtol   atol  NMSE  reason
#   tokens  oracle, pytorch  exact              (1)
def reference_argmax_rows():
    import torch


    @torch.no_grad()
    def run(logits: torch.Tensor) -> torch.Tensor:
        largest = logits.amax(dim=-1, keepdim=True)
        tokens = torch.arange(logits.shape[-1], device=logits.device)
        behind_all = logits.shape[-1]
        return torch.where(logits == largest, tokens, behind_all).amin(dim=-1)

    return run


class ArgmaxRowsBase(ArgmaxTests):
    reference = staticmethod(reference_argmax_rows)
    interface = INTERFACE_ARGMAX_ROWS

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.2-1b, model:llama-3.2-3b
class TestArgmaxRowsV128256(ArgmaxRowsBase):
    name = "argmax_rows_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "b57a5f2fc5c146da8cac10ea7f725bb67d5f087b0b1f731634b55f4111f4a309"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestArgmaxRowsV129280(ArgmaxRowsBase):
    name = "argmax_rows_v129280"
    axes = {"vocab_size": 129280}
    sha256 = "61310b06724282eb7c39fc5a5a921e7e90ee038ddb432b259c3468a6add7b32f"

# model:qwen3-8b, model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
class TestArgmaxRowsV151936(ArgmaxRowsBase):
    name = "argmax_rows_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "3178d82d120a3608274b6a4363f83c3a3c90938f55c76194f2f86ad9a46acd42"

class TestArgmaxRowsV201088(ArgmaxRowsBase):
    name = "argmax_rows_v201088"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"vocab_size": 201088}
    sha256 = "f137be94cdb426eafe6bb2eec3275c9029b870b1c86d7641a142f1dd10120d0e"

class TestArgmaxRowsV262208(ArgmaxRowsBase):
    name = "argmax_rows_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "2d7a184e27635b6f5c9c22295e8a950137c6b2262116d4948a90767e4907b348"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
