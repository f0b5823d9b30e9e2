"""Reference tests of op_type adaptive_layernorm.

Rendered: don't edit. `gen-tests --op-type adaptive_layernorm` renders this file anew.

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

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.adaptive_layernorm.relations import norm_relations
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
# relations: generator.ops.op_types.adaptive_layernorm.relations

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


# ---- the interfaces

INTERFACE_ADAPTIVE_LAYERNORM = Interface(
    inputs={
        "hidden_states": "bfloat16[batch_size, seq_len, hidden_size]",
        "gain": "bfloat16[batch_size, hidden_size]",
        "shift": "bfloat16[batch_size, hidden_size]",
    },
    outputs={"output": "bfloat16[batch_size, seq_len, hidden_size]"},
)

# ---- the tests


class AdaptiveLayernormTests(
    GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of adaptive_layernorm share."""

    op_type = "adaptive_layernorm"
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
# (1) bfloat16 holds 1 + gain.
# (2) one rounding to bfloat16.
# (3) SGLang rounds 1 + gain to bfloat16.


# Layer norm without weights, eps 1e-06, times 1 + gain plus shift: both are of a
# sample's condition, a time step or a text, and the same for all its patches. In
# float32, rounded once to bfloat16.
# Tolerances:
#   output  source                rtol   atol   NMSE     reason
#   output  sglang in exact-gain  0.008  6e-06  1.6e-05  (1)
#   output  oracle                0.004  6e-06  1.6e-05  (2)
#   output  sglang                0.008  0.032  1.6e-05  (3)
def reference_adaptive_layernorm():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, gain: torch.Tensor, shift: torch.Tensor
    ) -> torch.Tensor:
        x = hidden_states.float()
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        normed = centred * torch.rsqrt(variance + EPS)
        factor = 1.0 + gain.float().unsqueeze(1)
        return (normed * factor + shift.float().unsqueeze(1)).to(hidden_states.dtype)

    return run


class AdaptiveLayernormBase(AdaptiveLayernormTests):
    reference = staticmethod(reference_adaptive_layernorm)
    interface = INTERFACE_ADAPTIVE_LAYERNORM
    constants = ("eps",)
    EPS = 1e-06  # the convention of adaptive_layernorm

class TestAdaptiveLayernormH1152(AdaptiveLayernormBase):
    name = "adaptive_layernorm_h1152"  # model:pixart-sigma-xl, model:dit-xl-2
    axes = {"hidden_size": 1152}
    sha256 = "22147f7700cec1750438f9d9a9be64847dfefca15459f3f4b0863e24112cda47"

# model:wan2.1-t2v-1.3b, model:stable-diffusion-3.5-medium
class TestAdaptiveLayernormH1536(AdaptiveLayernormBase):
    name = "adaptive_layernorm_h1536"
    axes = {"hidden_size": 1536}
    sha256 = "cb01cd376e23dad883d5edf21751101cd4b2208a16509253a63d0e083295c74f"

class TestAdaptiveLayernormH2432(AdaptiveLayernormBase):
    name = "adaptive_layernorm_h2432"  # model:stable-diffusion-3.5-large
    axes = {"hidden_size": 2432}
    sha256 = "11a36d1a0ba8797b15887bce666125606791c58459485315d7c7b93d613718ec"

# model:flux.1-dev, model:hunyuan-video, model:qwen-image, model:wan2.2-ti2v-5b
class TestAdaptiveLayernormH3072(AdaptiveLayernormBase):
    name = "adaptive_layernorm_h3072"
    axes = {"hidden_size": 3072}
    sha256 = "74444118fb2590dea5745e6263e4c6444c8124dfcfb30785866c5cc027777d79"

class TestAdaptiveLayernormH5120(AdaptiveLayernormBase):
    name = "adaptive_layernorm_h5120"  # model:wan2.1-t2v-14b
    axes = {"hidden_size": 5120}
    sha256 = "75d7562f973763b67a6ec15ae03bced4f875933c3d0021b31fa693a1c324f66d"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
