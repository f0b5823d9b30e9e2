"""Training: gradients through references, and steps of SGD beside transformers'."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping

import torch
from torch import nn
from torch.nn import functional

from generator.parity.bounds import SHARED, judged, nmse
from generator.parity.chain import Chain
from generator.parity.gradients import backward
from generator.parity.levels import DtypeRun, Found, order
from generator.parity.subject import ParityModel

Tensor = torch.Tensor
# small: at 0.05 the steps of a delta net drive any two runs apart, ninefold each
_LEARNING_RATE = 0.001
_WEIGHTS = {1: 1e-5, 5: 1e-3, 20: 1e-2}
_LOSS = {1: 1e-5, 5: 1e-2, 20: 1e-1}
"""How far a weight and the loss may be apart up to a number of steps; beyond the last
one the losses must have the same trend."""
_TREND, _MEAN, _ALIKE = 100, 10, 0.9
"""Steps from which a trend is judged; steps of a mean; correlation of like curves."""
_GRADIENT = 10.0
"""NMSE of a parameter's gradient in float32, in bounds of a stage: a gradient has passed
the whole model twice (measured: 9e-13)."""


def train(run: DtypeRun, steps: int) -> Found:
    """Train from the same weights by transformers and by the chain, with SGD.

    Gradients and weights in float32 are compared with transformers'. In bfloat16, both
    sides are compared with transformers in float32: the chain's error may be twice
    the error of transformers.
    """
    theirs, ours, truth = (_again(s) for s in (run.own, run.own, run.truth))
    family = run.chain.family
    calls = {
        key: of
        for key, of in run.chain.calls.items()
        if key.rpartition("/")[2] not in family.untrained
    }
    chain = Chain(ours, family, calls)
    report: Found = {"steps": [], "passed": True, "why": ""}
    if run.is_exact:
        report["backward"] = list(_backwards(run, chain, theirs))
        report["why"] = next(map(_diverged, filter(_is_broken, report["backward"])), "")
    start = [p.detach().double() for p in truth.model.parameters()]
    masters = [
        [p.detach().float().clone() for p in of.model.parameters()]
        for of in (theirs, ours, truth)
    ]
    losses: list[list[float]] = []
    for step in range(1, steps + 1):
        exact, routes = truth.routed_logits(run.tokens)
        if run.is_exact:
            routes = {}
        their = theirs.routed_logits(run.tokens, routes)[0]
        with chain.routed(routes):
            our, _ = chain.forward(run.tokens)
        trained = ((theirs, their), (ours, our), (truth, exact))
        losses.append([_backward(of.model, by, run.tokens) for of, by in trained])
        if step == 1:
            gradients = _gradients(run, theirs.model, ours.model, truth.model)
            report |= {**gradients, "why": report["why"] or gradients["why"]}
        for (subject, _), master in zip(trained, masters, strict=True):
            _descend(subject.model, master)
        entry: Found = {"step": step, **_losses(run, losses)}
        entry |= _weights(run, start, masters, step)
        if not entry["loss_apart"] <= entry["loss_bound"]:
            entry["why"] = (
                f"the loss is {entry['loss_apart']:.1e} apart, allowed "
                f"{entry['loss_bound']:.1e}"
            )
        entry["passed"] = not entry["why"]
        report["steps"].append(entry)
    broken = [entry for entry in report["steps"] if not entry["passed"]]
    if broken and not report["why"]:
        entry = broken[0]
        report["why"] = f"step {entry['step']}: {entry['why']}"
    if steps >= _TREND and not report["why"]:
        report["why"] = _trend(losses)
    report["passed"] = not report["why"]
    return report


def _backwards(run: DtypeRun, chain: Chain, theirs: ParityModel) -> Iterator[Found]:
    """Yield how far the gradients of what stages write are apart, the last one first."""
    bound = _GRADIENT * run.bound(0)
    for one in backward(chain, theirs, run.tokens):
        stage = next(
            of
            for of in (
                chain.stages(one.layer)
                if one.layer is not None
                else (chain.family.embed, *chain.family.final)
            )
            if of.name == one.stage
        )
        calls = chain.calls_of(stage, one.layer)
        call = calls.get("", calls.get("ragged"))
        yield {
            "layer": one.layer,
            "stage": f"{one.stage}: {one.value}",
            "readers": list(one.readers),
            "definition": call.name if call else "",
            **judged(order(nmse(one.ours, one.theirs)), bound),
        }


def _is_broken(entry: Found) -> bool:
    return not entry["passed"]


def _diverged(entry: Found) -> str:
    """Return in words where gradients diverge, on the way from the loss back."""
    where = "" if entry["layer"] is None else f"layer {entry['layer']}, "
    read = f", which {', '.join(entry['readers'])} read" if entry["readers"] else ""
    return (
        f"first divergence backwards: the gradient of {where}{entry['stage']}{read}: "
        f"NMSE {entry['nmse']:.1e}, allowed {entry['bound']:.1e}"
    )


def _threshold(table: Mapping[int, float], step: int) -> float:
    return next((most for last, most in table.items() if step <= last), math.inf)


def _losses(run: DtypeRun, losses: list[list[float]]) -> Found:
    """Return how far the losses are apart, and what is allowed.

    In bfloat16 twice the largest distance so far of transformers' loss from that in
    float32 is allowed as well.
    """
    theirs, ours, _ = losses[-1]
    apart, step = abs(ours - theirs), len(losses)
    allowed = _threshold(_LOSS, step if run.is_exact else max(step, 5))
    if not run.is_exact:
        farthest = max(abs(their - true) for their, _, true in losses)
        allowed = max(allowed, SHARED * farthest)
    return {"loss": theirs, "loss_apart": apart, "loss_bound": allowed}


def _trend(losses: list[list[float]]) -> str:
    """Return why the chain's losses have another trend than those in float32."""
    curves = torch.tensor(losses, dtype=torch.float64)[:, 1:].T
    falls = curves[:, -_MEAN:].mean(dim=1) - curves[:, :_MEAN].mean(dim=1)
    alike = float(torch.corrcoef(curves)[0, 1])
    if bool((falls.sign() == falls.sign()[0]).all()) and alike >= _ALIKE:
        return ""
    return (
        f"over {len(losses)} steps the loss changes by {falls[0]:.2g}, in float32 by "
        f"{falls[1]:.2g}; the curves' correlation is {alike:.2f}, wanted {_ALIKE:g}"
    )


