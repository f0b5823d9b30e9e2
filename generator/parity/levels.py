"""The levels of parity that run whole sequences: stage, layer and forward.

Each returns plain values for JSON. `passed` is False where a bound is broken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from generator.parity.bounds import (
    ROW,
    SHARED,
    chain_bound,
    depth_bound,
    judged,
    nmse,
    ratio,
    stage_bound,
    worst_elements,
    worst_row,
)
from generator.parity.calls import KernelCall, Sharded, SolutionCall, StageCall
from generator.parity.capture import Capture
from generator.parity.chain import Chain, truths
from generator.parity.recipe import Stage
from generator.parity.routed import UNROUTED, Routes, too_many
from generator.parity.stage_adapters import KINDS
from generator.parity.subject import ParityModel

Tensor = torch.Tensor
Found = dict[str, Any]
ODD = 10.0


@dataclass
class DtypeRun:
    """The models that the levels of one dtype compare; truth is the float32 model.

    `steps` is the number of tokens to decode, and `lengths` are those of sequences whose
    next token is decoded.
    """

    chain: Chain
    truth: ParityModel
    own: ParityModel
    tokens: Tensor
    steps: int = 128
    lengths: Sequence[int] = (65,)

    def tower(self) -> DtypeRun | None:
        """Return the run of the model's tower, None for a model of text alone."""
        towers = self.chain.tower, self.truth.tower, self.own.tower
        chain, truth, tower = towers
        if chain is None or truth is None or tower is None:
            return None
        return DtypeRun(chain, truth, tower, self.tokens)

    @property
    def is_exact(self) -> bool:
        """Return whether this run computes in float32."""
        return self.own is self.truth

    def bound(self, layers: int, *, is_cached: bool = False) -> float:
        """Return what is allowed behind a number of layers in float32."""
        every = range(len(self.own.layers))
        kinds = {stage.kind for at in every for stage in self.chain.stages(at)}
        return depth_bound(layers, chain_bound(kinds, is_cached=is_cached))


def stage(run: DtypeRun) -> list[Found]:
    """Compare each stage on transformers' own inputs; one entry a layer and stage.

    Judging ends behind the first value of transformers that is not finite.
    """
    entries: list[Found] = []
    handed: dict[str, Tensor] = {}
    if (tower := run.tower()) is not None:
        seen = tower.own.capture(run.tokens)
        entries += _stages(tower, seen, {}, *tower.chain.begins())
        for one in tower.chain.family.final:
            handed |= truths(one, None, seen)
    at = torch.arange(len(run.tokens))
    seen = run.own.capture(run.tokens)
    entries += _stages(run, seen, handed, {"tokens": run.tokens}, at)
    flag_odd(entries)
    return entries


def _stages(
    run: DtypeRun,
    seen: Capture,
    handed: dict[str, Tensor],
    start: dict[str, Tensor],
    at: Tensor,
) -> list[Found]:
    """Return an entry for each stage of the text, or of a tower."""
    family, entries = run.chain.family, list[Found]()
    values = {**handed, **start}
    for one in (family.embed, *family.entry):
        entries.append(_stage(run, one, None, values, seen, at))
        values |= truths(one, None, seen)
    behind: dict[str, Tensor] = {}
    for layer in range(len(run.own.layers)):
        stages = run.chain.stages(layer)
        values = {**handed, "h": _entering(layer, seen)}
        for one in stages:
            values |= truths(one, layer, seen)
        for one in stages:
            entry = _stage(run, one, layer, values, seen, at)
            entries.append(entry)
            if entry.get("not_finite"):
                return entries
            entries += _roles(run, one, layer, values, at)
        behind[f"h{layer}"] = behind["h"] = seen.values(".", layer)[0]
        joining = {**handed, **behind}
        for one in family.joined(layer):
            entries.append(_stage(run, one, None, joining, seen, at))
            joining |= truths(one, None, seen)
    final, values = family.final, {**handed, **behind}
    if not run.own.is_tower:
        values["h"] = seen.values(final[0].at + "<", None)[0]
    for one in final:
        entries.append(_stage(run, one, None, values, seen, at))
        values |= truths(one, None, seen)
    return entries


def flag_odd(entries: list[Found]) -> None:
    """Refuse a stage of one layer that is much worse than the same one of the others.

    The roundings are the same in each: an error of a tenth of the bound, and over ten
    times the others' largest, is none of them.
    """
    alike: dict[tuple[str, str], list[Found]] = {}
    for entry in entries:
        alike.setdefault((entry["stage"], entry["definition"]), []).append(entry)
    for of_one in alike.values():
        worst = max(of_one, key=lambda entry: order(entry["nmse"]))
        others = [order(entry["nmse"]) for entry in of_one if entry is not worst]
        if len(others) < 2 or not worst["passed"]:
            continue
        if worst["nmse"] > max(ODD * max(others), worst["bound"] / ODD):
            worst |= {"passed": False, "odd": max(others)}


def _entering(layer: int, seen: Capture) -> Tensor:
    return seen.values(".<", layer)[0]


