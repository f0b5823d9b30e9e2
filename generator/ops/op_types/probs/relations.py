"""Relations of whole rows: rows and tokens have no rank, probabilities add up to 1."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import backwards, in_two_parts, reordered
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

_ALIKE = Bound(
    Tolerance(rtol=4e-6, atol=1e-30, nmse=1e-11),
    "the same float32 operations; a sum in another order, by some roundings of 2^-24",
)
_SAME = Bound(EXACT, "no operation, or a factor of 2, which changes the exponent alone")
_SUM = Bound(
    Tolerance(rtol=4e-6, atol=0.0, nmse=1e-11),
    "a float32 sum in parts, and one division of each by it",
)
_SETTINGS = {
    "temperature": (0.5, 1.0, 1.5),
    "top_k": (1, 3, 8),
    "top_p": (0.1, 0.4, 0.7),
}
_ROWS = {"temperature": ("normal", "masked", "normal")}


def row_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the definition's kind."""
    _, setting = definition.interface.inputs
    (output,) = definition.interface.outputs
    rows = _ROWS.get(setting, ("steps", "tied", "half"))
    params = {"rows": tuple(zip(rows, _SETTINGS[setting], strict=True))}
    cases = [RelatedCase("three-rows", "small", {"batch_size": 3}, params)]
    bounds = {output: _SAME if output == "masked_logits" else _ALIKE}
    relations = [
        reordered("rows-reversed", ["batch_size"], bounds, cases),
        in_two_parts("rows-in-two", "batch_size", bounds, cases),
        reordered("vocabulary-reversed", ["vocab_size"], bounds, cases, backwards),
    ]
    if output != "masked_logits":
        relations.append(Relation("rows-add-up", _add_up, cases))
    if setting == "temperature":
        relations.append(Relation("temperature-doubled", _doubled, cases))
    elif output == "masked_logits":
        relations.append(Relation("logits-doubled", _doubled, cases))
    if setting == "top_k":
        relations.append(Relation("twice-is-once", _twice, cases))
    return relations


def _add_up(subject: RelatedCalls) -> Iterator[Claim]:
    """Add up the probabilities of each row."""
    ((name, probs),) = subject.whole.items()
    total = probs.double().sum(dim=1)
    yield Claim(name, total, torch.ones_like(total), _SUM)


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double the logits, and the temperature with them."""
    inputs = {**subject.inputs, "logits": 2.0 * subject.inputs["logits"]}
    expected = dict(subject.whole)
    if "temperature" in inputs:
        inputs["temperature"] = 2.0 * inputs["temperature"]
    else:
        expected["masked_logits"] = 2.0 * expected["masked_logits"]
    yield from alike(expected, subject.run(inputs), dict.fromkeys(expected, _SAME))


def _twice(subject: RelatedCalls) -> Iterator[Claim]:
    """Keep the same of what was kept."""
    (source, _), ((name, kept),) = tuple(subject.inputs), subject.whole.items()
    again = subject.run({**subject.inputs, source: kept})
    bound = _SAME if name == "masked_logits" else _ALIKE
    yield from alike(subject.whole, again, {name: bound})
