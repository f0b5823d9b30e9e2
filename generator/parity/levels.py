"""The levels of parity but training: stage, layer, forward and decode.

Each returns plain values for JSON. `passed` is False where a bound is broken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from generator.parity.bounds import (
    ROW,
    SHARED,
    chain_bound,
    depth_bound,
    median_row,
    nmse,
    stage_bound,
    worst_elements,
    worst_row,
)
from generator.parity.calls import Call, Kernel, Sharded, Solution
from generator.parity.chain import Chain, Decoding, truths
from generator.parity.kinds import KINDS
from generator.parity.recipe import Stage
from generator.parity.subject import Capture, Subject

Tensor = torch.Tensor
Found = dict[str, Any]
LENGTHS = (1, 31, 32, 33, 63, 64, 65)
PROMPT = 64


@dataclass
class Run:
    """Hold what the levels of one dtype work on: truth is the float32 model.

    `steps` is the number of tokens to decode.
    """

    chain: Chain
    truth: Subject
    own: Subject
    tokens: Tensor
    steps: int = 128

    @property
    def is_exact(self) -> bool:
        """Return whether this run computes in float32."""
        return self.own is self.truth

    def bound(self, layers: int, *, is_cached: bool = False) -> float:
        """Return what is allowed behind a number of layers in float32."""
        every = range(len(self.own.layers))
        kinds = {stage.kind for at in every for stage in self.chain.stages(at)}
        return depth_bound(layers, chain_bound(kinds, is_cached=is_cached))


def stage(run: Run) -> list[Found]:
    """Compare each stage on transformers' own inputs; one entry a layer and stage.

    Judging ends behind the first value of transformers that is not finite.
    """
    seen = run.own.capture(run.tokens)
    at = torch.arange(len(run.tokens))
    found = [
        _stage(run, run.chain.family.embed, None, {"tokens": run.tokens}, seen, at)
    ]
    for layer in range(len(run.own.layers)):
        stages = run.chain.stages(layer)
        values = {"h": _entering(layer, seen)}
        for one in stages:
            values |= truths(one, layer, seen)
        for one in stages:
            entry = _stage(run, one, layer, values, seen, at)
            found.append(entry)
            if entry.get("not_finite"):
                return found
            found += _roles(run, one, layer, values, at)
    final = run.chain.family.final
    values = {"h": seen.values(final[0].at + "<", None)[0]}
    for one in final:
        found.append(_stage(run, one, None, values, seen, at))
        values |= truths(one, None, seen)
    return found


def _entering(layer: int, seen: Capture) -> Tensor:
    return seen.values(".<", layer)[0]


def _stage(
    run: Run,
    one: Stage,
    layer: int | None,
    values: dict[str, Tensor],
    seen: Capture,
    positions: Tensor,
) -> Found:
    entry: Found = {"layer": layer, "stage": one.name}
    expected = truths(one, layer, seen)
    if not all(bool(v.isfinite().all()) for v in expected.values()):
        return {**entry, "not_finite": True, "passed": False}
    calls = run.chain.calls_of(one, layer)
    call = calls.get("", calls.get("ragged"))
    written = run.chain.run(one, layer, values, positions)
    entry |= _made_by(call)
    errors = {name: nmse(written[name], expected[name]) for name in expected}
    name = max(errors, key=lambda n: order(errors[n]))
    return (
        entry
        | _compared(run, one, layer, written[name], expected[name], call)
        | {"value": name}
    )


def _roles(
    run: Run, one: Stage, layer: int, values: dict[str, Tensor], positions: Tensor
) -> Iterator[Found]:
    """Yield what the definitions of a paged cache make of the same inputs."""
    read = [values[name] for name in one.reads.split()]
    for name, call in run.chain.calls_of(one, layer).items():
        if name in ("", "ragged"):
            continue
        base, _, shares = name.partition("/")
        role, _, size = base.partition("@")
        site = run.chain.site(one, layer, positions)
        # by itself: what is wrong with another one is not this one's
        site.calls = {base: Sharded(call, int(shares)) if shares else call}
        site.role = "" if role == "ragged" else role
        if size:
            site.page_size, site.capacity = int(size), len(positions)
        actual = run.chain.kept(KINDS[one.kind](site, *read)[0])
        expected = values[one.writes]
        if role == "append":
            expected = torch.cat([values[part] for part in _cached(one)], dim=1)
        named = name if one.needs == "attention" else f"{one.name}.{name}"
        entry = {"layer": layer, "stage": named, **_made_by(call)}
        yield entry | _compared(run, one, layer, actual, expected, call)


def _cached(one: Stage) -> list[str]:
    """Return which values of attention lie in its cache."""
    read = one.reads.split()
    return read[1:] if one.kind == "attention" else [read[4], read[3]]


def _made_by(call: Call | None) -> Found:
    """Return which definition was called, and what computed it."""
    if call is None:
        return {"definition": "", "source": ""}
    return {"definition": call.name, "source": call.source}


def _compared(
    run: Run,
    one: Stage,
    layer: int | None,
    actual: Tensor,
    expected: Tensor,
    call: Call | None,
) -> Found:
    kind = "biased" if run.chain.has_bias(one, layer) else one.kind
    if kind == "attention" and run.own.is_eager:
        kind = "eager_attention"
    is_kernel = isinstance(call, (Kernel, Solution))
    bound = stage_bound(kind, run.own.model.dtype, is_kernel=is_kernel)
    error = nmse(actual, expected)
    row, of_row = worst_row(actual, expected)
    passed = error <= bound and of_row <= ROW * bound
    entry: Found = {"nmse": error, "bound": bound, "passed": passed}
    if not passed:
        worst = worst_elements(actual, expected)
        entry |= {"row": row, "row_error": of_row, "worst": worst}
    return entry


def order(error: float) -> float:
    """Return an error that can be compared: NaN is the largest."""
    return math.inf if math.isnan(error) else error


def layer(run: Run) -> list[Found]:
    """Compare each layer, its stages chained, on transformers' own input."""
    seen = run.own.capture(run.tokens)
    exact = seen if run.is_exact else run.truth.capture(run.tokens)
    positions = torch.arange(len(run.tokens))
    found = []
    for index in range(len(run.own.layers)):
        h = _entering(index, seen)
        run.chain.chosen()
        chained = run.chain.layer(index, h, positions)
        entry: Found = {"layer": index}
        if run.is_exact:
            own = seen.values(".", index)[0]
            entry |= _judged(nmse(chained, own), run.bound(1))
        else:
            own, theirs = _replayed(run.own, index, h, seen)
            truth, true = _replayed(run.truth, index, h.float(), exact)
            rows = steady(len(h), run.chain.chosen(), theirs, true)
            entry |= _ratio(chained, own, truth, rows)
        found.append(entry)
    return found


