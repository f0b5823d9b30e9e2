"""Relations of embeddings: tokens are independent, and shards add up."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_SAME = Bound(EXACT, "rows are copied, or multiplied by one number: the same bits")
_SUM = Bound(EXACT, "of two shards one gives zeros, and adding 0 changes nothing")


def embedding_relations(definition: Definition) -> list[Relation]:
    """Return the relations of an embedding."""
    cases = [RelatedCase("ten-tokens", "small", {"num_tokens": 10}, {"shard": 1})]
    alike = {"output": _SAME}
    if "vocab_start" not in definition.interface.inputs:
        return [
            Relation("tokens-reversed", _reversed, cases),
            Relation("rows-of-one-number", _numbered, cases),
        ]
    return [
        reordered("tokens-reversed", ["num_tokens"], alike, cases),
        in_two_parts("tokens-in-two", "num_tokens", alike, cases),
        Relation("shards-add-up", _added, cases),
    ]


def _reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Ask for the tokens in reverse: a copy of the whole table would take longer."""
    inputs = subject.inputs
    actual = subject.run({**inputs, "input_ids": inputs["input_ids"].flip(0)})["output"]
    yield Claim("output", actual, subject.whole["output"].flip(0), _SAME)


def _numbered(subject: RelatedCalls) -> Iterator[Claim]:
    """Ask for one token several times, first and last: its row comes each time."""
    inputs = subject.inputs
    tokens = inputs["input_ids"][:1].repeat(len(inputs["input_ids"]))
    actual = subject.run({**inputs, "input_ids": tokens})["output"]
    yield Claim("output", actual, subject.whole["output"][:1].expand_as(actual), _SAME)


def _added(subject: RelatedCalls) -> Iterator[Claim]:
    """Take the table as two shards: the tokens of both are those of one, folded."""
    inputs, rows = subject.inputs, subject.definition.axes["vocab_size"]
    tokens, start = inputs["input_ids"], inputs["vocab_start"]
    # every second token belongs to the second shard
    folded = start + (tokens - start) % rows
    spread = folded + rows * (torch.arange(len(tokens)) % 2)
    parts = [
        subject.run({**inputs, "input_ids": spread, "vocab_start": first})["output"]
        for first in (start, start + rows)
    ]
    expected = subject.run({**inputs, "input_ids": folded})["output"]
    yield Claim("output", parts[0] + parts[1], expected, _SUM)
