"""Reference tests of op_type cross_entropy.

Rendered: don't edit. `gen-tests --op-type cross_entropy` renders this file anew.

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
from generator.ops.op_types.cross_entropy.relations import loss_relations
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
# relations: generator.ops.op_types.cross_entropy.relations

IGNORED = -100


def _height(definition: Definition, case: Case) -> float:
    """Return how large the log-sum-exp is, in units of 20."""
    return max(1.0, float(case.params.get("mean", 0.0)) / 20.0)


_LSE = (
    "a log-sum-exp of 20 at most has an error of 2^-24 of itself for each of its few "
    "roundings, and one of 2e-6 by the float32 sum of the exponentials"
)
TOLERANCES = (
    Override(
        "losses",
        Tolerance(rtol=1e-6, atol=1e-5, nmse=4e-8),
        "log-sum-exps of 18 are off by 2e-6, of losses of 0.016 at least 1.3e-4: the "
        "square is 1.6e-8",
        case="certain",
    ),
    Override(
        "losses",
        Tolerance(rtol=1e-6, atol=1e-5, nmse=1e-10),
        f"the difference of two numbers of that size: {_LSE}",
        growth=_height,
    ),
    Override(
        "lse",
        Tolerance(rtol=1e-6, atol=1e-5, nmse=1e-12),
        f"{_LSE}: 1e-7 of it, and 1e-14 the square",
        growth=_height,
    ),
    Override(
        "grad_logits",
        Tolerance(rtol=4e-3, atol=3e-6, nmse=1.6e-5),
        "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, and 2^-16 = "
        "1.53e-5 its square; of a label with a probability near 1 the error of a "
        f"log-sum-exp is left: {_LSE}",
        source="oracle",
        growth=_height,
    ),
    Override(
        "grad_logits",
        Tolerance(rtol=8e-3, atol=6e-6, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        f"2^-7 apart; of a label with a probability near 1, {_LSE} on either side",
        growth=_height,
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, certain ones, high logits, masked tokens, ignored labels."""
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        Case("labels-at-edges", "small", {"num_tokens": 5}),
        Case("certain", "small", {"num_tokens": 4}, {"certain": 18.0}),
        # exp() of these overflows float32
        Case("high-logits", "small", {"num_tokens": 3}, {"mean": 1000.0}),
        Case("masked-tokens", "small", {"num_tokens": 3}, {"masked": True}),
        Case("batch", "medium", {"num_tokens": 9}),
        past_limits("num_tokens", 275),
        Case("long-batch", "large", {"num_tokens": 4_096}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return logits bfloat16 [num_tokens, vocab_size] and labels int64 [num_tokens].

    The first label is the last token, the second the first, the third none. A gradient
    has the float32 log-sum-exp, and gradients of losses around 1, of either sign.
    """
    rows, size = case.axes["num_tokens"], definition.axes["vocab_size"]
    logits = stream.child("logits").matrix(rows, size, 2.5, torch.float32)
    # rows of a matrix have nearly the same values: of other sizes their sums differ
    sizes = torch.tensor([1.0, 0.8, 1.1, 0.9, 1.2])
    logits *= sizes[torch.arange(rows) % len(sizes)].unsqueeze(1)
    logits += case.params.get("mean", 0.0)
    drawn = stream.child("labels").integers(0, size, rows)
    labels = torch.tensor([size - 1, 0, IGNORED, *drawn][:rows])
    labelled = labels.clamp_min(0).unsqueeze(1)
    if case.params.get("masked"):
        logits[:, ::3] = -torch.inf
        logits.scatter_(1, labelled, 1.5)
    if case.params.get("certain"):
        logits.scatter_(1, labelled, case.params["certain"])
    logits = logits.to(torch.bfloat16)
    if "lse" not in definition.interface.inputs:
        return {"logits": logits, "labels": labels}
    grad = stream.child("grad_losses").values((rows,), 0.7) + 0.3
    lse = logits.double().logsumexp(dim=1).float()
    return {"grad_losses": grad, "logits": logits, "labels": labels, "lse": lse}


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return losses and log-sum-exp, float64 [num_tokens], or the gradient by autograd."""
    rows = inputs["logits"].double()
    if "grad_losses" not in inputs:
        return _losses(definition, rows, inputs["labels"])
    rows.requires_grad_()
    with torch.enable_grad():
        losses, _ = _losses(definition, rows, inputs["labels"])
        (grad,) = torch.autograd.grad(losses, rows, inputs["grad_losses"].double())
    return grad


def _losses(
    definition: Definition, rows: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    lse = torch.logsumexp(rows, dim=1)
    z_loss = definition.constants.get("z_loss", 0.0)
    each = []
    for row, total, label in zip(rows, lse, labels.tolist(), strict=True):
        is_asked = label != IGNORED
        loss = total - row[label] + z_loss * total**2 if is_asked else 0.0 * total
        each.append(loss)
    return torch.stack(each), lse


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's cross-entropy, which has no z-loss and gives no log-sum-exp."""
    limit = "PyTorch has no z-loss" if "z_loss" in definition.constants else ""
    lacks = ("lse",) if "lse" in definition.interface.outputs else ()
    return (Backend("cross_entropy", lacks=lacks, limit=limit),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the losses of float32 rows, or what autograd of them gives the logits."""
    logits, labels = inputs["logits"], inputs["labels"]
    loss = torch.nn.functional.cross_entropy
    if "grad_losses" not in inputs:
        return loss(logits.float(), labels, reduction="none"), None
    logits.requires_grad_()
    with torch.enable_grad():
        losses = loss(logits.float(), labels, reduction="none")
        (grad,) = torch.autograd.grad(losses, logits, inputs["grad_losses"])
    return grad


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=loss_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_CROSS_ENTROPY_BACKWARD = Interface(
    inputs={
        "grad_losses": "float32[num_tokens]",
        "logits": "bfloat16[num_tokens, vocab_size]",
        "labels": "int64[num_tokens]",
        "lse": "float32[num_tokens]",
    },
    outputs={"grad_logits": "bfloat16[num_tokens, vocab_size]"},
)
INTERFACE_CROSS_ENTROPY = Interface(
    inputs={
        "logits": "bfloat16[num_tokens, vocab_size]",
        "labels": "int64[num_tokens]",
    },
    outputs={"losses": "float32[num_tokens]", "lse": "float32[num_tokens]"},
)

# ---- the tests


class CrossEntropyTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of cross_entropy share."""

    op_type = "cross_entropy"
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
# (3) log-sum-exps of 18 are off by 2e-6, of losses of 0.016 at least 1.3e-4.
# (4) the difference of two numbers of that size.
# (5) a log-sum-exp of 20 at most has an error of 2^-24 of itself for each of its few
# roundings, and one of 2e-6 by the float32 sum of the exponentials.


# Gradient of cross-entropy for the logits, from the log-sum-exp of the forward pass: 0
# for tokens whose label is -100. In float32, rounded once to bfloat16.
# mode:training
# Tolerances:
#   output       source   rtol   atol    NMSE     reason
#   grad_logits  oracle   0.004  3e-06*  1.6e-05  (1)
#   grad_logits  pytorch  0.008  6e-06*  1.6e-05  (2)
def reference_cross_entropy_backward():
    import torch

    IGNORED = -100


    @torch.no_grad()
    def run(
        grad_losses: torch.Tensor,
        logits: torch.Tensor,
        labels: torch.Tensor,
        lse: torch.Tensor,
    ) -> torch.Tensor:
        probabilities = (logits.float() - lse.unsqueeze(1)).exp()
        is_ignored = labels == IGNORED
        chosen = torch.where(is_ignored, 0, labels).unsqueeze(1)
        ones = torch.ones_like(chosen, dtype=torch.float32)
        slopes = probabilities.scatter_add(1, chosen, -ones)

        scales = torch.where(is_ignored, 0.0, grad_losses)
        return (slopes * scales.unsqueeze(1)).to(logits.dtype)

    return run


class CrossEntropyBackwardBase(CrossEntropyTests):
    reference = staticmethod(reference_cross_entropy_backward)
    interface = INTERFACE_CROSS_ENTROPY_BACKWARD

class TestCrossEntropyBackwardV128256(CrossEntropyBackwardBase):
    name = "cross_entropy_backward_v128256"  # model:llama-3.2-1b, model:llama-3.1-8b
    axes = {"vocab_size": 128256}
    sha256 = "0e0d0b137be38f4f14961219809fa2cf8b9702500573774fa530a3949bb779c1"

class TestCrossEntropyBackwardV50257(CrossEntropyBackwardBase):
    name = "cross_entropy_backward_v50257"  # model:gpt2, model:gpt2-xl
    axes = {"vocab_size": 50257}
    sha256 = "9b0a9958fb4753b2deda4acb4a75d3e5ba6ccdde5215ea690b4d85c70da9d623"


# Gradient of cross-entropy for the logits, from the log-sum-exp of the forward pass: 0
# for tokens whose label is -100. In float32, rounded once to bfloat16. The loss has
# 1e-05 * lse^2 added (z-loss).
# model:olmo-2-7b, mode:training
# Tolerances: those of reference_cross_entropy_backward.
def reference_cross_entropy_backward_zloss():
    import torch

    IGNORED = -100
    Z_LOSS = 1e-05


    @torch.no_grad()
    def run(
        grad_losses: torch.Tensor,
        logits: torch.Tensor,
        labels: torch.Tensor,
        lse: torch.Tensor,
    ) -> torch.Tensor:
        probabilities = (logits.float() - lse.unsqueeze(1)).exp()
        probabilities = probabilities * (1.0 + 2.0 * Z_LOSS * lse.unsqueeze(1))
        is_ignored = labels == IGNORED
        chosen = torch.where(is_ignored, 0, labels).unsqueeze(1)
        ones = torch.ones_like(chosen, dtype=torch.float32)
        slopes = probabilities.scatter_add(1, chosen, -ones)

        scales = torch.where(is_ignored, 0.0, grad_losses)
        return (slopes * scales.unsqueeze(1)).to(logits.dtype)

    return run


class TestCrossEntropyBackwardZlossV100352(CrossEntropyTests):
    name = "cross_entropy_backward_zloss_v100352"
    reference = staticmethod(reference_cross_entropy_backward_zloss)
    interface = INTERFACE_CROSS_ENTROPY_BACKWARD
    axes = {"vocab_size": 100352}
    constants = ("z_loss",)
    Z_LOSS = 1e-05  # "zloss" in the name
    sha256 = "0101eae5d1d039a7dac81538c1f7690d8456f53590b8dc8d619d34e8f89acc0e"


# Cross-entropy of each token: log-sum-exp of the logits less the label's logit, 0 where
# the label is -100. In float32.
# mode:training
# Tolerances:
#   output  source                      rtol   atol    NMSE   reason
#   losses  oracle, pytorch in certain  1e-06  1e-05   4e-08  (3)
#   losses  oracle, pytorch             1e-06  1e-05*  1e-10  (4)
#   lse     oracle, pytorch             1e-06  1e-05*  1e-12  (5)
def reference_cross_entropy():
    import torch

    IGNORED = -100


    @torch.no_grad()
    def run(
        logits: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows = logits.float()
        largest = rows.amax(dim=-1)
        lse = (rows - largest.unsqueeze(1)).exp().sum(dim=-1).log() + largest

        is_ignored = labels == IGNORED
        chosen = torch.where(is_ignored, 0, labels).unsqueeze(1)
        losses = lse - rows.gather(1, chosen).squeeze(1)
        return torch.where(is_ignored, 0.0, losses), lse

    return run


class CrossEntropyBase(CrossEntropyTests):
    reference = staticmethod(reference_cross_entropy)
    interface = INTERFACE_CROSS_ENTROPY

class TestCrossEntropyV128256(CrossEntropyBase):
    name = "cross_entropy_v128256"  # model:llama-3.2-1b, model:llama-3.1-8b
    axes = {"vocab_size": 128256}
    sha256 = "497618bfc345ec2a072328a49c911f20f72755905ba586340c38e41169145fd1"

class TestCrossEntropyV50257(CrossEntropyBase):
    name = "cross_entropy_v50257"  # model:gpt2, model:gpt2-xl
    axes = {"vocab_size": 50257}
    sha256 = "e93aa8f988c7c0fe0b97e89b9795c5f535af785309d1a880ec9d8748f5b8ada2"


# Cross-entropy of each token: log-sum-exp of the logits less the label's logit, 0 where
# the label is -100. In float32. The loss has 1e-05 * lse^2 added (z-loss).
# model:olmo-2-7b, mode:training
# Tolerances: those of reference_cross_entropy.
def reference_cross_entropy_zloss():
    import torch

    IGNORED = -100
    Z_LOSS = 1e-05


    @torch.no_grad()
    def run(
        logits: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows = logits.float()
        largest = rows.amax(dim=-1)
        lse = (rows - largest.unsqueeze(1)).exp().sum(dim=-1).log() + largest

        is_ignored = labels == IGNORED
        chosen = torch.where(is_ignored, 0, labels).unsqueeze(1)
        losses = lse - rows.gather(1, chosen).squeeze(1)
        # Keeps the log-sum-exp near 0.
        losses = losses + Z_LOSS * lse.square()
        return torch.where(is_ignored, 0.0, losses), lse

    return run


class TestCrossEntropyZlossV100352(CrossEntropyTests):
    name = "cross_entropy_zloss_v100352"
    reference = staticmethod(reference_cross_entropy_zloss)
    interface = INTERFACE_CROSS_ENTROPY
    axes = {"vocab_size": 100352}
    constants = ("z_loss",)
    Z_LOSS = 1e-05  # "zloss" in the name
    sha256 = "ab2b182fcf8426d38493deb52ed4cb43b910506845b00bde24fbffef93da10ea"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