def _replayed(
    subject: Subject, index: int, h: Tensor, seen: Capture
) -> tuple[Tensor, dict[int, Tensor]]:
    """Return what a layer of transformers makes of an input, and its experts."""
    arguments = dict(seen.arguments[index])
    args = arguments.pop("args")
    arguments.pop("hidden_states", None)
    with subject.attending(), subject.choosing() as chosen:
        returned = subject.layers[index](h[None], *args[1:], **arguments)
    first = returned[0] if isinstance(returned, tuple) else returned
    return first.reshape(len(h), -1), chosen


def steady(count: int, *choices: dict[int, Tensor]) -> Tensor:
    """Return which of `count` tokens went to the same experts on all sides.

    A choice between two experts that are all but equal flips by rounding, and another
    expert computes something else: such a token says nothing about a kernel.
    """
    kept = torch.ones(count, dtype=torch.bool)
    for layer in choices[0]:
        first, *others = (side[layer] for side in choices)
        for other in others:
            kept &= (first == other).all(dim=1)
    return kept


def _judged(error: float, bound: float) -> Found:
    return {"nmse": error, "bound": bound, "passed": error <= bound}


def _ratio(actual: Tensor, own: Tensor, truth: Tensor, rows: Tensor) -> Found:
    """Judge an error in bfloat16 by transformers' own, both against float32.

    Only `rows` count; where there are none, nothing is judged. Where some are left out
    the median row counts: attention carries what a token that flipped has into others.
    """
    if not bool(rows.any()):
        return {"nmse": 0.0, "bound": SHARED, "passed": None, "judged": 0}
    measure = nmse if bool(rows.all()) else median_row
    error, theirs = (measure(side[rows], truth[rows]) for side in (actual, own))
    ratio = error / theirs if theirs else (0.0 if error == 0 else math.inf)
    return {
        "nmse": error,
        "own": theirs,
        "ratio": ratio,
        "bound": SHARED,
        "passed": ratio <= SHARED,
        "judged": int(rows.sum()),
    }


