"""Relations of top-k: rows have no order, pages no names, scores no zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from generator.ops.op_types.topk_transform.scores import score_case
from generator.ops.row_relations import backwards, taken
from generator.ops.topk_policy import PADDING, REFERENCE
from kernel_judge.comparison.compare import Comparison
from kernel_judge.comparison.policy import Policy, Question
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_CHOSEN = Bound(EXACT, "the same scores, or a power of two times these: the same set")
_Translate = Callable[[torch.Tensor], torch.Tensor]


def topk_relations(definition: Definition, policy: Policy) -> list[Relation]:
    """Return the relations of the definition's kind; `policy` compares sets."""
    k = definition.axes["k"]
    case = score_case(definition, "rows", "small", (k + 9, 3, k, 2 * k), shared=2)
    cases = [RelatedCase(case.name, case.size, case.axes, case.params)]

    def same(
        subject: RelatedCalls, inputs: Inputs, translate: _Translate
    ) -> Iterator[Claim]:
        """Claim that other inputs give the first call's sets, translated back."""

        def judge(actual: torch.Tensor, expected: torch.Tensor) -> Comparison:
            one = subject.trial.case
            question = Question(definition, one, subject.inputs, REFERENCE)
            return policy.judge(actual, expected, question)

        ids = subject.run(inputs)["indices"]
        expected = subject.whole["indices"]
        yield Claim("indices", translate(ids), expected, _CHOSEN, judge)

    def rows_reversed(subject: RelatedCalls) -> Iterator[Claim]:
        flipped = taken(definition.interface, subject.inputs, "num_rows", backwards)
        yield from same(subject, flipped, lambda ids: ids.flip(0))

    def scores_scaled(subject: RelatedCalls) -> Iterator[Claim]:
        inputs = subject.inputs
        scaled = {**inputs, "input": 0.25 * inputs["input"]}
        yield from same(subject, scaled, lambda ids: ids)

    def offsets_moved(subject: RelatedCalls) -> Iterator[Claim]:
        inputs = subject.inputs
        moved = {**inputs, "offsets": inputs["offsets"] + 1000}

        def back(ids: torch.Tensor) -> torch.Tensor:
            return torch.where(ids == PADDING, ids, ids - 1000)

        yield from same(subject, moved, back)

    def pages_renamed(subject: RelatedCalls) -> Iterator[Claim]:
        inputs, size = subject.inputs, definition.constants["page_size"]
        table = inputs["src_page_table"]
        order = Stream("pages").permutation(int(table.max()) + 1)
        renumbered = {**inputs, "src_page_table": order.argsort()[table.long()].int()}

        def back(ids: torch.Tensor) -> torch.Tensor:
            known = ids.long().clamp(0, len(order) * size - 1)
            renamed = order[known // size] * size + known % size
            return torch.where(ids == PADDING, ids, renamed.to(ids.dtype))

        yield from same(subject, renumbered, back)

    paged = "page_size" in definition.constants
    return [
        Relation("rows-reversed", rows_reversed, cases),
        Relation("scaled", scores_scaled, cases),
        Relation("pages-renamed", pages_renamed, cases)
        if paged
        else Relation("offsets", offsets_moved, cases),
    ]
