"""Relations of what is done to logits: rows and tokens are for themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "the same operations on the same numbers")
_SUMMED = Bound(
    Tolerance(rtol=1e-6, atol=8e-6, nmse=1e-11),
    "a float32 sum of exponentials in another order: 2e-6 of it, on either side",
)


def logits_relations(definition: Definition) -> list[Relation]:
    """Return the relations of one kind."""
    cases = [RelatedCase("five-rows", "small", {"batch_size": 5})]
    outputs = definition.interface.outputs
    bounds = dict.fromkeys(outputs, _SUMMED if "tokens" in outputs else _SAME)
    bounds |= {"tokens": _SAME} if "tokens" in outputs else {}
    every = [
        reordered("rows-reversed", ["batch_size"], bounds, cases),
        in_two_parts("rows-in-two", "batch_size", bounds, cases),
    ]
    if "tokens" in outputs:
        return [*every, Relation("logits-moved", _moved, cases)]
    if "bitmask" in definition.interface.inputs:
        return [
            *every,
            Relation("words-reversed", _words, cases),
            Relation("masks-complete-each-other", _both, cases),
        ]
    return [*every, reordered("tokens-reversed", ["vocab_size"], bounds, cases)]


def _moved(subject: RelatedCalls) -> Iterator[Claim]:
    """Move all tokens by 7 places: their log-probabilities go with them."""
    logits = subject.inputs["logits"]
    actual = subject.run({"logits": logits.roll(7, 1)})
    yield Claim("logprobs", actual["logprobs"], subject.whole["logprobs"], _SUMMED)
    moved = (subject.whole["tokens"] + 7) % logits.shape[1]
    yield Claim("tokens", actual["tokens"], moved, _SAME)


def _words(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn the order of whole words round, as far as the vocabulary fills them."""
    logits, words = subject.inputs["logits"], subject.inputs["bitmask"]
    full = logits.shape[1] // 32

    def turned(x: torch.Tensor) -> torch.Tensor:
        head = x[:, : 32 * full].reshape(len(x), full, 32).flip(1).flatten(1)
        return torch.cat((head, x[:, 32 * full :]), dim=1)

    other = torch.cat((words[:, :full].flip(1), words[:, full:]), dim=1)
    actual = subject.run({"logits": turned(logits), "bitmask": other})["output"]
    yield Claim("output", actual, turned(subject.whole["output"]), _SAME)


def _both(subject: RelatedCalls) -> Iterator[Claim]:
    """Ask with all bits the other way as well: each logit is left by one of the two."""
    logits, words = subject.inputs["logits"], subject.inputs["bitmask"]
    other = subject.run({"logits": logits, "bitmask": ~words})["output"]
    yield Claim("output", torch.maximum(other, subject.whole["output"]), logits, _SAME)