def forward(run: Run) -> Found:
    """Compare logits, top-1 and the residual stream behind every layer."""
    truth = run.truth.capture(run.tokens)
    own = truth if run.is_exact else run.own.capture(run.tokens)
    run.chain.chosen()
    logits, stream = run.chain.forward(run.tokens)
    expected = truth.values("lm_head", None)[0]
    theirs = own.values("lm_head", None)[0]
    rows = steady(len(logits), run.chain.chosen(), own.choices, truth.choices)
    found: Found = {"growth": [], "top1": _top1(logits, theirs)}
    for index, h in enumerate(stream):
        exact = truth.values(".", index)[0]
        step: Found = {"layer": index, "nmse": nmse(h[rows], exact[rows])}
        if not run.is_exact:
            step["own"] = nmse(own.values(".", index)[0][rows], exact[rows])
        found["growth"].append(step)
    if run.is_exact:
        found |= _judged(nmse(logits, expected), run.bound(len(stream)))
    else:
        found |= _ratio(logits, theirs, expected, rows)
    found["flags"] = list(
        _flags(found["growth"], run.bound(0) if run.is_exact else 0.0)
    )
    found["flips"] = _flipped(logits[rows], theirs[rows], expected[rows])
    if found["flags"] or found["flips"]:
        found["passed"] = False
    return found


def _top1(logits: Tensor, expected: Tensor) -> float:
    same = logits.argmax(dim=1) == expected.argmax(dim=1)
    return float(same.double().mean())


def _flipped(logits: Tensor, own: Tensor, truth: Tensor) -> int:
    """Count positions whose top-1 differs though truth's margin is clear.

    Clear is more than 6 times the RMS error of either side: six deviations.
    """
    top = truth.topk(2, dim=1).values
    margin = (top[:, 0] - top[:, 1]).double()
    errors = [(side - truth).double().square().mean().sqrt() for side in (logits, own)]
    clear = margin > 6 * float(max(errors))
    return int((clear & (logits.argmax(dim=1) != truth.argmax(dim=1))).sum())


def _flags(growth: list[Found], floor: float) -> Iterator[str]:
    """Yield what the growth of errors over depth says against a model."""
    for step in growth:
        if not step["nmse"] <= 1:
            yield f"layer {step['layer']}: the error is as large as the values"
            return
    for before, after in pairwise(growth):
        layers = after["layer"] + 1
        # linear growth adds one layer's share; four shares is more than depth explains
        explained = before["nmse"] * (layers + 3) / (layers - 1)
        own = after.get("own", 0.0) * SHARED
        if after["nmse"] > max(explained, floor, own):
            yield f"layer {after['layer']}: the error grows faster than depth explains"


def decode(run: Run, sequence: Tensor | None = None) -> Found:
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
                tokens = torch.cat((tokens, steps[-1][-1].argmax()[None]))
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
            entry |= _judged(
                nmse(logits, truth), 2 * run.bound(len(run.own.layers), is_cached=True)
            )
            same = logits.argmax(dim=1) == truth.argmax(dim=1)
            entry["greedy"] = bool(same.all())
            entry["passed"] = entry["passed"] and entry["greedy"]
        else:
            entry |= _ratio(logits, own, truth, rows)
        found["pages"].append(entry)
    found["tokens"] = tokens.tolist()
    # both sides may be as far from float32 as is allowed: by the triangle inequality
    # they are 4 times that apart
    bound = run.bound(len(run.own.layers), is_cached=True)
    if not run.is_exact:
        bound = 4 * SHARED * found["pages"][0].get("own", math.inf)
    found["lengths"] = [_length(run, length, bound) for length in LENGTHS]
    every = (*found["pages"], *found["lengths"])
    found["passed"] = all(entry["passed"] is not False for entry in every)
    return found


def _length(run: Run, length: int, bound: float) -> Found:
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
    return {"length": length, **_judged(worst, bound)}
