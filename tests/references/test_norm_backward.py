"""Reference tests of op_type norm_backward.

Rendered: don't edit. `gen-tests --op-type norm_backward` renders this file anew.

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

from generator.ops.op_types.norm_backward.relations import gradient_relations
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
# relations: generator.ops.op_types.norm_backward.relations


def _steepness(definition: Definition, case: Case) -> float:
    """Return what rows of the case's deviation are multiplied by."""
    std = float(case.params.get("std", 1.0))
    return float((std * std + definition.constants["eps"]) ** -0.5)


def _terms(definition: Definition, case: Case) -> float:
    """Return how many gradients are summed."""
    return float(case.axes["num_tokens"])


_ROUNDED = (
    "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
    "1.53e-5 its square"
)
TOLERANCES = (
    Override(
        "grad_input",
        Tolerance(rtol=4e-3, atol=4e-6, nmse=1.6e-5),
        f"{_ROUNDED}; where the gradient, 6 at most, and what points along the row "
        "cancel, the errors of 2^-24 of both are left, times what rows are multiplied by",
        source="oracle",
        growth=_steepness,
    ),
    Override(
        "grad_input",
        Tolerance(rtol=8e-3, atol=8e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart; where terms cancel, the errors of both sides are left",
        growth=_steepness,
    ),
    *(
        Override(
            output,
            Tolerance(rtol=rtol, atol=1e-6, nmse=1.6e-5),
            f"{_ROUNDED}, or neighbours of two such; a float32 sum of n products of 6 at "
            "most is off by fewer than n roundings of 2^-24 of its terms",
            source=source,
            growth=_terms,
        )
        for output in ("grad_weight", "grad_bias")
        for source, rtol in (("oracle", 4e-3), (None, 8e-3))
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, rows with a mean square of about eps, and long ones."""
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        Case("tiny-rows", "small", {"num_tokens": 8}, {"std": 2e-3}),
        Case("large-rows", "small", {"num_tokens": 3}, {"std": 1e3}),
        Case("large-mean", "small", {"num_tokens": 5}, {"mean": 2.0}),
        Case("batch", "medium", {"num_tokens": 67}),
        Case("past-limits", LIMITS, {"num_tokens": 4_157}),
        Case("long-batch", "large", {"num_tokens": 8_192}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return grad_output and hidden_states bfloat16 [num_tokens, hidden_size], weight.

    The weight, bfloat16 [hidden_size], lies around one half.
    """
    shape = (case.axes["num_tokens"], definition.axes["hidden_size"])
    x = stream.child("hidden_states").values(shape) + case.params.get("mean", 0.3)
    grad = stream.child("grad_output").values(shape) + 0.2
    weight = 0.5 + stream.child("weight").values(shape[1:], 0.4)
    return {
        "grad_output": grad.to(torch.bfloat16),
        "hidden_states": (case.params.get("std", 1.0) * x).to(torch.bfloat16),
        "weight": weight.to(torch.bfloat16),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the gradients in float64, by autograd of lengths of rows."""
    eps, has_bias = definition.constants["eps"], _has_bias(definition)
    x = inputs["hidden_states"].double().requires_grad_()
    weight = inputs["weight"].double().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    with torch.enable_grad():
        rows = x - x.sum(dim=1, keepdim=True) / x.shape[1] if has_bias else x
        square = torch.einsum("ij,ij->i", rows, rows) / x.shape[1]
        output = rows / (square + eps).sqrt().unsqueeze(1) * weight + bias
        wanted = (x, weight, bias)[: 3 if has_bias else 2]
        return torch.autograd.grad(output, wanted, inputs["grad_output"].double())


def _has_bias(definition: Definition) -> bool:
    return "grad_bias" in definition.interface.outputs


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's fused norm, forward and backward."""
    return (Backend("layer_norm" if _has_bias(definition) else "rms_norm"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, ...]:
    """Return what autograd of torch.nn.functional's norm gives."""
    x, weight = (inputs[n].requires_grad_() for n in ("hidden_states", "weight"))
    eps, shape = definition.constants["eps"], weight.shape
    with torch.enable_grad():
        if backend == "rms_norm":
            output = torch.nn.functional.rms_norm(x, shape, weight, eps)
            return torch.autograd.grad(output, (x, weight), inputs["grad_output"])
        bias = torch.zeros_like(weight, requires_grad=True)
        output = torch.nn.functional.layer_norm(x, shape, weight, bias, eps)
        return torch.autograd.grad(output, (x, weight, bias), inputs["grad_output"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gradient_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_LAYERNORM_BACKWARD_EPS_1EM5 = Interface(
    inputs={
        "grad_output": "bfloat16[num_tokens, hidden_size]",
        "hidden_states": "bfloat16[num_tokens, hidden_size]",
        "weight": "bfloat16[hidden_size]",
    },
    outputs={
        "grad_input": "bfloat16[num_tokens, hidden_size]",
        "grad_weight": "bfloat16[hidden_size]",
        "grad_bias": "bfloat16[hidden_size]",
    },
)
INTERFACE_RMSNORM_BACKWARD_EPS = INTERFACE_LAYERNORM_BACKWARD_EPS_1EM5.but(
    without=("grad_bias",),
)

# ---- the tests


class NormBackwardTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of norm_backward share."""

    op_type = "norm_backward"
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
# (2) both sides round nearly the same float32 value once.


# Gradients of (x - mean(x)) * rsqrt(var(x) + 1e-05) * weight + bias, as training needs
# them: of the rows, and of the parameters summed over all tokens. In float32, each
# rounded once to bfloat16. What the forward pass normalised by is computed again.
# mode:training
# Tolerances:
#   output       source   rtol   atol    NMSE     reason
#   grad_input   oracle   0.004  4e-06*  1.6e-05  (1)
#   grad_input   pytorch  0.008  8e-06*  1.6e-05  (2)
#   grad_weight  oracle   0.004  1e-06*  1.6e-05  (1)
#   grad_weight  pytorch  0.008  1e-06*  1.6e-05  (1)
#   grad_bias    oracle   0.004  1e-06*  1.6e-05  (1)
#   grad_bias    pytorch  0.008  1e-06*  1.6e-05  (1)
def reference_layernorm_backward_eps_1em5():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        grad_output: torch.Tensor, hidden_states: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        grad, x = grad_output.float(), hidden_states.float()
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        inverse_deviation = torch.rsqrt(variance + EPS)
        normed = centred * inverse_deviation

        grad_weight = (grad * normed).sum(dim=0)
        grad_bias = grad.sum(dim=0)
        scaled = grad * weight.float()
        # Mean and variance depend on all columns.
        common = scaled.mean(dim=-1, keepdim=True)
        along = (scaled * normed).mean(dim=-1, keepdim=True)
        grad_input = inverse_deviation * (scaled - common - normed * along)
        return (
            grad_input.to(hidden_states.dtype),
            grad_weight.to(weight.dtype),
            grad_bias.to(weight.dtype),
        )

    return run


class LayernormBackwardEps1em5Base(NormBackwardTests):
    reference = staticmethod(reference_layernorm_backward_eps_1em5)
    interface = INTERFACE_LAYERNORM_BACKWARD_EPS_1EM5
    constants = ("eps",)
    EPS = 1e-05  # "1em5" in the name

class TestLayernormBackwardEps1em5H1600(LayernormBackwardEps1em5Base):
    name = "layernorm_backward_eps_1em5_h1600"  # model:gpt2-xl
    axes = {"hidden_size": 1600}
    sha256 = "7156f8d2c4b5db87274cc793e6a4b3586a8dc22ecc28c46bf706eef3ea695ab0"

class TestLayernormBackwardEps1em5H768(LayernormBackwardEps1em5Base):
    name = "layernorm_backward_eps_1em5_h768"  # model:gpt2
    axes = {"hidden_size": 768}
    sha256 = "fe3173bb87367e9a476e5f810cb4488f64e472f96f81ebaac33124e8b0cf8e10"


# Gradients of x * rsqrt(mean(x^2) + 1e-05) * weight, as training needs them: of the
# rows, and of the parameters summed over all tokens. In float32, each rounded once to
# bfloat16. What the forward pass normalised by is computed again.
# mode:training
# Tolerances:
#   output       source   rtol   atol    NMSE     reason
#   grad_input   oracle   0.004  4e-06*  1.6e-05  (1)
#   grad_input   pytorch  0.008  8e-06*  1.6e-05  (2)
#   grad_weight  oracle   0.004  1e-06*  1.6e-05  (1)
#   grad_weight  pytorch  0.008  1e-06*  1.6e-05  (1)
def reference_rmsnorm_backward_eps_1em5():
    import torch

    EPS = 1e-05


    @torch.no_grad()
    def run(
        grad_output: torch.Tensor, hidden_states: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        grad, x = grad_output.float(), hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        normed = x * inverse_rms

        grad_weight = (grad * normed).sum(dim=0)
        scaled = grad * weight.float()
        # The root depends on all columns: what points along the row is taken away.
        along = (scaled * normed).mean(dim=-1, keepdim=True)
        grad_input = inverse_rms * (scaled - normed * along)
        return grad_input.to(hidden_states.dtype), grad_weight.to(weight.dtype)

    return run


class RmsnormBackwardEps1em5Base(NormBackwardTests):
    reference = staticmethod(reference_rmsnorm_backward_eps_1em5)
    interface = INTERFACE_RMSNORM_BACKWARD_EPS
    constants = ("eps",)
    EPS = 1e-05  # "1em5" in the name

class TestRmsnormBackwardEps1em5H2048(RmsnormBackwardEps1em5Base):
    name = "rmsnorm_backward_eps_1em5_h2048"  # model:llama-3.2-1b
    axes = {"hidden_size": 2048}
    sha256 = "a4e7d4b63b0a3b74bd07a1ec53013ff6662f8ad9029a9bf50b9f6dcdd72a0c50"

class TestRmsnormBackwardEps1em5H4096(RmsnormBackwardEps1em5Base):
    name = "rmsnorm_backward_eps_1em5_h4096"  # model:llama-3.1-8b
    axes = {"hidden_size": 4096}
    sha256 = "3d1c835a430dff2ab03daad8cad69dcf59366e68ffe0bb9ebdbcf8b9a528a1d3"


# Gradients of x * rsqrt(mean(x^2) + 1e-06) * weight, as training needs them: of the
# rows, and of the parameters summed over all tokens. In float32, each rounded once to
# bfloat16. What the forward pass normalised by is computed again.
# model:qwen3-8b, mode:training
# Tolerances: those of reference_rmsnorm_backward_eps_1em5.
def reference_rmsnorm_backward_eps_1em6():
    import torch

    EPS = 1e-06


    @torch.no_grad()
    def run(
        grad_output: torch.Tensor, hidden_states: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        grad, x = grad_output.float(), hidden_states.float()
        inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        normed = x * inverse_rms

        grad_weight = (grad * normed).sum(dim=0)
        scaled = grad * weight.float()
        # The root depends on all columns: what points along the row is taken away.
        along = (scaled * normed).mean(dim=-1, keepdim=True)
        grad_input = inverse_rms * (scaled - normed * along)
        return grad_input.to(hidden_states.dtype), grad_weight.to(weight.dtype)

    return run


class TestRmsnormBackwardEps1em6H4096(NormBackwardTests):
    name = "rmsnorm_backward_eps_1em6_h4096"
    reference = staticmethod(reference_rmsnorm_backward_eps_1em6)
    interface = INTERFACE_RMSNORM_BACKWARD_EPS
    axes = {"hidden_size": 4096}
    constants = ("eps",)
    EPS = 1e-06  # "1em6" in the name
    sha256 = "bd8a0548a09c60dde7e6996ccc5e6b0c8239bdc20fa991b4065d59f93e74a6b3"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
