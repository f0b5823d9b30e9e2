"""Training: gradients through references, and steps of SGD beside transformers'."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from generator.parity.bounds import SHARED, nmse
from generator.parity.chain import Chain
from generator.parity.levels import Found, Run, order
from generator.parity.subject import Subject

Tensor = torch.Tensor
Logits = Callable[[], Tensor]
# small: at 0.05 the steps of a delta net drive any two runs apart, ninefold each
_LEARNING_RATE = 0.01
_GRADIENT = 10.0
"""NMSE of a parameter's gradient in float32, in bounds of a stage: a gradient has passed
the whole model twice (measured: 9e-13)."""


def train(run: Run, steps: int) -> Found:
    """Train from the same weights by transformers and by the chain, with SGD.

    Gradients and weights in float32 are compared with transformers'. In bfloat16, both
    sides are compared with transformers in float32: the chain's error may be twice
    the error of transformers.
    """
    theirs, ours, truth = (Subject(_copied(s)) for s in (run.own, run.own, run.truth))
    family = run.chain.family
    calls = {
        key: of
        for key, of in run.chain.calls.items()
        if key.rpartition("/")[2] not in family.untrained
    }
    chain = Chain(ours, family, calls)
    start = [p.detach().double() for p in truth.model.parameters()]
    found: Found = {"steps": [], "passed": True, "why": ""}
    trained = (
        (theirs, lambda: _by_transformers(theirs, run.tokens)),
        (ours, lambda: chain.forward(run.tokens)[0]),
        (truth, lambda: _by_transformers(truth, run.tokens)),
    )
    for step in range(1, steps + 1):
        losses = [_backward(subject.model, by, run.tokens) for subject, by in trained]
        if step == 1:
            found |= _gradients(run, theirs.model, ours.model, truth.model)
        for subject, _ in trained:
            _descend(subject.model)
        entry: Found = {
            "step": step,
            "loss": losses[0],
            "loss_apart": abs(losses[0] - losses[1]),
        }
        entry |= _weights(run, start, theirs.model, ours.model, truth.model, step)
        found["steps"].append(entry)
    broken = [entry for entry in found["steps"] if not entry["passed"]]
    if broken and not found["why"]:
        entry = broken[0]
        found["why"] = (
            f"step {entry['step']}: weights are {entry['apart']:.1e} of what moved "
            f"apart, allowed {entry['bound']:.1e}"
        )
    found["passed"] = not found["why"]
    return found


def _copied(subject: Subject) -> nn.Module:
    model: nn.Module = copy.deepcopy(subject.model)
    return model.requires_grad_(True)


def _by_transformers(subject: Subject, tokens: Tensor) -> Tensor:
    with subject.attending():
        logits: Tensor = subject.model(input_ids=tokens[None], use_cache=False).logits
    return logits[0]


def _backward(model: nn.Module, logits: Logits, tokens: Tensor) -> float:
    """Make the gradients of the loss of the next token; return the loss."""
    model.zero_grad()
    loss = functional.cross_entropy(logits()[:-1].float(), tokens[1:])
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach())


@torch.no_grad()
def _descend(model: nn.Module) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.sub_(_LEARNING_RATE * parameter.grad)


def _gradients(run: Run, theirs: nn.Module, ours: nn.Module, truth: nn.Module) -> Found:
    """Return how far gradients are apart, and why where that is too far.

    In float32 each parameter's counts; in bfloat16 all together, against those of
    transformers: an expert that a token flips to has another gradient. A parameter that
    only one side has a gradient of is not used by the other.
    """
    names = [name for name, _ in theirs.named_parameters()]
    sides = [
        [parameter.grad for parameter in model.parameters()]
        for model in (theirs, ours, truth)
    ]
    pairs = list(zip(names, *sides, strict=True))
    for name, their, our, _ in pairs:
        if (their is None) != (our is None):
            why = f"{name} gets a gradient on one side alone"
            return {
                "gradient": math.inf,
                "gradient_kind": "",
                "worst": name,
                "why": why,
            }
    used = [pair for pair in pairs if all(grad is not None for grad in pair[1:])]
    if run.is_exact:
        errors = {name: order(nmse(our, their)) for name, their, our, _ in used}
        worst = max(errors, key=lambda name: errors[name])
        error, bound, kind = errors[worst], _GRADIENT * run.bound(0), "NMSE"
    else:
        flat = [torch.cat([pair[i].flatten() for pair in used]) for i in (1, 2, 3)]
        error = order(nmse(flat[1], flat[2]) / nmse(flat[0], flat[2]))
        worst, bound = "all parameters", SHARED
        kind = "ratio to transformers' own"
    why = (
        ""
        if error <= bound
        else f"gradient of {worst}: {error:.1e}, allowed {bound:.1e}"
    )
    return {"gradient": error, "gradient_kind": kind, "worst": worst, "why": why}


def _weights(
    run: Run,
    start: list[Tensor],
    theirs: nn.Module,
    ours: nn.Module,
    truth: nn.Module,
    step: int,
) -> Found:
    """Return how far the weights are apart, of how far they moved, and what is allowed.

    In float32 that is the error of the gradients and the rounding of each update to
    the spacing of the weight.
    """
    moved = _apart([p.detach().double() for p in truth.parameters()], start)
    if run.is_exact:
        apart = _apart(_wide(ours), _wide(theirs)) / moved
        size = sum(float(weight.square().sum()) for weight in start) ** 0.5
        rounding = 2.0**-24 * size * step**0.5 / moved
        bound = (_GRADIENT * run.bound(0)) ** 0.5 * step + rounding
    else:
        apart = _apart(_wide(ours), _wide(truth)) / moved
        bound = SHARED * _apart(_wide(theirs), _wide(truth)) / moved
    return {"apart": apart, "bound": bound, "passed": apart <= bound}


def _wide(model: Any) -> list[Tensor]:
    return [parameter.detach().double() for parameter in model.parameters()]


def _apart(a: list[Tensor], b: list[Tensor]) -> float:
    pairs = zip(a, b, strict=True)
    return math.sqrt(sum(float((p - q).square().sum()) for p, q in pairs))
