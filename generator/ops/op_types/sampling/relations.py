"""Relations of sampling: permuted tokens or rows permute the law of the draws.

Two calls draw different samples. A call draws each kind of row many times, and χ² tests
of homogeneity compare both calls, at a significance of 1e-6 for all tests together.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.chi_squared import SIGNIFICANCE, homogeneity
from generator.ops.op_types.sampling.cases import kind_of
from generator.ops.op_types.sampling.law import distinct_rows
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

# (distribution, k, p, rows): the first kind keeps one token, the others two, of 256 and
# 192, or 512 and 256, of 1024. Distributions have separate tokens, so that 24 draws of
# each call show whether both calls keep the same
_ROWS = {
    "top_k": (
        ("steps", 1, 1.0, 2),
        ("steps", 2, 1.0, 24),
        ("zeros", 2, 1.0, 24),
    ),
    "top_p": (
        ("steps", 0, 0.1, 2),
        ("steps", 0, 0.4, 24),
        ("zeros", 0, 0.6, 24),
    ),
    "top_k_top_p": (
        ("steps", 1, 0.9, 2),
        ("steps", 5, 0.5, 24),
        ("zeros", 3, 0.6, 24),
    ),
    "min_p": (
        ("steps", 0, 1.0, 2),
        ("steps", 0, 0.75, 24),
        ("zeros", 0, 0.5, 24),
    ),
    "": (
        ("certain", 0, 1.0, 2),
        ("zeros", 0, 1.0, 24),
        ("half", 0, 1.0, 24),
    ),
}
_SAME_LAW = Bound(
    EXACT,
    "both samples follow one law if names don't matter: by chance alone one run in a "
    "million fails",
)


def sampling_relations(
    definition: Definition, make_inputs: MakeInputs
) -> list[Relation]:
    """Return the relations of a sampler, on rows of the op's inputs."""

    def by_kind(definition: Definition, case: Case, stream: Stream) -> Inputs:
        """Sort the rows by kind, so that an influence of the position shows."""
        inputs = make_inputs(definition, case, stream)
        order = distinct_rows(inputs)[1].argsort(stable=True)
        return {name: value[order] for name, value in inputs.items()}

    rows = _ROWS[kind_of(definition)]
    axes = {"batch_size": sum(count for *_, count in rows)}
    cases = [RelatedCase("few-kinds", "small", axes, {"rows": rows}, by_kind)]
    return [
        Relation("vocabulary-permuted", _vocabulary_permuted, cases),
        Relation("rows-reversed", _rows_reversed, cases),
    ]


def _vocabulary_permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Renumber the tokens, and translate the samples back."""
    inputs = subject.inputs
    name = next(iter(inputs))
    order = Stream("vocabulary").permutation(inputs[name].shape[1])
    drawn = subject.run({**inputs, name: inputs[name][:, order]})["samples"]
    # keep samples outside of the vocabulary
    inside = (drawn >= 0) & (drawn < len(order))
    yield _same_law(subject, torch.where(inside, order[drawn * inside], drawn))


def _rows_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    flipped: Inputs = {name: value.flip(0) for name, value in subject.inputs.items()}
    yield _same_law(subject, subject.run(flipped)["samples"].flip(0))


def _same_law(subject: RelatedCalls, drawn: torch.Tensor) -> Claim:
    """Claim that draws, int64 [batch_size], follow the laws of the first call."""
    inputs = subject.inputs

    def judge(actual: torch.Tensor, expected: torch.Tensor) -> Comparison:
        return same_law(inputs, actual, expected)

    expected = subject.whole["samples"]
    return Claim("samples", drawn, expected, _SAME_LAW, judge)


def same_law(
    inputs: Inputs, actual: torch.Tensor, expected: torch.Tensor
) -> Comparison:
    """Compare two samples of a batch, int64 [batch_size] each, by kind of row.

    Only tokens drawn by at least one call have bins.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return Comparison(
            FAILED, (f"{list(actual.shape)}, not {list(expected.shape)}",)
        )
    first, kind = distinct_rows(inputs)
    findings, smallest = [], 1.0
    for number in range(len(first)):
        draws = [side[kind == number] for side in (actual, expected)]
        tokens, place = torch.unique(torch.cat(draws), return_inverse=True)
        counts = [
            torch.bincount(part, minlength=len(tokens))
            for part in place.split([len(draws[0]), len(draws[1])])
        ]
        score = homogeneity(counts[0], counts[1], (counts[0] + counts[1]).double())
        if len(draws[0]) < 5 and not torch.equal(counts[0], counts[1]):
            findings.append(
                f"kind {number}: {draws[0].tolist()}, not {draws[1].tolist()}"
            )
        smallest = min(smallest, score.p_value)
        if not score.p_value * len(first) > SIGNIFICANCE:
            findings.append(
                f"kind {number}: {_shown(draws[0])} against {_shown(draws[1])}: "
                f"chi-squared {score.statistic:.1f} at {score.freedom} degrees of "
                f"freedom, p-value {score.p_value:.2g}"
            )
    figures = {"draws": float(2 * len(actual)), "p_value": smallest}
    verdict = FAILED if findings else PASSED
    return Comparison(verdict, tuple(findings), figures=figures)


def _shown(draws: torch.Tensor) -> str:
    """Return the tokens drawn most often and their counts as text."""
    tokens, counts = torch.unique(draws, return_counts=True)
    most = counts.argsort(descending=True)[:3].tolist()
    return ", ".join(f"token {int(tokens[i])} {int(counts[i])} times" for i in most)
