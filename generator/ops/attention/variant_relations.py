"""Relations of windows, soft caps, sinks and attention without a mask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from generator.ops.attention.caches import is_head_major, stored_scales
from generator.ops.attention.oracle import visible_keys
from generator.ops.attention.related import ALIKE, MERGED, batch_of, peer, run_on
from generator.ops.attention.sequences import is_prefill
from generator.ops.attention.variant import (
    Variant,
    has_mask,
    has_sinks,
    variant_of,
)
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import (
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)


def variant_relations(
    definition: Definition, cases: Sequence[RelatedCase]
) -> list[Relation]:
    """Return the relations of what a definition's variant adds to attention.

    Some need the plain definition of the same geometry in the test file.
    """
    variant = variant_of(definition)
    plain = peer(definition, prefill=is_prefill(definition), plain=True)
    relations = []
    if variant.window_left >= 0:
        relations.append(Relation("window-is-all-that-counts", _only_window, cases))
        full = peer(definition, prefill=is_prefill(definition), windowless=True)
        relations.append(Relation("long-window-is-none", _within_window, cases, full))
    if variant.soft_cap and variant.window_left < 0:
        relations.append(Relation("cap-of-small-logits", _small_logits, cases, plain))
    if has_sinks(definition):
        relations.append(Relation("sink-takes-its-share", _sink_share, cases))
        relations.append(Relation("sinks-of-one-head", _one_sink, cases))
        if variant.window_left < 0:
            bare = _sinkless(definition)
            relations.append(Relation("no-sink-is-plain", _without_sinks, cases, bare))
    if has_mask(definition):
        for name, causal in (("tril-is-causal", True), ("ones-is-no-mask", False)):
            other = peer(definition, prefill=True, plain=True, causal=causal)
            relations.append(
                Relation(name, partial(_by_position, causal), cases, other)
            )
    if is_head_major(definition):
        relations.append(Relation("hnd-is-nhd", _same, cases, plain))
    if stored_scales(definition):
        relations.append(Relation("scales-doubled", _scales_doubled, cases))
        if "q_scale" not in definition.interface.inputs:
            relations.append(Relation("dequantised-cache", _dequantised, cases, plain))
    if not variant.causal:
        relations.append(Relation("keys-permuted", _keys_permuted, cases))
    return relations


def _only_window(subject: RelatedCalls) -> Iterator[Claim]:
    """Drop the keys that stand before the window of a sequence's first query."""
    left = variant_of(subject.definition).window_left
    batch = [
        one.part(slice(None), slice(max(one.kv_len - one.q_len - left, 0), None))
        for one in batch_of(subject)
    ]
    yield from alike(subject.whole, run_on(subject.run, subject, batch, "cut"), ALIKE)