def _stage(
    run: DtypeRun,
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
    run: DtypeRun, one: Stage, layer: int, values: dict[str, Tensor], positions: Tensor
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
            ends = [values[part] for part in _cached(one)]
            # without RoPE the last columns of the compression are cached
            width = actual.shape[1] - ends[0].shape[1]
            if one.kind == "latent_attention":
                ends[1] = ends[1][:, -width:]
            expected = torch.cat(ends, dim=1)
        is_attention = one.kind in ("attention", "latent_attention")
        named = name if is_attention else f"{one.name}.{name}"
        entry = {"layer": layer, "stage": named, **_made_by(call)}
        yield entry | _compared(run, one, layer, actual, expected, call)


def _cached(one: Stage) -> list[str]:
    """Return which values of attention lie in its cache."""
    read = one.reads.split()
    return read[1:] if one.kind == "attention" else [read[4], read[3]]


def _made_by(call: StageCall | None) -> Found:
    """Return which definition was called, and what computed it."""
    if call is None:
        return {"definition": "", "source": ""}
    return {"definition": call.name, "source": call.source}


def _compared(
    run: DtypeRun,
    one: Stage,
    layer: int | None,
    actual: Tensor,
    expected: Tensor,
    call: StageCall | None,
) -> Found:
    kind = "biased" if run.chain.has_bias(one, layer) else one.kind
    if kind == "attention" and run.own.is_eager:
        kind = "eager_attention"
    is_kernel = isinstance(call, (KernelCall, SolutionCall))
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


def layer(run: DtypeRun) -> list[Found]:
    """Compare each layer, its stages chained, on transformers' own input."""
    entries: list[Found] = []
    handed: dict[str, Tensor] = {}
    if (tower := run.tower()) is not None:
        _, positions = tower.chain.begins()
        entries += [
            {**entry, "layer": f"{entry['layer']} of the tower"}
            for entry in _layers(tower, positions, {})
        ]
        seen = tower.own.capture(run.tokens)
        for one in tower.chain.family.final:
            handed |= truths(one, None, seen)
    return entries + _layers(run, torch.arange(len(run.tokens)), handed)


def _layers(run: DtypeRun, positions: Tensor, handed: dict[str, Tensor]) -> list[Found]:
    """Return an entry for each layer of the text, or of a tower."""
    seen = run.own.capture(run.tokens)
    exact = seen if run.is_exact else run.truth.capture(run.tokens)
    entries = []
    for index in range(len(run.own.layers)):
        h = _entering(index, seen)
        truth, routes = seen.values(".", index)[0], UNROUTED
        if not run.is_exact:
            truth, routes = _replayed(run.truth, index, h.float(), exact)
        with run.chain.routed(routes):
            chained = run.chain.layer(index, h, positions, handed=handed)
        entry: Found = {"layer": index}
        if run.is_exact:
            entry |= judged(nmse(chained, truth), run.bound(1))
        else:
            theirs, _ = _replayed(run.own, index, h, seen, routes)
            entry |= ratio(chained, theirs, truth)
        entries.append(entry)
    return entries


def _replayed(
    subject: ParityModel, index: int, h: Tensor, seen: Capture, exact: Routes = UNROUTED
) -> tuple[Tensor, dict[int, Tensor]]:
    """Return what a layer of transformers makes of an input, and its experts."""
    arguments = dict(seen.arguments[index])
    args = arguments.pop("args")
    names = ("hidden_states", "hidden_state")
    named = [arguments.pop(name) for name in names if name in arguments]
    shape = [*named, *args][0].shape
    with subject.attending(), subject.choosing(exact) as chosen:
        returned = subject.layers[index](h.reshape(shape), *args[1:], **arguments)
    first = returned[0] if isinstance(returned, tuple) else returned
    return first.reshape(len(h), -1), chosen


def forward(run: DtypeRun) -> Found:
    """Compare logits, top-1 and the residual stream behind every layer."""
    truth = run.truth.capture(run.tokens)
    routes = UNROUTED if run.is_exact else truth.choices
    own = truth if run.is_exact else run.own.capture(run.tokens, exact=routes)
    with run.chain.routed(routes):
        logits, stream = run.chain.forward(run.tokens)
    expected = truth.logits
    theirs = own.logits
    report: Found = {"growth": [], "top1": _top1(logits, theirs)}
    for index, h in enumerate(stream):
        exact = truth.values(".", index)[0]
        step: Found = {"layer": index, "nmse": nmse(h, exact)}
        if not run.is_exact:
            step["own"] = nmse(own.values(".", index)[0], exact)
        report["growth"].append(step)
    if run.is_exact:
        report |= judged(nmse(logits, expected), run.bound(len(stream)))
    else:
        report |= ratio(logits, theirs, expected)
    report["flags"] = list(
        _flags(report["growth"], run.bound(0) if run.is_exact else 0.0)
    )
    if routes and (why := too_many(run.chain.flips, run.own.flips)):
        report["flags"].append(why)
    report["flips"] = _flipped(logits, theirs, expected)
    if report["flags"] or report["flips"]:
        report["passed"] = False
    return report


def _top1(logits: Tensor, expected: Tensor) -> float:
    same = logits.argmax(dim=1) == expected.argmax(dim=1)
    return float(same.double().mean())


def _flipped(logits: Tensor, theirs: Tensor, truth: Tensor) -> int:
    """Count positions whose top-1 differs though truth's margin is clear.

    Clear is more than 6 times the RMS error of either side: six deviations.
    """
    top = truth.topk(2, dim=1).values
    margin = (top[:, 0] - top[:, 1]).double()
    errors = [
        (side - truth).double().square().mean().sqrt() for side in (logits, theirs)
    ]
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
        rounding = after.get("own", 0.0) * SHARED
        if after["nmse"] > max(explained, floor, rounding):
            yield f"layer {after['layer']}: the error grows faster than depth explains"
