"""Domain mutants of samplers: filters, probabilities, returned tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.common_mutants import rounded_inputs
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
    zeroed,
)
from generator.ops.op_types.sampling.cases import kind_of
from generator.ops.op_types.sampling.law import probabilities
from kernel_judge.definition import Definition

# mutants move a boundary only within this number of the most probable tokens
_NEAR = 512


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the definition's filters."""
    changes: dict[str, Change] = {
        "probabilities squared": lambda i: _probs(i, lambda p: p.square()),
        "probabilities' root": lambda i: _probs(i, lambda p: p.sqrt()),
        "probabilities of the next row": lambda i: _probs(i, lambda p: p.roll(1, 0)),
        "half of the vocabulary ignored": lambda i: _probs(i, _first_half),
        "first token ignored": lambda i: _probs(i, lambda p: zeroed(p, 1, 0)),
        "last token ignored": lambda i: _probs(i, lambda p: zeroed(p, 1, -1)),
        # less probable than all others, yet seen in a few draws
        "impossible tokens": lambda i: _probs(i, lambda p: p + 0.005 * (p == 0)),
        "argmax always": lambda i: _probs(i, _greedy),
        "all alike": lambda i: _probs(i, lambda p: (p > 0).to(p.dtype)),
    }
    names = definition.interface.inputs
    if "min_p" in names:
        changes.update(_of_min_p())
    if "top_k" in names:
        changes.update(_of_k())
    if "top_p" in names:
        changes.update(_of_p())
        if "logits" not in names:
            # the sums of a softmax are not exact: none equals p but by chance
            changes["p reached and not crossed"] = _next_p
    if "top_k" in names and "top_p" in names:
        changes["top-k then top-p without renormalising"] = _of_all
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "rank for token", _ranks),
        on_outputs(definition, "the next token", _next),
    )