def _within_window(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition without a window on keys that the window covers."""
    length = variant_of(subject.definition).window_left + 1
    short = [
        one.part(slice(-length, None), slice(-length, None))
        for one in batch_of(subject)
    ]
    expected = run_on(subject.other(), subject, short, "short")
    actual = run_on(subject.run, subject, short, "short")
    yield from alike(expected, actual, ALIKE)


def _small_logits(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition without a cap on logits of which the cap takes nothing.

    A logit l becomes l·(1 - (l / cap)² / 3): at 2^-10 of the usual scale less than
    float32 holds.
    """
    batch = batch_of(subject)
    scale = subject.inputs["sm_scale"] / 1024
    expected = run_on(subject.other(), subject, batch, "small", sm_scale=scale)
    actual = run_on(subject.run, subject, batch, "small", sm_scale=scale)
    yield from alike(expected, actual, ALIKE)


def _sink_share(subject: RelatedCalls) -> Iterator[Claim]:
    """Compute the sinks' effect from the answer without them.

    With p the LSE without a sink, in natural units, the output shrinks by the
    sigmoid of p - sink, and the LSE becomes log(exp(p) + exp(sink)).
    """
    sinks = subject.inputs["sinks"].double()
    without = run_on(
        subject.run,
        subject,
        batch_of(subject),
        "without",
        sinks=subject.inputs["sinks"] - math.inf,
    )
    lse = without["lse"].double() * math.log(2.0)
    expected = {
        "output": without["output"].double() * torch.sigmoid(lse - sinks)[..., None],
        "lse": torch.logaddexp(lse, sinks.expand_as(lse)) / math.log(2.0),
    }
    with_sinks = run_on(subject.run, subject, batch_of(subject), "with")
    yield from alike(expected, with_sinks, MERGED)


def _sinkless(definition: Definition) -> Callable[[Definition], bool]:
    """Return a filter for plain definitions, which may have fewer heads a KV head."""

    def accepts(other: Definition) -> bool:
        heads = other.axes["num_qo_heads"]
        same = peer(
            definition,
            prefill=is_prefill(definition),
            plain=True,
            num_qo_heads=heads,
        )
        return heads <= definition.axes["num_qo_heads"] and same(other)

    return accepts


def _without_sinks(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition without sinks, of some of the heads, for sinks of -infinity."""
    other, axes = subject.other(), subject.definition.axes
    kv_heads, batch = axes["num_kv_heads"], batch_of(subject)
    heads = torch.arange(axes["num_qo_heads"]).view(kv_heads, -1)
    heads = heads[:, : other.definition.axes["num_qo_heads"] // kv_heads].flatten()
    some = [
        type(one)({n: q[:, heads] for n, q in one.queries.items()}, one.tokens)
        for one in batch
    ]
    expected = run_on(other, subject, some, "plain")
    sinks = subject.inputs["sinks"] - math.inf
    actual = run_on(subject.run, subject, batch, "plain", sinks=sinks)
    yield from alike(expected, {n: v[:, heads] for n, v in actual.items()}, ALIKE)


def _one_sink(subject: RelatedCalls) -> Iterator[Claim]:
    """Change the sink of the last head: the other heads stay as they are."""
    sinks = subject.inputs["sinks"].clone()
    sinks[-1] += 3.0
    batch = batch_of(subject)
    changed = run_on(subject.run, subject, batch, "one", sinks=sinks)
    before = run_on(subject.run, subject, batch, "one")
    yield from alike(
        {name: value[:, :-1] for name, value in before.items()},
        {name: value[:, :-1] for name, value in changed.items()},
        ALIKE,
    )


def _by_position(causal: bool, subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition without a mask on the same sequences."""
    batch = [
        type(one)(
            one.queries,
            one.tokens,
            visible_keys(one.q_len, one.kv_len, Variant(causal=causal)),
        )
        for one in batch_of(subject)
    ]
    expected = run_on(subject.other(), subject, batch, "by position")
    yield from alike(expected, run_on(subject.run, subject, batch, "mask"), ALIKE)


def _same(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition of the other layout on the same sequences."""
    expected = run_on(subject.other(), subject, batch_of(subject), "other layout")
    yield from alike(expected, subject.whole, ALIKE)


def _scales_doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double the scales and halve the cache, which is exact but for the least values."""
    names = [name for name in stored_scales(subject.definition) if name != "q_scale"]
    scales = {name: 2.0 * subject.inputs[name] for name in names}
    # at least 2^-5, so that a half is no subnormal number of e4m3 with fewer bits
    coarse = [
        type(one)(one.queries, {n: _coarse(v) for n, v in one.tokens.items()})
        for one in batch_of(subject)
    ]
    halved = [
        type(one)(
            one.queries, {n: (v.float() / 2).to(v.dtype) for n, v in one.tokens.items()}
        )
        for one in coarse
    ]
    expected = run_on(subject.run, subject, coarse, "scaled")
    actual = run_on(subject.run, subject, halved, "scaled", **scales)
    yield from alike(expected, actual, ALIKE)


def _coarse(values: torch.Tensor) -> torch.Tensor:
    wide = values.float()
    return wide.where(wide.abs() >= 2.0**-5, 0.0).to(values.dtype)


def _dequantised(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition of a bfloat16 cache on what a scale of 1/2 makes of codes."""
    batch = batch_of(subject)
    wide = [
        type(one)(
            one.queries, {n: (v.float() / 2).bfloat16() for n, v in one.tokens.items()}
        )
        for one in batch
    ]
    expected = run_on(subject.other(), subject, wide, "wide")
    halves = dict.fromkeys(stored_scales(subject.definition), 0.5)
    actual = run_on(subject.run, subject, batch, "wide", **halves)
    yield from alike(expected, actual, ALIKE)


def _keys_permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Put the keys of each sequence in another order, their values with them."""
    stream = Stream(subject.trial.case.name, "keys permuted")
    batch = []
    for i, one in enumerate(batch_of(subject)):
        order = stream.child(str(i)).permutation(one.kv_len)
        tokens = {name: value[order] for name, value in one.tokens.items()}
        mask = None if one.mask is None else one.mask[:, order]
        batch.append(type(one)(one.queries, tokens, mask))
    actual = run_on(subject.run, subject, batch, "permuted")
    yield from alike(subject.whole, actual, ALIKE)
