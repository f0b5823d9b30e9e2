"""The policy for sampled tokens: draws must follow the exact law of their row.

Every draw must be legal, and the counts of each kind of row must pass tests at a
significance of 1e-6 for all tests of a comparison together (Bonferroni). The tests cover
each law's tokens, its rare tokens pooled by position, the share of its free tokens, the
law at other temperatures, coincidences of rare tokens, and all laws together; for laws of
many tokens also that no token is missing. Rows of one law are drawn independently, and so
are calls: `pairs` tests both. Samples of a source get the same tests, and both samples
are tested against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from generator.ops.chi_squared import (
    SIGNIFICANCE,
    Score,
    bins,
    coincidences,
    goodness,
    homogeneity,
    share_score,
    tempered,
    total,
    unseen,
)
from generator.ops.op_types.sampling.law import Law, Laws, laws_of
from generator.ops.op_types.sampling.pairs import pair_scores
from kernel_judge.comparison.compare import ERROR, FAILED, PASSED, Comparison
from kernel_judge.comparison.policy import Question
from kernel_judge.definition import Case
from kernel_judge.inputs.memory import dtype_of

# float32 probabilities of a source: one division by a sum of up to 2^18 values
PROBABILITY_RTOL = 1e-5
NAMED_TOKENS = 3
# χ² spreads a missing token over all degrees of freedom; from this number of tokens with
# this expected count on, a test for missing tokens is stronger
_MANY_TOKENS, _OFTEN = 64, 20.0


@dataclass(frozen=True)
class Distribution:
    """Draws are tokens of the exact law, and no chi-squared test, at 1e-6 in all, refuses it.

    Draws are int64 [draws]; draw i is of row i modulo batch_size. A source may return its probabilities instead, float32 [batch_size, vocab_size]; they
    are compared with the law directly. `undefined` maps a provider to a function that
    returns the rows it leaves undefined: inputs → bool [batch_size].
    """

    undefined: Mapping[str, Callable[[Mapping[str, Any]], torch.Tensor]] = field(
        default_factory=dict
    )

    def calls(self, answer: Any, case: Case) -> int:
        """Return the number of calls for a case: one if the answer is not draws."""
        drawn = isinstance(answer, torch.Tensor) and not answer.is_floating_point()
        return int(case.params.get("calls", 1)) if drawn else 1

    def judge(self, actual: Any, expected: Any, question: Question) -> Comparison:
        """Compare draws with the exact law, and with a source if `expected` is none.

        `actual` is int64 [draws]; `expected` is `Laws`, draws, or probabilities.
        """
        by_oracle = isinstance(expected, Laws)
        laws: Laws = expected if by_oracle else laws_of(question.inputs)
        rows = self._defined(question)
        if not bool(rows.any()):
            return Comparison(
                ERROR, (f"{question.source} defines no row of this case",)
            )
        sides = {"actual": actual}
        if not by_oracle:
            sides[question.source] = expected
        findings: list[str] = []
        samples: dict[str, list[torch.Tensor]] = {}
        for who, value in sides.items():
            wrong = _malformed(value, laws, question)
            if wrong is not None:
                return Comparison(FAILED, (f"{who}: {wrong}",))
            if value.is_floating_point():
                findings += _probability_findings(who, value.cpu(), laws, rows)
            else:
                samples[who] = by_law(value.cpu(), laws, rows)
        return verdict(findings, samples, laws, rows)

    def _defined(self, question: Question) -> torch.Tensor:
        first = next(iter(question.inputs.values()))
        rows = torch.ones(len(first), dtype=torch.bool)
        undefined = self.undefined.get(question.source.split("/")[0])
        return rows if undefined is None else ~undefined(question.inputs).cpu()


def _malformed(value: Any, laws: Laws, question: Question) -> str | None:
    """Return why a value is neither draws nor probabilities, None if it is."""
    batch, (spec, *_) = len(laws.row_law), question.definition.interface.output_specs
    if not isinstance(value, torch.Tensor):
        return f"a tensor is expected, got {type(value).__name__}"
    if value.is_floating_point():
        shape = (batch, len(laws.laws[0].probs))
        return None if value.shape == shape else f"shape {list(value.shape)}"
    declared = dtype_of(question.definition.interface.output_specs[spec].dtype)
    if value.dtype != declared:
        return f"dtype {value.dtype}, declared {declared}"
    if value.dim() != 1 or len(value) == 0 or len(value) % batch:
        return f"shape {list(value.shape)}, expected draws of {batch} rows"
    return None


def by_law(samples: torch.Tensor, laws: Laws, rows: torch.Tensor) -> list[torch.Tensor]:
    """Return each law's draws from defined rows: int64 [calls, rows of it] each."""
    table = samples.long().reshape(-1, len(rows))
    return [table[:, (laws.row_law == law) & rows] for law in range(len(laws.laws))]


