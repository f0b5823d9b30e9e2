"""adaptive_layernorm: layer norm of each patch, with its sample's scale and shift.

SGLang folds both into PyTorch's layer norm, of one sample at a time, after 1 + gain was
rounded to bfloat16.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.adaptive_layernorm.relations import norm_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_CANCELLED = (
    "the mean, 8 deviations at most, has a float32 error of a few 2^-24 of itself, which "
    "is 2e-6 of a deviation, and so is what a product of 8 and a shift of 4 leave"
)
# a case of which SGLang rounds no gain
_EXACT_GAIN = "exact-gain"
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=6e-6, nmse=1.6e-5),
        "bfloat16 holds 1 + gain: both sides round nearly the same float32 value once, to "
        f"neighbours at most, 2^-7; {_CANCELLED}",
        source="sglang",
        case=_EXACT_GAIN,
    ),
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=6e-6, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_CANCELLED}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=3.2e-2, nmse=1.6e-5),
        "SGLang rounds 1 + gain to bfloat16: 2^-8 of it, times rows of 4 deviations and "
        "a factor of 2, before the shift, and both sides round once",
        source="sglang",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one patch, samples with conditions of their own, and rows near eps."""
    three = {"batch_size": 3, "seq_len": 5}
    return [
        Case("one-patch", "small", {"batch_size": 1, "seq_len": 1}),
        Case("three-samples", "small", three),
        Case("one-sample", "small", {"batch_size": 1, "seq_len": 9}),
        Case("tiny-variance", "small", three, {"std": 1e-3}),
        Case("large-values", "small", three, {"std": 1e4}),
        Case("large-mean", "small", three, {"mean": 8.0}),
        Case("zero-rows", "small", three, {"zero": True}),
        Case(_EXACT_GAIN, "small", three, {"gains": 64.0}),
        Case("batch", "medium", {"batch_size": 2, "seq_len": 67}),
        past_limits("seq_len", 8_219, batch_size=3),
        Case("video", "large", {"batch_size": 1, "seq_len": 32_760}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return rows bfloat16 [batch_size, seq_len, hidden_size], and both modulations.

    Gain and shift are bfloat16 [batch_size, hidden_size], around zero. With `gains` each
    gain is a multiple of one over that.
    """
    shape = (
        case.axes["batch_size"],
        case.axes["seq_len"],
        definition.axes["hidden_size"],
    )
    x = stream.child("hidden_states").values(shape) + case.params.get("mean", 0.3)
    x = case.params.get("std", 1.0) * x
    if case.params.get("zero"):
        x[:, 0] = 0.0
    each = (shape[0], shape[2])
    gain = stream.child("gain").values(each, 0.4)
    if "gains" in case.params:
        gain = (gain * case.params["gains"]).round() / case.params["gains"]
    return {
        "hidden_states": x.to(torch.bfloat16),
        "gain": gain.to(torch.bfloat16),
        "shift": stream.child("shift").values(each, 0.7).to(torch.bfloat16),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows, float64 [batch_size, seq_len, hidden_size], sample by sample."""
    eps, samples = definition.constants["eps"], []
    for x, gain, shift in zip(*(v.double() for v in inputs.values()), strict=True):
        rows = x - x.sum(dim=1, keepdim=True) / x.shape[1]
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        deviation = torch.sqrt(length * length / x.shape[1] + eps)
        samples.append(rows / deviation * (gain + 1.0) + shift)
    return torch.stack(samples)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's folded call of PyTorch's layer norm."""
    return (Backend("folded", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return what the function for one sample gives for each of them."""
    from sglang.kernels.ops.diffusion.sites import fused_ln_modulate_site as site

    x, gain, shift = inputs.values()
    eps = definition.constants["eps"]
    samples = [
        site.fused_ln_modulate(x[i : i + 1], gain[i : i + 1], shift[i : i + 1], eps)
        for i in range(len(x))
    ]
    return torch.cat(samples)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=norm_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)
