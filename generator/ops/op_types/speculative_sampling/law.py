"""The exact law of what a chain of drafts becomes, and the policy that tests it.

Draft i is accepted with the probability min(1, target_i / draft_i) of its token. What
follows n accepted drafts is drawn from relu(target_n - draft_n), or from the target
where all were accepted. So an outcome is a pair of n and a token, and its probability a
product (Leviathan et al. 2023, arXiv 2211.17192).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from generator.ops.op_types.sampling.distribution import by_law, verdict
from generator.ops.op_types.sampling.law import Law, Laws, distinct_rows
from kernel_judge.comparison.compare import ERROR, FAILED, Comparison
from kernel_judge.comparison.policy import Question
from kernel_judge.definition import Case

PADDING = -1


@dataclass(frozen=True)
class ChainLaw(Law):
    """The law of one chain; its tokens are outcomes n·vocab_size + token.

    `drafts`, int64 [drafts], are the tokens that are accepted or not.
    """

    drafts: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return the drafted tokens as text."""
        return f"drafts {', '.join(map(str, self.drafts))}"

    def objection(self, token: int) -> str:
        """Return why an outcome is illegal."""
        if token < 0:
            return "is no prefix of the drafts, one token and -1 behind them"
        emitted, last = divmod(token, len(self.probs) // (len(self.drafts) + 1))
        return f"is token {last} behind {emitted} drafts, which has probability 0"


def chain_laws(inputs: Mapping[str, Any]) -> Laws:
    """Return the laws of the rows of a batch, in float64."""
    first, row_law = distinct_rows(inputs)
    drafts = inputs["draft_token_ids"][first].cpu().tolist()
    pairs = (inputs[name][first].cpu() for name in ("draft_probs", "target_probs"))
    return Laws(tuple(map(chain_law, drafts, *pairs)), row_law)


def chain_law(drafts: list[int], draft: torch.Tensor, target: torch.Tensor) -> ChainLaw:
    """Return the law of one chain.

    draft float32 [drafts, vocab_size], target float32 [drafts + 1, vocab_size].
    """
    reached, parts = 1.0, []
    for place, token in enumerate(drafts):
        p, q = draft[place].double(), target[place].double()
        # a token that the draft could not draw is accepted if the target could
        share = min(1.0, float(q[token] / p[token])) if p[token] > 0 else 1.0
        accepted = share if q[token] > 0 else 0.0
        residual = (q - p).clamp_min(0.0)
        mass = float(residual.sum())
        parts.append(residual * (reached * (1.0 - accepted) / mass if mass else 0.0))
        reached *= accepted
    last = target[-1].double()
    parts.append(last * (reached / last.sum()))
    probs = torch.cat(parts)
    tokens = probs.nonzero().flatten()
    order = probs[tokens].argsort(descending=True, stable=True)
    tokens = tokens[order]
    nothing = torch.empty(0, dtype=torch.int64)
    return ChainLaw(
        tokens,
        probs[tokens],
        nothing,
        (0.0, 0.0),
        probs,
        None,
        None,
        drafts=tuple(drafts),
    )


def outcomes(samples: torch.Tensor, drafts: torch.Tensor, size: int) -> torch.Tensor:
    """Return each draw's outcome: int64 [draws]; -1 where it is malformed.

    given int32 [draws, drafts + 1]; drafts int32 [batch_size, drafts], of which draw i
    has row i modulo batch_size; `size` is the vocabulary's.
    """
    drafts = drafts.repeat(len(samples) // len(drafts), 1)
    kept = (samples != PADDING).long().cumprod(dim=1).sum(dim=1)
    emitted = (kept - 1).clamp_min(0)
    place = torch.arange(samples.shape[1])
    last = samples.gather(1, emitted[:, None]).squeeze(1).long()
    wrong = ((place >= kept[:, None]) & (samples != PADDING)).any(dim=1)
    before = place[:-1] < emitted[:, None]
    wrong |= (before & (samples[:, :-1] != drafts)).any(dim=1)
    wrong |= (last < 0) | (last >= size)
    return torch.where(wrong, -1, emitted * size + last)


@dataclass(frozen=True)
class ChainDistribution:
    """Draws are outcomes of each chain's law, and no chi-squared test, at 1e-6 in all, refuses it.

    Draws are int32 [draws, drafts + 1]; draw i is of row i modulo batch_size. `undefined` maps a provider to a function that
    returns the rows it leaves undefined: inputs → bool [batch_size].
    """

    undefined: Mapping[str, Callable[[Mapping[str, Any]], torch.Tensor]] = field(
        default_factory=dict
    )

    def calls(self, answer: Any, case: Case) -> int:
        """Return the number of calls for a case."""
        return int(case.params.get("calls", 1))

    def judge(self, actual: Any, expected: Any, question: Question) -> Comparison:
        """Compare draws with the exact law, and with a source's if it gave draws.

        `expected` is `Laws` or draws. χ² tests at a significance of 1e-6 for all of a
        comparison together, and no draw of an outcome that has no probability.
        """
        by_oracle = isinstance(expected, Laws)
        laws = expected if by_oracle else chain_laws(question.inputs)
        rows = self._defined(question)
        if not bool(rows.any()):
            return Comparison(
                ERROR, (f"{question.source} defines no row of this case",)
            )
        sides = {"actual": actual}
        if not by_oracle:
            sides[question.source] = expected
        drafts = question.inputs["draft_token_ids"].cpu()
        samples = {}
        for who, value in sides.items():
            wrong = _malformed(value, drafts)
            if wrong is not None:
                return Comparison(FAILED, (f"{who}: {wrong}",))
            size = question.definition.axes["vocab_size"]
            samples[who] = by_law(outcomes(value.cpu(), drafts, size), laws, rows)
        return verdict([], samples, laws, rows)

    def _defined(self, question: Question) -> torch.Tensor:
        """Return the rows that each of the sources defines: bool [batch_size]."""
        rows = torch.ones(len(question.inputs["draft_token_ids"]), dtype=torch.bool)
        for source in filter(None, (question.source, question.other)):
            undefined = self.undefined.get(source.split("/")[0])
            if undefined is not None:
                rows &= ~undefined(question.inputs).cpu()
        return rows


def _malformed(value: Any, drafts: torch.Tensor) -> str | None:
    """Return why a value is no draws, None if it is."""
    if not isinstance(value, torch.Tensor):
        return f"a tensor is expected, got {type(value).__name__}"
    if value.dtype != torch.int32:
        return f"dtype {value.dtype}, declared torch.int32"
    batch, length = len(drafts), drafts.shape[1] + 1
    if value.dim() != 2 or not len(value) or len(value) % batch:
        return f"shape {list(value.shape)}, expected draws of {batch} rows"
    if value.shape[1] != length:
        return f"{value.shape[1]} tokens a row, expected {length}"
    return None