def verdict(
    findings: list[str],
    samples: Mapping[str, list[torch.Tensor]],
    laws: Laws,
    rows: torch.Tensor,
) -> Comparison:
    tests: list[tuple[str, Score]] = []
    illegal = 0
    for who, drawn in samples.items():
        ones = []
        for law, table in zip(laws.laws, drawn, strict=True):
            tokens = table.flatten()
            objections, bad = _illegal(law, tokens)
            illegal += bad
            findings += [f"{who}: {law}: {text}" for text in objections]
            scores = _scores(law, tokens)
            if not bad:
                scores += pair_scores(law, table)
            tests += [(f"{who}: {law}: {text}", score) for text, score in scores]
            ones.append(_goodness(law, tokens))
        tests.append((f"{who}: all laws", total(ones)))
    if len(samples) == 2:
        flat = ([t.flatten() for t in drawn] for drawn in samples.values())
        tests += _between(laws, *flat)
    tests = [(text, score) for text, score in tests if score.freedom]
    smallest = min((score.p_value for _, score in tests), default=1.0)
    for text, score in tests:
        if not score.p_value * len(tests) > SIGNIFICANCE:
            findings.append(
                f"{text}: chi-squared {score.statistic:.4g} at {score.freedom} degrees "
                f"of freedom, p-value {score.p_value:.2g}, allowed "
                f"{SIGNIFICANCE / len(tests):.2g}"
            )
    figures = {
        "draws": sum(table.numel() for drawn in samples.values() for table in drawn),
        "illegal_draws": illegal,
        "tests": len(tests),
        "p_value": min(1.0, smallest * max(len(tests), 1)),
        "rows_left_out": int((~rows).sum()),
    }
    verdict = FAILED if findings else PASSED
    return Comparison(verdict, tuple(findings), figures=figures)


def _illegal(law: Law, tokens: torch.Tensor) -> tuple[list[str], int]:
    """Return the findings about illegal draws, and their number."""
    wrong = tokens[~law.is_legal(tokens)]
    if len(wrong) == 0:
        return [], 0
    kinds, counts = torch.unique(wrong, return_counts=True)
    texts = [
        f"token {token} {law.objection(token)}, drawn {count} times"
        for token, count in zip(
            kinds[:NAMED_TOKENS].tolist(), counts[:NAMED_TOKENS].tolist(), strict=True
        )
    ]
    head = f"{len(wrong)} of {len(tokens)} draws are of {len(kinds)} illegal tokens"
    return [f"{head}: {'; '.join(texts)}"], len(wrong)


def _counts(law: Law, tokens: torch.Tensor) -> torch.Tensor:
    inside = tokens[(tokens >= 0) & (tokens < len(law.probs))]
    return torch.bincount(inside, minlength=len(law.probs))[law.tokens]


def _goodness(law: Law, tokens: torch.Tensor) -> Score:
    return goodness(_counts(law, tokens), law.weights)


