"""Decoding: a prefill and single steps through caches and states."""

from __future__ import annotations

import math

import torch

from generator.parity.bounds import SHARED, judged, nmse, ratio
from generator.parity.chain import Decoding
from generator.parity.levels import DtypeRun, Found, order
from generator.parity.routed import Routes

Tensor = torch.Tensor
PROMPT = 64
_DRAWN = 24
"""Tokens to draw, beside the greedy ones."""


def decode(run: DtypeRun, sequence: Tensor | None = None) -> Found:
    """Decode through the paged cache, and compare with one full forward.

    In float32 the tokens are the greedy ones of this chain; in bfloat16 they are given.
    """
    sizes = run.chain.page_sizes()
    report: Found = {"pages": [], "lengths": [], "page_sizes": sizes}
    if not sizes:
        return {**report, "passed": None, "tokens": []}
    if sequence is not None:
        tokens = sequence
    elif run.is_exact:
        tokens = run.tokens[:PROMPT]
    else:
        # experts are given for known tokens
        tokens = _decoded(run, run.tokens[:PROMPT], sizes[0])[1]
    routes: Routes = {}
    if not run.is_exact:
        truth, routes = run.truth.routed_logits(tokens)
    decoded: dict[int, Tensor] = {}
    with run.chain.routed(routes):
        for size in sizes:
            decoded[size], tokens = _decoded(run, tokens, size)
    if run.is_exact:
        truth, _ = run.truth.routed_logits(tokens)
        theirs = truth
    else:
        theirs, _ = run.own.routed_logits(tokens, routes)
    truth, theirs = truth[PROMPT - 1 :], theirs[PROMPT - 1 :]
    for size, whole in decoded.items():
        logits = whole[PROMPT - 1 :]
        entry: Found = {"page_size": size}
        if run.is_exact:
            entry |= judged(
                nmse(logits, truth), 2 * run.bound(len(run.own.layers), is_cached=True)
            )
            same = logits.argmax(dim=1) == truth.argmax(dim=1)
            entry["greedy"] = bool(same.all())
            entry["passed"] = entry["passed"] and entry["greedy"]
        else:
            entry |= ratio(logits, theirs, truth)
        report["pages"].append(entry)
    report["tokens"] = tokens.tolist()
    # both sides may be as far from float32 as is allowed: by the triangle inequality
    # they are 4 times that apart
    bound = run.bound(len(run.own.layers), is_cached=True)
    if not run.is_exact:
        bound = 4 * SHARED * report["pages"][0].get("own", math.inf)
    with run.chain.routed(run.truth.routed_logits(run.tokens)[1]):
        report["lengths"] = [_length(run, length, bound) for length in run.lengths]
    if run.is_exact:
        report |= _sampled(run, sizes)
    every = (*report.get("sampled", ()), *report["pages"], *report["lengths"])
    report["passed"] = all(entry["passed"] is not False for entry in every)
    return report


def _decoded(run: DtypeRun, tokens: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the logits of a prefill and of single steps, and the tokens.

    Those that are not there yet are the greedy ones.
    """
    decoding = Decoding(size, PROMPT + run.steps)
    steps = [run.chain.forward(tokens[:PROMPT], 0, decoding)[0]]
    for at in range(PROMPT, PROMPT + run.steps - 1):
        if len(tokens) <= at:
            words = run.own.senses.words(steps[-1].shape[1])
            tokens = torch.cat((tokens, steps[-1][-1, :words].argmax()[None]))
        steps.append(run.chain.forward(tokens[at : at + 1], at, decoding)[0])
    return torch.cat(steps), tokens


def _sampled(run: DtypeRun, sizes: list[int]) -> Found:
    """Draw tokens behind a prompt from a fixed seed, once through pages of each size.

    They must be equal; the model may lack the definitions that draw.
    """
    calls = run.chain.calls.get("/sampling", {})
    if calls.keys() != {"softmax", "sampler"}:
        return {}
    warm, top_k, top_p = torch.tensor([0.8]), torch.tensor([50]), torch.tensor([0.9])
    drawn: dict[int, list[int]] = {}
    for size in sizes:
        tokens = run.tokens[:PROMPT]
        decoding = Decoding(size, PROMPT + _DRAWN)
        rows = tokens
        for at in range(PROMPT, PROMPT + _DRAWN):
            first = len(tokens) - len(rows)
            logits, _ = run.chain.forward(rows, first, decoding)
            probs = calls["softmax"](logits=logits[-1:].float(), temperature=warm)
            torch.manual_seed(at)
            (rows,) = calls["sampler"](
                probs=probs["probs"], top_k=top_k.int(), top_p=top_p
            ).values()
            tokens = torch.cat((tokens, rows))
        drawn[size] = tokens[PROMPT:].tolist()
    ones, *others = drawn.values()
    entry = {
        "page_sizes": sizes,
        "definition": calls["sampler"].name,
        "tokens": ones,
        "passed": all(of == ones for of in others) if others else None,
    }
    return {"sampled": [entry]}


def _length(run: DtypeRun, length: int, bound: float) -> Found:
    """Compare a sequence of a length in pages with the same one without a cache."""
    tokens = run.tokens[: length + 1]
    ragged, _ = run.chain.forward(tokens)
    worst = 0.0
    for size in run.chain.page_sizes():
        decoding = Decoding(size, length + 1)
        prefilled, _ = run.chain.forward(tokens[:length], 0, decoding)
        last, _ = run.chain.forward(tokens[length:], length, decoding)
        worst = max(worst, order(nmse(torch.cat((prefilled, last)), ragged)))
    return {"length": length, **judged(worst, bound)}
