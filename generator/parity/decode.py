"""Decoding: a prefill and single steps through caches and states."""

from __future__ import annotations

import math

import torch

from generator.parity.bounds import SHARED, judged, nmse, ratio, steady
from generator.parity.chain import Decoding
from generator.parity.levels import DtypeRun, Found, order

Tensor = torch.Tensor
PROMPT = 64
_DRAWN = 24
"""Tokens to draw, beside the greedy ones."""


def decode(run: DtypeRun, sequence: Tensor | None = None) -> Found:
    """Decode through the paged cache, and compare with one full forward.

    In float32 the tokens are the greedy ones of this chain; in bfloat16 they are given.
    """
    sizes = run.chain.page_sizes()
    found: Found = {"pages": [], "lengths": [], "page_sizes": sizes}
    if not sizes:
        return {**found, "passed": None, "tokens": []}
    tokens = run.tokens[:PROMPT] if sequence is None else sequence
    decoded: dict[int, tuple[Tensor, dict[int, Tensor]]] = {}
    for size in sizes:
        run.chain.chosen()
        decoding = Decoding(size, PROMPT + run.steps)
        steps = [run.chain.forward(tokens[:PROMPT], 0, decoding)[0]]
        for at in range(PROMPT, PROMPT + run.steps - 1):
            if len(tokens) <= at:
                words = run.own.senses.words(steps[-1].shape[1])
                tokens = torch.cat((tokens, steps[-1][-1, :words].argmax()[None]))
            steps.append(run.chain.forward(tokens[at : at + 1], at, decoding)[0])
        decoded[size] = torch.cat(steps), run.chain.chosen()
    truth, true = run.truth.routed_logits(tokens)
    own, theirs = truth, true
    if not run.is_exact:
        own, theirs = run.own.routed_logits(tokens)
    truth, own = truth[PROMPT - 1 :], own[PROMPT - 1 :]
    for size, (logits, chosen) in decoded.items():
        rows = steady(len(tokens), chosen, theirs, true)
        rows, logits = rows[PROMPT - 1 :], logits[PROMPT - 1 :]
        entry: Found = {"page_size": size}
        if run.is_exact:
            entry |= judged(
                nmse(logits, truth), 2 * run.bound(len(run.own.layers), is_cached=True)
            )
            same = logits.argmax(dim=1) == truth.argmax(dim=1)
            entry["greedy"] = bool(same.all())
            entry["passed"] = entry["passed"] and entry["greedy"]
        else:
            entry |= ratio(logits, own, truth, rows)
        found["pages"].append(entry)
    found["tokens"] = tokens.tolist()
    # both sides may be as far from float32 as is allowed: by the triangle inequality
    # they are 4 times that apart
    bound = run.bound(len(run.own.layers), is_cached=True)
    if not run.is_exact:
        bound = 4 * SHARED * found["pages"][0].get("own", math.inf)
    found["lengths"] = [_length(run, length, bound) for length in run.lengths]
    if run.is_exact:
        found |= _sampled(run, sizes)
    every = (*found.get("sampled", ()), *found["pages"], *found["lengths"])
    found["passed"] = all(entry["passed"] is not False for entry in every)
    return found


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
    run.chain.chosen()
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
    run.chain.chosen()
    ragged, _ = run.chain.forward(tokens)
    without = run.chain.chosen()
    worst = 0.0
    for size in run.chain.page_sizes():
        decoding = Decoding(size, length + 1)
        prefilled, _ = run.chain.forward(tokens[:length], 0, decoding)
        last, _ = run.chain.forward(tokens[length:], length, decoding)
        rows = steady(len(tokens), without, run.chain.chosen())
        paged = torch.cat((prefilled, last))
        worst = max(worst, order(nmse(paged[rows], ragged[rows])))
    return {"length": length, **judged(worst, bound)}