def _again(subject: ParityModel) -> ParityModel:
    """Return a copy of a model that can be trained."""
    model: nn.Module = copy.deepcopy(subject.model)
    return ParityModel(model.requires_grad_(True), subject.family, seed=subject.seed)


def _backward(model: nn.Module, logits: Tensor, tokens: Tensor) -> float:
    """Make the gradients of the loss; return the loss."""
    model.zero_grad()
    loss = functional.cross_entropy(logits[:-1].float(), tokens[1:])
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach())


@torch.no_grad()
def _descend(model: nn.Module, master: list[Tensor]) -> None:
    """Step on float32 copies of the weights: in bfloat16 small steps are lost."""
    for parameter, exact in zip(model.parameters(), master, strict=True):
        if parameter.grad is not None:
            exact.sub_(_LEARNING_RATE * parameter.grad.float())
            parameter.copy_(exact)


def _gradients(
    run: DtypeRun, theirs: nn.Module, ours: nn.Module, truth: nn.Module
) -> Found:
    """Return how far gradients are apart, and why where that is too far.

    In float32 each parameter's counts; in bfloat16 all together, against those of
    transformers: few values of an expert are read by few tokens. A parameter that only
    one side has a gradient of is not used by the other.
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
    run: DtypeRun,
    start: list[Tensor],
    sides: list[list[Tensor]],
    step: int,
) -> Found:
    """Return how far the weights are apart, of how far they moved, and what is allowed.

    In float32 that is the error of the gradients and the rounding of each update to
    the spacing of the weight.
    """
    theirs, ours, truth = sides
    moved = _apart(truth, start)
    apart, largest = _apart(ours, truth) / moved, _largest(ours, truth)
    # how far rounding moves a single weight has no bound
    allowed = _threshold(_WEIGHTS, step) if run.is_exact else math.inf
    if run.is_exact:
        size = sum(float(weight.square().sum()) for weight in start) ** 0.5
        rounding = 2.0**-24 * size * step**0.5 / moved
        bound = (_GRADIENT * run.bound(0)) ** 0.5 * step + rounding
    else:
        bound = SHARED * _apart(theirs, truth) / moved
    if step > max(_WEIGHTS):
        # runs drift apart: the trend is judged
        bound = math.inf
    why = ""
    if not apart <= bound:
        why = f"weights are {apart:.1e} of what moved apart, allowed {bound:.1e}"
    elif not largest <= allowed:
        why = f"a weight is {largest:.1e} apart, allowed {allowed:.1e}"
    return {
        "apart": apart,
        "bound": bound,
        "largest": largest,
        "largest_bound": allowed,
        "why": why,
    }


def _largest(a: list[Tensor], b: list[Tensor]) -> float:
    """Return the largest difference of two models' weights."""
    return max(float((p - q).abs().max()) for p, q in zip(a, b, strict=True))


def _apart(a: list[Tensor], b: list[Tensor]) -> float:
    pairs = zip(a, b, strict=True)
    return math.sqrt(sum(float((p.double() - q).square().sum()) for p, q in pairs))
