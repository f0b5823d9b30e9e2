"""linear_cross_entropy: losses of hidden states times a weight, and both gradients.

The oracle is float64: log-sum-exp by torch, gradients by autograd. PyTorch's function of
that name is called with float32 values of the inputs, since of bfloat16 its logits and
losses are bfloat16 as well.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.op_types.linear_cross_entropy.relations import loss_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
