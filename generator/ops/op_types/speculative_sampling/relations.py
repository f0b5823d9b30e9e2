"""Relations of chains: names of tokens and places of rows don't matter.

And what speculative sampling is for: a draft that was drawn from its law, followed by
acceptance or a new draw, follows the target's law, whatever the draft's was.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.chi_squared import SIGNIFICANCE, goodness, homogeneity
from generator.ops.op_types.sampling.law import distinct_rows
from generator.ops.op_types.speculative_sampling.chains import chain_case
from generator.ops.op_types.speculative_sampling.law import outcomes
from kernel_judge.comparison.compare import FAILED, PASSED, Comparison
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs, MakeInputs
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_OUTPUT = "accepted_token_ids"
_SAME_LAW = Bound(
    EXACT,
    "draws of one law: by chance alone one run in a million fails",
)
# of 64 rows how many have each draft, which is its probability
_DRAWN = (32, 16, 8, 4, 2, 2)
_CALLS = 4


def chain_relations(definition: Definition, make_inputs: MakeInputs) -> list[Relation]:
    """Return the relations of a chain's sampler, on rows of the op's inputs."""
    chains = (
        ((("steps", 0, "half"), ("half", 9, "steps")), "zeros", 24),
        ((("half", 9, "steps"), ("steps", 2, "steps")), "half", 24),
    )
    kinds = chain_case("two-kinds", "small", 1, chains)
    drawn = Case(
        "drafts-drawn",
        "small",
        {"batch_size": 64, "num_speculative": 1, "num_speculative_plus_1": 2},
    )

    def by_kind(definition: Definition, case: Case, stream: Stream) -> Inputs:
        """Sort the rows by kind, so that an influence of the place shows."""
        inputs = make_inputs(definition, case, stream)
        order = distinct_rows(inputs)[1].argsort(stable=True)
        return {name: value[order] for name, value in inputs.items()}

    related = [
        RelatedCase(c.name, c.size, c.axes, c.params, maker)
        for c, maker in ((kinds, by_kind), (drawn, _drafts_drawn))
    ]
    return [
        Relation("vocabulary-permuted", _vocabulary_permuted, related[:1]),
        Relation("rows-reversed", _rows_reversed, related[:1]),
        Relation("first-token-is-the-targets", _first_token, related[1:]),
    ]


def _drafts_drawn(definition: Definition, case: Case, stream: Stream) -> Inputs:
    """Return rows of one chain, whose drafts have the counts of their law exactly.

    draft_probs float32 [64, 1, vocab_size] is 1/2, 1/4, 1/8, 1/16, 1/32, 1/32 of six
    tokens; target_probs [64, 2, vocab_size] has 8 tokens, three of these among them.
    """
    size = definition.axes["vocab_size"]
    order = stream.permutation(size)
    draft, target = torch.zeros(size), torch.zeros(size)
    counts = torch.tensor(_DRAWN)
    draft[order[: len(counts)]] = counts / float(counts.sum())
    target[order[3:11]] = torch.tensor([6.0, 3, 2, 1, 1, 1, 1, 1]) / 16.0
    target[order[0]], target[order[3]] = 0.25, 0.125
    tokens = order[: len(counts)].repeat_interleave(counts).int()
    tokens = tokens[stream.child("rows").permutation(len(tokens))]
    rows = len(tokens)
    return {
        "draft_probs": draft.expand(rows, 1, size).contiguous(),
        "draft_token_ids": tokens[:, None].contiguous(),
        "target_probs": target.expand(rows, 2, size).contiguous(),
    }


def _vocabulary_permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Renumber the tokens, and translate the draws back."""
    inputs = subject.inputs
    order = Stream("vocabulary").permutation(inputs["draft_probs"].shape[2])
    renumbered = {
        "draft_probs": inputs["draft_probs"][:, :, order],
        "draft_token_ids": order.argsort()[inputs["draft_token_ids"].long()].int(),
        "target_probs": inputs["target_probs"][:, :, order],
    }
    drawn = subject.run(renumbered)[_OUTPUT]
    inside = (drawn >= 0) & (drawn < len(order))
    named = order[(drawn * inside).long()].to(drawn.dtype)
    yield _same_law(subject, torch.where(inside, named, drawn))


def _rows_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    flipped: Inputs = {name: value.flip(0) for name, value in subject.inputs.items()}
    yield _same_law(subject, subject.run(flipped)[_OUTPUT].flip(0))


def _same_law(subject: RelatedCalls, drawn: torch.Tensor) -> Claim:
    """Claim that draws, int32 [batch_size, drafts + 1], follow the first call's laws."""
    inputs = subject.inputs
    size = inputs["draft_probs"].shape[2]
    kind = distinct_rows(inputs)[1]

    def judge(actual: torch.Tensor, expected: torch.Tensor) -> Comparison:
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return Comparison(FAILED, (f"{list(actual.shape)}, {actual.dtype}",))
        sides = [
            outcomes(side, inputs["draft_token_ids"], size)
            for side in (actual, expected)
        ]
        scores = [
            homogeneity(*_counts([side[kind == number] for side in sides]))
            for number in range(int(kind.max()) + 1)
        ]
        return _verdict([score.p_value for score in scores])

    return Claim(_OUTPUT, drawn, subject.whole[_OUTPUT], _SAME_LAW, judge)


def _counts(
    sides: list[torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return how often each outcome came on two sides, and on both together."""
    kinds, place = torch.unique(torch.cat(sides), return_inverse=True)
    first, second = (
        torch.bincount(part, minlength=len(kinds))
        for part in place.split([len(side) for side in sides])
    )
    return first, second, (first + second).double()


def _first_token(subject: RelatedCalls) -> Iterator[Claim]:
    """Draw first tokens behind drafts of their law, some calls of them."""
    calls = [subject.whole, *(subject.run(subject.inputs) for _ in range(_CALLS - 1))]
    drawn = torch.cat([call[_OUTPUT][:, 0] for call in calls]).long()
    target = subject.inputs["target_probs"][0, 0]

    def judge(actual: torch.Tensor, expected: torch.Tensor) -> Comparison:
        possible = expected.nonzero().flatten()
        foreign = actual[~torch.isin(actual, possible)]
        if len(foreign):
            text = f"token {int(foreign[0])} is none of the target's"
            return Comparison(FAILED, (text,))
        counts = torch.bincount(actual, minlength=len(expected))[possible]
        return _verdict([goodness(counts, expected[possible].double()).p_value])

    yield Claim(_OUTPUT, drawn, target, _SAME_LAW, judge)


def _verdict(values: list[float]) -> Comparison:
    findings = [
        f"law {number}: p-value {value:.2g}, allowed {SIGNIFICANCE / len(values):.2g}"
        for number, value in enumerate(values)
        if not value * len(values) > SIGNIFICANCE
    ]
    verdict = FAILED if findings else PASSED
    return Comparison(verdict, tuple(findings), figures={"p_value": min(values)})
