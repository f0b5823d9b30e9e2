"""lora: tokens times the matrices of their adapters, to a rank and back to features.

The oracle multiplies all tokens by each adapter in float64 and chooses then. SGLang's
Triton kernels take segments of tokens that share an adapter, and none without one.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.lora.relations import adapter_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Trial
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip
from kernel_judge.subject import Kernel, Op

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
