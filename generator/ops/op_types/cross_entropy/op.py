"""cross_entropy: -log softmax(logits)[label], its log-sum-exp, and its gradient.

Tokens whose label is -100 have the loss 0. The oracle is float64: log-sum-exp by torch,
and the gradient by autograd of it. The production kernel is PyTorch's, on float32 rows.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.cross_entropy.relations import loss_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
