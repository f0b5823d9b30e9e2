"""Reference tests of op_type linear_cross_entropy.

Rendered: don't edit. `gen-tests --op-type linear_cross_entropy` renders this file anew.

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

import math
import sys
from typing import Any

import torch

from generator.ops.op_types.linear_cross_entropy.relations import loss_relations
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
# relations: generator.ops.op_types.linear_cross_entropy.relations

_BLOCK = 4096


def _height(definition: Definition, case: Case) -> float:
    """Return how large the logits are, in units of those of an ordinary case."""
    return float(case.params.get("std", 1.0))


_LOGITS = (
    "logits are float32 sums of at most 4096 products, 10 at most: off by 64 roundings of "
    "2^-24 of a partial sum, 8e-6; their log-sum-exp, 10 or more, has an error of that size, "
    "whose square is 6e-13 of it"
)
_ONCE = (
    "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, its square 2^-16"
)
_TERMS = (
    "a probability is off by as much of itself as its logit is off, 1e-5; of terms that "
    "cancel, as large as a row's others, that is left"
)
TOLERANCES = (
    *(
        Override(
            output, Tolerance(rtol=1e-6, atol=2e-5, nmse=1e-11), _LOGITS, growth=_height
        )
        for output in ("losses", "lse")
    ),
    *(
        Override(
            output,
            Tolerance(rtol=rtol, atol=1e-9, nmse=1.6e-5, of_row=5e-5),
            f"{_ONCE}{more}; {_TERMS}",
            source=source,
        )
        for output in ("grad_hidden_states", "grad_weight")
        for source, rtol, more in (
            ("oracle", 4e-3, ""),
            (None, 8e-3, ", or neighbours of two such"),
        )
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, high logits, ignored labels alone and labels at edges."""
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        Case("labels-at-edges", "small", {"num_tokens": 5}),
        # exp() of these overflows float32
        Case("high-logits", "small", {"num_tokens": 4}, {"std": 40.0}),
        Case("all-ignored", "small", {"num_tokens": 2}, {"ignored": True}),
        Case("batch", "medium", {"num_tokens": 19}),
        Case("past-limits", LIMITS, {"num_tokens": 529}),
        Case("long-batch", "large", {"num_tokens": 2_048}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return hidden states and weight, bfloat16, and labels int64 [num_tokens].

    The first label is the last token, the second the first, the third none. Gradients
    have the float32 log-sum-exp, and gradients of losses around 1, of either sign.
    """
    rows, size = case.axes["num_tokens"], definition.axes["vocab_size"]
    hidden = definition.axes["hidden_size"]
    std = 2.0 * case.params.get("std", 1.0)
    x = stream.child("hidden_states").values((rows, hidden), std).to(torch.bfloat16)
    deviation = 1.0 / math.sqrt(hidden)
    weight = stream.child("weight").matrix(size, hidden, deviation, torch.bfloat16)
    drawn = stream.child("labels").integers(0, size, rows)
    labels = torch.tensor([size - 1, 0, -100, *drawn][:rows])
    if case.params.get("ignored"):
        labels = torch.full_like(labels, -100)
    inputs = {"hidden_states": x, "weight": weight, "labels": labels}
    if "lse" not in definition.interface.inputs:
        return inputs
    grad = stream.child("grad_losses").values((rows,), 0.7) + 0.3
    lse = _logits(inputs).logsumexp(dim=1).float()
    return {"grad_losses": grad, **inputs, "lse": lse}


def _logits(inputs: dict[str, Any]) -> torch.Tensor:
    """Return the logits, float64 [num_tokens, vocab_size]."""
    x = inputs["hidden_states"].double()
    # a block of rows at a time: the weight in float64 is gigabytes
    blocks = torch.split(inputs["weight"], _BLOCK)
    return torch.cat([x @ rows.double().T for rows in blocks], dim=1)


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return losses and log-sum-exp, float64 [num_tokens], or both gradients."""
    if "grad_losses" not in inputs:
        return _losses(definition, _logits(inputs), inputs["labels"])
    leaves = [inputs[n].double().requires_grad_() for n in ("hidden_states", "weight")]
    with torch.enable_grad():
        losses, _ = _losses(definition, leaves[0] @ leaves[1].T, inputs["labels"])
        return torch.autograd.grad(losses, leaves, inputs["grad_losses"].double())


def _losses(
    definition: Definition, logits: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    lse = torch.logsumexp(logits, dim=1)
    z_loss = definition.constants.get("z_loss", 0.0)
    each = []
    for row, total, label in zip(logits, lse, labels.tolist(), strict=True):
        loss = total - row[label] + z_loss * total**2 if label >= 0 else 0.0 * total
        each.append(loss)
    return torch.stack(each), lse


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's function, which has no z-loss and gives no log-sum-exp."""
    limit = "PyTorch has no z-loss" if "z_loss" in definition.constants else ""
    if not hasattr(torch.nn.functional, "linear_cross_entropy"):
        limit = f"PyTorch {torch.__version__} has no linear_cross_entropy"
    lacks = ("lse",) if "lse" in definition.interface.outputs else ()
    return (Backend("linear_cross_entropy", lacks=lacks, limit=limit),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the losses of float32 values, or what autograd of them gives both."""
    loss = torch.nn.functional.linear_cross_entropy
    x, weight = inputs["hidden_states"], inputs["weight"]
    labels = inputs["labels"]
    if "grad_losses" not in inputs:
        return loss(x.float(), weight.float(), labels, reduction="none"), None
    x.requires_grad_()
    weight.requires_grad_()
    with torch.enable_grad():
        losses = loss(x.float(), weight.float(), labels, reduction="none")
        return torch.autograd.grad(losses, (x, weight), inputs["grad_losses"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=loss_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_LINEAR_CROSS_ENTROPY_BACKWARD = Interface(
    inputs={
        "grad_losses": "float32[num_tokens]",
        "hidden_states": "bfloat16[num_tokens, hidden_size]",
        "weight": "bfloat16[vocab_size, hidden_size]",
        "labels": "int64[num_tokens]",
        "lse": "float32[num_tokens]",
    },
    outputs={
        "grad_hidden_states": "bfloat16[num_tokens, hidden_size]",
        "grad_weight": "bfloat16[vocab_size, hidden_size]",
    },
)
INTERFACE_LINEAR_CROSS_ENTROPY = Interface(
    inputs={
        "hidden_states": "bfloat16[num_tokens, hidden_size]",
        "weight": "bfloat16[vocab_size, hidden_size]",
        "labels": "int64[num_tokens]",
    },
    outputs={"losses": "float32[num_tokens]", "lse": "float32[num_tokens]"},
)

# ---- the tests


class LinearCrossEntropyTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of linear_cross_entropy share."""

    op_type = "linear_cross_entropy"
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
# (2) logits are float32 sums of at most 4096 products, 10 at most.


# Gradients of the cross-entropy of hidden_states times weight, from the log-sum-exp of
# the forward pass. Logits and their gradient stay in float32, and each output is
# rounded once to bfloat16. Tokens with a label below 0, of which PyTorch's is -100, are
# ignored.
# mode:training
# Tolerances:
#   output              source   rtol   atol                     NMSE     reason
#   grad_hidden_states  oracle   0.004  1e-09 + 5e-05·row's RMS  1.6e-05  (1)
#   grad_hidden_states  pytorch  0.008  1e-09 + 5e-05·row's RMS  1.6e-05  (1)
#   grad_weight         oracle   0.004  1e-09 + 5e-05·row's RMS  1.6e-05  (1)
#   grad_weight         pytorch  0.008  1e-09 + 5e-05·row's RMS  1.6e-05  (1)
def reference_linear_cross_entropy_backward():
    import torch


    @torch.no_grad()
    def run(
        grad_losses: torch.Tensor,
        hidden_states: torch.Tensor,
        weight: torch.Tensor,
        labels: torch.Tensor,
        lse: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x, w = hidden_states.float(), weight.float()
        slopes = (x @ w.T - lse.unsqueeze(1)).exp()
        is_ignored = labels < 0
        chosen = torch.where(is_ignored, 0, labels).unsqueeze(1)
        ones = torch.ones_like(chosen, dtype=torch.float32)
        slopes = slopes.scatter_add(1, chosen, -ones)

        grad_logits = slopes * torch.where(is_ignored, 0.0, grad_losses).unsqueeze(1)
        grad_hidden_states, grad_weight = grad_logits @ w, grad_logits.T @ x
        return grad_hidden_states.to(hidden_states.dtype), grad_weight.to(weight.dtype)

    return run


class LinearCrossEntropyBackwardBase(LinearCrossEntropyTests):
    reference = staticmethod(reference_linear_cross_entropy_backward)
    interface = INTERFACE_LINEAR_CROSS_ENTROPY_BACKWARD
    axes = {"vocab_size": 50257}

class TestLinearCrossEntropyBackwardV50257H1600(LinearCrossEntropyBackwardBase):
    name = "linear_cross_entropy_backward_v50257_h1600"  # model:gpt2-xl
    axes = {"hidden_size": 1600}
    sha256 = "63bcd8be72fb9815d03d6e104fba4fde950f43ffb236b6f3ebe2875363a73c2e"

class TestLinearCrossEntropyBackwardV50257H768(LinearCrossEntropyBackwardBase):
    name = "linear_cross_entropy_backward_v50257_h768"  # model:gpt2
    axes = {"hidden_size": 768}
    sha256 = "b0e6f90729cd0350a08507c3d657edf73659415bf43a0a382dee67ffaf69c331"


# Cross-entropy of each token from hidden_states times weight: log-sum-exp of the logits
# less the label's logit. Logits stay in float32: a kernel needs no more than a block of
# them at a time. Tokens with a label below 0, of which PyTorch's is -100, are ignored.
# mode:training
# Tolerances:
#   output  source           rtol   atol    NMSE   reason
#   losses  oracle, pytorch  1e-06  2e-05*  1e-11  (2)
#   lse     oracle, pytorch  1e-06  2e-05*  1e-11  (2)
def reference_linear_cross_entropy():
    import torch


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logits = hidden_states.float() @ weight.float().T
        largest = logits.amax(dim=-1)
        lse = (logits - largest.unsqueeze(1)).exp().sum(dim=-1).log() + largest

        is_ignored = labels < 0
        chosen = torch.where(is_ignored, 0, labels).unsqueeze(1)
        losses = lse - logits.gather(1, chosen).squeeze(1)
        return torch.where(is_ignored, 0.0, losses), lse

    return run


class LinearCrossEntropyBase(LinearCrossEntropyTests):
    reference = staticmethod(reference_linear_cross_entropy)
    interface = INTERFACE_LINEAR_CROSS_ENTROPY

class TestLinearCrossEntropyV128256H2048(LinearCrossEntropyBase):
    name = "linear_cross_entropy_v128256_h2048"  # model:llama-3.2-1b
    axes = {"vocab_size": 128256, "hidden_size": 2048}
    sha256 = "1450986968afd58a59ebe2996ff17f342cccd0283e3a173cdbdd59308704f10d"

class TestLinearCrossEntropyV50257H1600(LinearCrossEntropyBase):
    name = "linear_cross_entropy_v50257_h1600"  # model:gpt2-xl
    axes = {"vocab_size": 50257, "hidden_size": 1600}
    sha256 = "62b990b2b25024108f8806ee11ad93d466eb9d4677137a95646e579b0fff524b"

class TestLinearCrossEntropyV50257H768(LinearCrossEntropyBase):
    name = "linear_cross_entropy_v50257_h768"  # model:gpt2
    axes = {"vocab_size": 50257, "hidden_size": 768}
    sha256 = "a2332f3f3096b9b8bd6167f2f02cc12e004e8301bb0698e20efa5ffea01a0b2a"


# Cross-entropy of each token from hidden_states times weight: log-sum-exp of the logits
# less the label's logit. Logits stay in float32: a kernel needs no more than a block of
# them at a time. Tokens with a label below 0, of which PyTorch's is -100, are ignored.
# The loss has 1e-05 * lse^2 added (z-loss).
# model:olmo-2-1b, mode:training
# Tolerances: those of reference_linear_cross_entropy.
def reference_linear_cross_entropy_zloss():
    import torch

    Z_LOSS = 1e-05


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logits = hidden_states.float() @ weight.float().T
        largest = logits.amax(dim=-1)
        lse = (logits - largest.unsqueeze(1)).exp().sum(dim=-1).log() + largest

        is_ignored = labels < 0
        chosen = torch.where(is_ignored, 0, labels).unsqueeze(1)
        losses = lse - logits.gather(1, chosen).squeeze(1)
        # Keeps the log-sum-exp near 0.
        losses = losses + Z_LOSS * lse.square()
        return torch.where(is_ignored, 0.0, losses), lse

    return run


class TestLinearCrossEntropyZlossV100352H2048(LinearCrossEntropyTests):
    name = "linear_cross_entropy_zloss_v100352_h2048"
    reference = staticmethod(reference_linear_cross_entropy_zloss)
    interface = INTERFACE_LINEAR_CROSS_ENTROPY
    axes = {"vocab_size": 100352, "hidden_size": 2048}
    constants = ("z_loss",)
    Z_LOSS = 1e-05  # "zloss" in the name
    sha256 = "2a22d4a4bdc2fbad8baec5c6e0ca9d5d92de39ae5822fd9916fc73c2239d3593"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
