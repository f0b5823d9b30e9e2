"""Relations of states of channels: sequences and channels are for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_SUMMED = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=5e-4, nmse=1e-6),
        "float32 sums of 16 products in another order, 2.5e-4 on either side where they "
        "cancel; both round once, to neighbours at most",
    ),
    "new_state": Bound(
        Tolerance(rtol=2e-6, atol=1e-5, nmse=1e-11),
        "the same float32 products and sums, maybe of other instructions",
    ),
}
_SCALED = Bound(EXACT, "a factor of -2 changes sign and exponent alone")


def state_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a step, or of a scan."""
    is_scan = "state" not in definition.interface.inputs
    axes = {"batch_size": 3, **({"seq_len": 6} if is_scan else {})}
    cases = [RelatedCase("three-sequences", "small", axes)]
    every = [
        reordered("sequences-reversed", ["batch_size"], _SUMMED, cases),
        in_two_parts("sequences-in-two", "batch_size", _SUMMED, cases),
        reordered("channels-reversed", ["dim"], _SUMMED, cases),
        reordered("states-reversed", ["dstate"], _SUMMED, cases),
        Relation("channels-scaled", _scaled, cases),
    ]
    return (
        [*every, Relation("prefix-is-the-same", _prefix, cases)] if is_scan else every
    )


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply what is added, and the states there are, by -2."""
    inputs = subject.inputs
    names = [name for name in ("x", "state") if name in inputs]
    other: dict[str, Any] = {name: -2.0 * inputs[name] for name in names}
    actual = subject.run({**inputs, **other})
    for name, value in subject.whole.items():
        yield Claim(name, actual[name], -2.0 * value, _SCALED)


def _prefix(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the first four tokens: later ones do not change what these return."""
    names = ("x", "dt", "B", "C", "z")
    inputs = subject.inputs
    few = {name: inputs[name][:, :4].contiguous() for name in names}
    actual = {"output": subject.run({**inputs, **few})["output"]}
    expected = {"output": subject.whole["output"][:, :4]}
    yield from alike(expected, actual, _SUMMED)
