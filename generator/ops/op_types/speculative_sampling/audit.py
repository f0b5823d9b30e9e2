"""Audit sizes of vocabularies, and the ranges of their random cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.axes import Axes
from generator.ops.op_types.speculative_sampling.chains import chain_case
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_LAWS = ("steps", "half", "zeros", "even", "ends")


def reduced(axes: Axes) -> Axes:
    """Return more tokens than any head has."""
    return {"vocab_size": 600}


def fit(axes: Axes, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workload's drafts as tokens of a shorter vocabulary."""
    tokens = stated["draft_token_ids"] % axes["vocab_size"]
    return {**stated, "draft_token_ids": tokens}


def for_limits(axes: Axes) -> Axes:
    """Return tokens beyond 16 bits: draft_token_ids are their numbers."""
    return {"vocab_size": 66_000}


def tiny(axes: Axes) -> Axes:
    """Return as few tokens as heads allow."""
    return {"vocab_size": 64}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other chains of as many drafts, drawn from once."""
    chains = []
    for number, (chain, _, count) in enumerate(case.params["chains"]):
        numbers = draw.child(str(number))
        names = numbers.integers(0, len(_LAWS), 2 * len(chain) + 1)
        ranks = numbers.child("ranks").integers(0, 8, len(chain))
        drafts = tuple(
            # a draft of no probability is a case of its own
            (
                _LAWS[names[2 * n]],
                min(rank, 3) if _LAWS[names[2 * n]] == "ends" else rank,
                _LAWS[names[2 * n + 1]],
            )
            for n, rank in enumerate(ranks)
        )
        chains.append((drafts, _LAWS[names[-1]], count))
    made = chain_case(case.name, case.size, 1, tuple(chains))
    return dict(made.axes), dict(made.params)
