"""Relations of the largest logit: rows stand for themselves, values may be moved."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "each row has one first largest logit")
_MOVED = Bound(EXACT, "the largest logit moves as far as its row")


def argmax_relations(definition: Definition) -> list[Relation]:
    """Return the relations of greedy sampling."""
    params = {"kinds": ("normal", "last", "negative")}
    cases = [RelatedCase("five-rows", "small", {"batch_size": 5}, params)]
    alike = {"tokens": _SAME}
    return [
        reordered("rows-reversed", ["batch_size"], alike, cases),
        in_two_parts("rows-in-two", "batch_size", alike, cases),
        Relation("tokens-moved", _moved, cases),
        Relation("logits-halved", _halved, cases),
        Relation("largest-twice", _twice, cases),
    ]


def _moved(subject: RelatedCalls) -> Iterator[Claim]:
    """Move all tokens by 7, those at the end to the beginning."""
    logits = subject.inputs["logits"]
    actual = subject.run({"logits": logits.roll(7, 1)})["tokens"]
    expected = (subject.whole["tokens"] + 7) % logits.shape[1]
    yield Claim("tokens", actual, expected, _MOVED)


def _halved(subject: RelatedCalls) -> Iterator[Claim]:
    """Halve all logits: the order stays."""
    halved = subject.run({"logits": subject.inputs["logits"] / 2.0})["tokens"]
    yield Claim("tokens", halved, subject.whole["tokens"], _SAME)


def _twice(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the largest logit of each row to its last token as well: the first stays."""
    logits, tokens = subject.inputs["logits"].clone(), subject.whole["tokens"]
    logits[:, -1] = logits.gather(1, tokens[:, None])[:, 0]
    again = subject.run({"logits": logits})["tokens"]
    yield Claim("tokens", again, torch.as_tensor(tokens), _SAME)