def _scores(law: Law, tokens: torch.Tensor) -> list[tuple[str, Score]]:
    """Return the tests of one law's draws, each with a description."""
    counts = _counts(law, tokens)
    draws = int(counts.sum())
    scores = []
    if draws:
        expected = draws * law.weights / law.weights.sum()
        worst = ((counts - expected) / expected.sqrt()).abs().argsort(descending=True)
        named = ", ".join(
            f"token {int(law.tokens[i])} was drawn {int(counts[i])} times, "
            f"{float(expected[i]):.1f} expected"
            for i in worst[:NAMED_TOKENS].tolist()
        )
        scores.append((f"of {draws} draws {named}", goodness(counts, law.weights)))
        if int(bins(expected).max()) + 1 < len(expected):
            place = law.tokens.argsort()
            by_place = goodness(counts[place], law.weights[place])
            scores.append(("rare tokens pooled by position", by_place))
        if int((expected >= _OFTEN).sum()) >= _MANY_TOKENS:
            text = (
                f"of {draws} draws token {_first_unseen(law, counts)} was never drawn"
            )
            scores.append((text, unseen(counts, law.weights)))
        scores += [
            (
                "as if the law's temperature were another",
                tempered(counts, law.weights),
            ),
            (
                "rare tokens coincide too often or too seldom",
                coincidences(counts, law.weights),
            ),
        ]
    if len(law.free):
        free = int(torch.isin(tokens, law.free).sum())
        low, high = law.free_share
        text = (
            f"{free} of {len(tokens)} draws are of tokens at the boundary, "
            f"expected {100 * low:.2f} % to {100 * high:.2f} %"
        )
        scores.append((text, share_score(free, free + draws, low, high)))
    return scores


def _first_unseen(law: Law, counts: torch.Tensor) -> int:
    """Return the most probable token that was never drawn, -1 if there is none."""
    # tokens are sorted by probability
    missing = law.tokens[counts == 0]
    return int(missing[0]) if len(missing) else -1


def _between(
    laws: Laws, first: list[torch.Tensor], second: list[torch.Tensor]
) -> list[tuple[str, Score]]:
    """Return the tests of two samplers' draws against each other."""
    scores = [
        homogeneity(_counts(law, a), _counts(law, b), law.weights)
        for law, a, b in zip(laws.laws, first, second, strict=True)
    ]
    texts = [f"{law}: the two samples against each other" for law in laws.laws]
    both = ("all laws: the two samples against each other", total(scores))
    return [*zip(texts, scores, strict=True), both]


def _probability_findings(
    who: str, probabilities: torch.Tensor, laws: Laws, rows: torch.Tensor
) -> list[str]:
    """Return where a source's probabilities differ from the law."""
    findings = []
    for row in rows.nonzero().flatten().tolist():
        law, p = laws.laws[int(laws.row_law[row])], probabilities[row].double()
        p = p / p.sum()
        sure, free = p[law.tokens], float(p[law.free].sum())
        exact = law.weights / law.weights.sum()
        off = (sure / sure.sum() / exact - 1.0).abs()
        illegal = 1.0 - float(sure.sum()) - free
        low, high = law.free_share
        say = f"{who}: row {row}, {law}"
        if not bool((off <= PROBABILITY_RTOL).all()):
            worst = int(off.argmax())
            findings.append(
                f"{say}: token {int(law.tokens[worst])} is off by {float(off[worst]):.3g}"
            )
        if not abs(illegal) <= PROBABILITY_RTOL:
            findings.append(f"{say}: illegal tokens have {illegal:.3g}")
        if not low - PROBABILITY_RTOL <= free <= high + PROBABILITY_RTOL:
            findings.append(
                f"{say}: tokens at the boundary have {free:.6g}, "
                f"expected {low:.6g} to {high:.6g}"
            )
    return findings[:NAMED_TOKENS]
