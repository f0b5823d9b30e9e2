"""Reference tests of op_type lora.

Rendered: don't edit. `gen-tests --op-type lora` renders this file anew.

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

import math
import sys
from types import SimpleNamespace
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.lora.relations import adapter_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Trial
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.lora.relations

_SUMS = (
    "float32 sums of at most 14336 products, of about 1 in all, are off by 2e-5 where "
    "they cancel"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=2e-5, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_SUMS}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=1.2e-2, atol=1.6e-2, nmse=1.6e-5),
        "SGLang rounds what an adapter adds, 4 at most, by 2^-8 of it before the sum, which "
        "both sides round once more",
        source="sglang",
        where=lambda axes: "out_features" in axes,
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=8e-5, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, 2^-7 "
        f"apart; {_SUMS}, and tensor cores cut off instead of rounding",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, batches of adapters in and out of order, and none at all."""
    mixed = {"num_tokens": 11, "num_adapters": 3}
    return [
        Case("one-token", "small", {"num_tokens": 1, "num_adapters": 1}),
        Case("mixed-adapters", "small", mixed),
        Case("segments", "small", mixed, {"kind": "sorted"}),
        Case("unused-adapters", "small", {"num_tokens": 5, "num_adapters": 7}),
        Case("some-without", "small", mixed, {"kind": "without"}),
        Case("slots-outside", "small", mixed, {"kind": "outside"}),
        Case("batch", "medium", {"num_tokens": 67, "num_adapters": 4}),
        past_limits("num_tokens", 8_219, num_adapters=9),
        Case("prefill", "large", {"num_tokens": 4_096, "num_adapters": 8}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 rows and matrices of which products are about 1, and slots int32."""
    lengths = {**definition.axes, **case.axes}
    rows, adapters = lengths["num_tokens"], lengths["num_adapters"]
    terms = lengths.get("in_features", lengths["rank"])
    inputs: dict[str, Any] = {}
    for name, spec in definition.interface.input_specs.items():
        shape, drawn = shape_of(spec, lengths), stream.child(name)
        if name == "slots":
            inputs[name] = _slots(rows, adapters, case.params.get("kind", ""), drawn)
        elif name == "scalings":
            each = torch.tensor([2.0, 0.25, 1.0, 0.5])
            inputs[name] = each[torch.arange(adapters) % 4]
        elif name == "weights":
            flat = drawn.matrix(
                shape[0] * shape[1], shape[2], 1.0 / math.sqrt(terms), torch.float32
            )
            inputs[name] = flat.view(shape).to(torch.bfloat16)
        else:
            inputs[name] = drawn.values(shape).to(torch.bfloat16)
    return inputs


def _slots(rows: int, adapters: int, kind: str, stream: Stream) -> torch.Tensor:
    """Return each token's adapter, int32 [num_tokens]."""
    slots = stream.integer_tensor(0, adapters, rows)
    if kind == "sorted":
        slots = slots.sort().values
    elif kind == "without":
        slots = torch.where(torch.arange(rows) % 3 == 1, -1, slots)
    elif kind == "outside":
        slots = (
            slots + torch.tensor([0, adapters, -adapters - 1])[torch.arange(rows) % 3]
        )
    return slots.to(torch.int32)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return all tokens by each adapter, float64, of which each takes its own."""
    x, slots = inputs["x"].double(), inputs["slots"]
    base = inputs.get("base")
    width = inputs["weights"].shape[1]
    start = x.new_zeros(len(x), width) if base is None else base.double()
    total: torch.Tensor = start
    for adapter, weight in enumerate(inputs["weights"].double()):
        product = torch.einsum("tk,nk->tn", x, weight)
        if base is not None:
            product = product * float(inputs["scalings"][adapter])
        total = torch.where((slots == adapter)[:, None], start + product, total)
    return total


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's Triton kernels."""
    return (Backend("triton", needs=("triton",)),)


def every_token_has_one(trial: Trial) -> None:
    """Skip batches with a token without an adapter: SGLang's kernels read outside."""
    slots, weights = trial.inputs["slots"], trial.inputs["weights"]
    if bool(((slots < 0) | (slots >= len(weights))).any()):
        skip(
            Kind.NO_KERNEL, "a token has no adapter, for which SGLang has one of rank 0"
        )


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return what the kernels give for segments of neighbours that share an adapter."""
    x, weights = inputs["x"], inputs["weights"]
    which, lengths = torch.unique_consecutive(inputs["slots"], return_counts=True)
    ends = lengths.cumsum(0)
    batch = SimpleNamespace(
        bs=len(which),
        num_segments=len(which),
        seg_indptr=torch.cat((ends.new_zeros(1), ends)).int(),
        seg_lens=lengths.int(),
        weight_indices=which,
        lora_ranks=torch.full(
            (len(weights),), definition.axes["rank"], device=x.device
        ),
        scalings=inputs.get("scalings"),
        max_len=int(lengths.amax()),
        permutation=None,
    )
    if "base" not in inputs:
        from sglang.kernels.ops.lora.dense.sgemm_lora_a import sgemm_lora_a_fwd

        shrunk: torch.Tensor = sgemm_lora_a_fwd(x, weights, batch)
        return shrunk
    from sglang.kernels.ops.lora.dense.sgemm_lora_b import sgemm_lora_b_fwd

    expanded: torch.Tensor = sgemm_lora_b_fwd(x, weights, batch, inputs["base"])
    return expanded


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=adapter_relations,
    tolerances=TOLERANCES,
    kernels={
        "sglang": Kernel(
            sglang_backends, sglang_ground_truth, check_inputs=every_token_has_one
        )
    },
)


# ---- the interfaces

INTERFACE_LORA_EXPAND = Interface(
    inputs={
        "x": "bfloat16[num_tokens, rank]",
        "weights": "bfloat16[num_adapters, out_features, rank]",
        "slots": "int32[num_tokens]",
        "scalings": "float32[num_adapters]",
        "base": "bfloat16[num_tokens, out_features]",
    },
    outputs={"output": "bfloat16[num_tokens, out_features]"},
)
INTERFACE_LORA_SHRINK = Interface(
    inputs={
        "x": "bfloat16[num_tokens, in_features]",
        "weights": "bfloat16[num_adapters, rank, in_features]",
        "slots": "int32[num_tokens]",
    },
    outputs={"output": "bfloat16[num_tokens, rank]"},
)

# ---- the tests


class LoraTests(GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic):
    """What the tests of lora share."""

    op_type = "lora"
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
# (2) SGLang rounds what an adapter adds, 4 at most, by 2^-8 of it before the sum, which
# both sides round once more.
# (3) both sides round nearly the same float32 value once.


# The base layer's output plus rows of the rank times the transposed matrix B of each
# token's adapter, times the adapter's factor. A token whose slot is none of the
# adapters' has none, and keeps the base's row. In float32, rounded once to bfloat16.
# Tolerances:
#   output  source                rtol   atol   NMSE     reason
#   output  oracle                0.004  2e-05  1.6e-05  (1)
#   output  sglang of some sizes  0.012  0.016  1.6e-05  (2)
#   output  sglang                0.008  8e-05  1.6e-05  (3)
def reference_lora_expand():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        weights: torch.Tensor,
        slots: torch.Tensor,
        scalings: torch.Tensor,
        base: torch.Tensor,
    ) -> torch.Tensor:
        output = base.clone()
        for adapter, weight in enumerate(weights):
            rows = slots == adapter
            added = x[rows].float() @ weight.float().T * scalings[adapter]
            output[rows] = (base[rows].float() + added).to(base.dtype)
        return output

    return run


class LoraExpandBase(LoraTests):
    reference = staticmethod(reference_lora_expand)
    interface = INTERFACE_LORA_EXPAND

class TestLoraExpandR16N1024(LoraExpandBase):
    name = "lora_expand_r16_n1024"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"rank": 16, "out_features": 1024}
    sha256 = "d2ef273471f4bf83950222076d48af9d5703f06b85a580359859eb0477729552"

class TestLoraExpandR16N12288(LoraExpandBase):
    name = "lora_expand_r16_n12288"  # model:qwen3-8b
    axes = {"rank": 16, "out_features": 12288}
    sha256 = "ed517c1ece54ce9e0db48bedb24958b53e4c21ced5ddc1f11dbefb0f8c73ff1e"

class TestLoraExpandR16N14336(LoraExpandBase):
    name = "lora_expand_r16_n14336"  # model:llama-3.1-8b
    axes = {"rank": 16, "out_features": 14336}
    sha256 = "765869fa325b610f4b0d7fda3a56c150e8faa8e43b6796f1534f52ce0e7f52d2"

class TestLoraExpandR16N4096(LoraExpandBase):
    name = "lora_expand_r16_n4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"rank": 16, "out_features": 4096}
    sha256 = "6f421668d97a93e8bad589d0afc4be50f1a8da18545cb65adfe8ab96829745ca"

class TestLoraExpandR16N8192(LoraExpandBase):
    name = "lora_expand_r16_n8192"  # model:llama-3.1-70b
    axes = {"rank": 16, "out_features": 8192}
    sha256 = "692256e92bc8d0dd38256ca4e1bdda87b4c13129222dc35e7b49f53242fb8c82"

class TestLoraExpandR64N4096(LoraExpandBase):
    name = "lora_expand_r64_n4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"rank": 64, "out_features": 4096}
    sha256 = "5a5c17e651a865962e6bfcea801f085b65e9dabcebf920e7341c53e6919b707f"


# Rows times the transposed matrix A of each token's adapter. A token whose slot is none
# of the adapters' has none, and a row of zeros. In float32, rounded once to bfloat16.
# Tolerances: those of reference_lora_expand.
def reference_lora_shrink():
    import torch


    @torch.no_grad()
    def run(x: torch.Tensor, weights: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        output = torch.zeros(len(x), weights.shape[1], dtype=x.dtype, device=x.device)
        for adapter, weight in enumerate(weights):
            rows = slots == adapter
            output[rows] = (x[rows].float() @ weight.float().T).to(x.dtype)
        return output

    return run


class LoraShrinkBase(LoraTests):
    reference = staticmethod(reference_lora_shrink)
    interface = INTERFACE_LORA_SHRINK

class TestLoraShrinkR16K12288(LoraShrinkBase):
    name = "lora_shrink_r16_k12288"  # model:qwen3-8b
    axes = {"rank": 16, "in_features": 12288}
    sha256 = "b79a9d915a5cce96eae10e864bfa8386c3b3a1b1b60bc7d6f31c16cf563a7e52"

class TestLoraShrinkR16K14336(LoraShrinkBase):
    name = "lora_shrink_r16_k14336"  # model:llama-3.1-8b
    axes = {"rank": 16, "in_features": 14336}
    sha256 = "e22957e7f0ba45de29f68bf8546fe0961d70ada00608c72e0d083ea90572a10f"

class TestLoraShrinkR16K4096(LoraShrinkBase):
    name = "lora_shrink_r16_k4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"rank": 16, "in_features": 4096}
    sha256 = "8d52b17f4d9d23f0ed9ae0192efd71927a473c45c2e283daa68ddd2f68ce853c"

class TestLoraShrinkR16K8192(LoraShrinkBase):
    name = "lora_shrink_r16_k8192"  # model:llama-3.1-70b
    axes = {"rank": 16, "in_features": 8192}
    sha256 = "b77e9e10a631ca9ab3ac75c339c631887b1cedcdcc153c9d4a88f063ea017498"

class TestLoraShrinkR64K4096(LoraShrinkBase):
    name = "lora_shrink_r64_k4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"rank": 64, "in_features": 4096}
    sha256 = "d28ae5f30dddf83f69b2de64904890a1c6aeab370cb19b8b873f984105bb9796"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
