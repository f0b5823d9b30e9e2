"""Relations of lightning attention: linear in values, prompts come in parts."""

from __future__ import annotations

from collections.abc import Iterator

import torch

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

_ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=2e-6, nmse=1e-6, of_row=2e-5),
        "float32 sums in another order; both sides round once, to neighbours at most",
    ),
    "new_state": Bound(
        Tolerance(rtol=1e-5, atol=4e-5, nmse=1e-10),
        "the same float32 products and sums, maybe of other instructions",
    ),
}
_SCALED = Bound(EXACT, "a factor of -2 changes sign and exponent alone")


def state_relations(definition: Definition) -> list[Relation]:
    """Return the relations of one stage."""
    is_prefill = "seq_len" in (definition.interface.input_specs["q"].shape or ())
    axes = {"batch_size": 3, **({"seq_len": 7} if is_prefill else {})}
    cases = [RelatedCase("three-sequences", "small", axes)]
    every = [
        reordered("sequences-reversed", ["batch_size"], _ALIKE, cases),
        in_two_parts("sequences-in-two", "batch_size", _ALIKE, cases),
        reordered("heads-reversed", ["num_heads"], _ALIKE, cases),
        Relation("values-scaled", _scaled, cases),
    ]
    return [*every, Relation("prompt-in-two", _parts, cases)] if is_prefill else every


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply values and states by -2."""
    inputs = subject.inputs
    other = {name: -2.0 * inputs[name] for name in ("v", "state")}
    actual = subject.run({**inputs, **other})
    for name, value in subject.whole.items():
        yield Claim(name, actual[name], -2.0 * value, _SCALED)


def _parts(subject: RelatedCalls) -> Iterator[Claim]:
    """Give four tokens, and then the others with the states behind these."""
    inputs = subject.inputs

    def cut(part: slice) -> dict[str, torch.Tensor]:
        return {name: inputs[name][:, :, part].contiguous() for name in ("q", "k", "v")}

    first = subject.run({**inputs, **cut(slice(4))})
    later = {**inputs, **cut(slice(4, None)), "state": first["new_state"]}
    last = subject.run(later)
    output = torch.cat((first["output"], last["output"]), dim=2)
    actual = {"output": output, "new_state": last["new_state"]}
    yield from alike(subject.whole, actual, _ALIKE)