def _of_k() -> dict[str, Change]:
    def k(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
        return lambda i: {"top_k": change(i["top_k"])}

    return {
        "k one too many": k(lambda k: torch.where(k > 0, (k + 1).clamp_min(1), k)),
        "k one too few": k(lambda k: torch.where(k > 1, k - 1, k)),
        "k ignored": k(torch.zeros_like),
        "k of the first row": k(lambda k: k[:1].expand_as(k).contiguous()),
        "k <= 0 keeps one": k(lambda k: k.clamp_min(1)),
    }


def _of_p() -> dict[str, Change]:
    def p(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
        return lambda i: {"top_p": change(i["top_p"])}

    return {
        "top-p excluding the crossing token": lambda i: _moved(i, -1),
        "top-p one token too many": lambda i: _moved(i, 1),
        "p ignored": p(torch.ones_like),
        "p of the first row": p(lambda p: p[:1].expand_as(p).contiguous()),
        "p <= 0 keeps all": p(lambda p: torch.where(p > 0, p, 1.0)),
        "1 - p for p": p(lambda p: 1.0 - p),
    }


def rounded_filtered(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that round inputs, where it shows: at a filter's limit."""
    return rounded_inputs(definition) if kind_of(definition) else ()


def _of_min_p() -> dict[str, Change]:
    def min_p(change: Callable[[Inputs], torch.Tensor]) -> Change:
        return lambda i: {"min_p": change(i)}

    return {
        "min_p of all, not of the largest": min_p(
            lambda i: i["min_p"] / i["probs"].amax(dim=1)
        ),
        "min_p ignored": min_p(lambda i: torch.zeros_like(i["min_p"])),
        "min_p of the first row": min_p(
            lambda i: i["min_p"][:1].expand_as(i["min_p"]).contiguous()
        ),
        "min_p squared": min_p(lambda i: i["min_p"].square()),
        "1 - min_p for min_p": min_p(lambda i: 1.0 - i["min_p"]),
        "limit left out": min_p(
            lambda i: torch.nextafter(i["min_p"], torch.full_like(i["min_p"], 2.0))
        ),
    }


def _next_p(inputs: Inputs) -> dict[str, Any]:
    """Return the next float above each p, which a sum equal to p does not reach."""
    p = inputs["top_p"]
    return {
        "top_p": torch.where(p > 0, torch.nextafter(p, 2.0 * torch.ones_like(p)), p)
    }


def _probs(
    inputs: Inputs, change: Callable[[torch.Tensor], torch.Tensor]
) -> dict[str, Any]:
    changed = change(probabilities(inputs))
    changed = changed / changed.sum(dim=1, keepdim=True)
    return (
        {"probs": changed} if "probs" in inputs else {"logits": changed.log().float()}
    )


def _first_half(probs: torch.Tensor) -> torch.Tensor:
    cut = probs.clone()
    cut[:, probs.shape[1] // 2 :] = 0
    # a row must keep a token
    cut[:, 0] += 1e-9
    return cut


def _greedy(probs: torch.Tensor) -> torch.Tensor:
    largest = probs.argmax(dim=1, keepdim=True)
    return torch.zeros_like(probs).scatter(1, largest, 1.0)


def _kept(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the shares of the most probable tokens after top-k, and the sums before.

    Both float64 [batch_size, _NEAR], descending: a token is kept if the sum before it is
    less than p.
    """
    probs = probabilities(inputs)
    likeliest = probs.topk(min(_NEAR, probs.shape[1]), dim=1).values.double()
    if "top_k" in inputs:
        k = inputs["top_k"]
        whole = (k <= 0) | (k >= likeliest.shape[1])
        rank = torch.arange(likeliest.shape[1])
        likeliest = likeliest * (whole[:, None] | (rank < k[:, None]))
        mass = torch.where(whole, probs.double().sum(1), likeliest.sum(1))
        likeliest = likeliest / mass[:, None]
    return likeliest, likeliest.cumsum(dim=1) - likeliest


def _moved(inputs: Inputs, by: int) -> dict[str, Any]:
    """Return p that keeps one token fewer or more, but at least one."""
    p = inputs["top_p"]
    shares, before = _kept(inputs)
    count = ((before < p[:, None].double()) & (shares > 0)).sum(dim=1).clamp_min(1)
    # if all tokens together stay below p, none crosses it
    crossed = shares.sum(dim=1) > p - 2.0**-21
    possible = (count > 1) & crossed if by < 0 else count + by < (shares > 0).sum(dim=1)
    # a row whose boundary is beyond _NEAR keeps its p
    possible &= count < shares.shape[1] - 1
    wanted = (count + by).clamp(1, shares.shape[1] - 1)
    last = wanted[:, None] - 1
    # halfway between the sums before the last kept token and before the next
    between = before.gather(1, last) + shares.gather(1, last) / 2
    return {"top_p": torch.where(possible, between[:, 0].float(), p)}


def _of_all(inputs: Inputs) -> dict[str, Any]:
    """Return p that, applied after top-k, is the given share of all mass."""
    probs, k = probabilities(inputs), inputs["top_k"]
    near = probs.topk(min(_NEAR, probs.shape[1]), dim=1).values.double()
    rank = torch.arange(near.shape[1])
    mass = (near * (rank < k[:, None])).sum(dim=1)
    cut = (k > 0) & (k <= near.shape[1]) & (inputs["top_p"] > 0)
    p = (inputs["top_p"].double() / mass).clamp_max(1.0).float()
    return {"top_p": torch.where(cut, p, inputs["top_p"])}


def _ranks(outputs: Outputs, inputs: Inputs) -> Outputs:
    (samples,) = outputs
    rows = next(iter(inputs.values()))
    drawn = rows.gather(1, samples[:, None].long())
    return ((rows > drawn).sum(dim=1).to(samples.dtype),)


def _next(outputs: Outputs, inputs: Inputs) -> Outputs:
    (samples,) = outputs
    return ((samples + 1) % next(iter(inputs.values())).shape[1],)


MUTANTS = (
    MutantGroup(mutants, "probs samples"),
    MutantGroup(mutants, "logits samples"),
    MutantGroup(rounded_filtered, "samples"),
)
