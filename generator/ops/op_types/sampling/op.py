"""sampling: draw one token a row from those that top-k, top-p or both keep.

Top-k keeps the k most probable tokens, all if k <= 0. Top-p then keeps the most probable
of these until they hold at least the share p: it keeps the token that crosses p, and only
the most probable one if p <= 0. At a boundary any of the tied tokens may be kept:
FlashInfer keeps all, an implementation that sorts keeps as many as fit.

A batch has many rows of few kinds, and run() is called `calls` times with different
seeds. The draws of each kind are tested against its exact law, at a significance of 1e-6
for the whole comparison. This detects, with a probability above 0.99:

- small, 96 to 460 draws of each truncated kind: a boundary moved by one token. If a token
  with the share w of the kept mass is never drawn, the statistic is draws · w / (1 - w),
  at least 45. One draw of an illegal token fails. Near ties, and sums near p, turn
  rounding to bfloat16 into such tokens;
- medium, 6272 draws of one kind: 2 % of the mass moved between any two of 32 tokens of
  1/42 to 1/26 each; the noncentrality 6272 · 0.02² · (1/p + 1/q) is at least 128. In
  6400 draws of 258 tokens: any token that is never drawn, expected 21 times;
- large, 49152 draws of one kind: 2 % moved between two tokens of 1/2 each, the hardest
  case; the noncentrality 49152 · 0.02² · 4 is 78, at one degree of freedom.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.op_types.sampling.distribution import Distribution
from generator.ops.op_types.sampling.heads import falling_probabilities
from generator.ops.op_types.sampling.law import Laws, distinct_rows, laws_of
from generator.ops.op_types.sampling.relations import sampling_relations
from generator.testing.definition import Backend, Case, Definition
from generator.testing.relation import Relation
from generator.testing.seeded_inputs import Stream


def _no_filter_of_flashinfer(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return the rows in which FlashInfer accepts no token: bool [batch_size].

    Its kernels accept a token if fewer than k tokens, or less than p, precede it. That is
    never true for k or p of 0, and they return token 0.
    """
    rows = torch.zeros(len(inputs["probs"]), dtype=torch.bool)
    for name in ("top_k", "top_p"):
        if name in inputs:
            rows |= inputs[name].cpu() <= 0
    return rows


POLICIES = {"samples": Distribution({"flashinfer": _no_filter_of_flashinfer})}
# POLICIES compares draws
TOLERANCES = ()

_ALL = 2**30
# case → size, calls, rows: (distribution, k, p, number of rows)
_Rows = tuple[tuple[str, int, float, int], ...]
_CASES: dict[str, dict[str, tuple[str, int, _Rows]]] = {
    "top_k": {
        "k-per-row": (
            "small",
            24,
            (
                ("steps", 1, 1.0, 3),
                ("steps", 2, 1.0, 8),
                ("steps", 3, 1.0, 12),
                ("steps", 4, 1.0, 16),
                ("steps", 5, 1.0, 19),
            ),
        ),
        "ties-at-k": ("small", 16, (("tied", 3, 1.0, 10), ("tied", 6, 1.0, 12))),
        "zero-probability": (
            "small",
            16,
            (("zeros", 20, 1.0, 8), ("zeros", 2, 1.0, 8), ("certain", 5, 1.0, 2)),
        ),
        # few draws, as each one sorts the whole vocabulary
        "k-keeps-all": (
            "small",
            5,
            (
                ("steps", _ALL, 1.0, 4),
                ("steps", 0, 1.0, 4),
                ("steps", -1, 1.0, 4),
                ("steps", 1, 1.0, 1),
            ),
        ),
        "k-not-positive": (
            "small",
            12,
            (("even", -1, 1.0, 2), ("even", 0, 1.0, 2), ("steps", 1, 1.0, 1)),
        ),
        "vocabulary-ends": ("small", 16, (("ends", 2, 1.0, 6),)),
        # tokens that tie when rounded to bfloat16; the most probable are kept
        "near-ties": ("small", 16, (("near", 1, 1.0, 6), ("near", 8, 1.0, 6))),
        "batch": (
            "medium",
            112,
            (("even", 32, 1.0, 56), ("steps", 3, 1.0, 4), ("zipf", 50, 1.0, 4)),
        ),
        "two-percent": (
            "large",
            1536,
            (("halves", 2, 1.0, 32), ("even", 32, 1.0, 16), ("zipf", 50, 1.0, 16)),
        ),
    },
    "top_p": {
        "p-per-row": (
            "small",
            24,
            (
                ("steps", 0, 0.1, 3),
                ("steps", 0, 0.3, 8),
                ("steps", 0, 0.5, 12),
                ("steps", 0, 0.6, 16),
                ("steps", 0, 0.7, 19),
            ),
        ),
        # a sum of tokens equals p exactly: no further token crosses it
        "p-is-a-sum": ("small", 16, (("steps", 0, 0.25, 4), ("steps", 0, 0.4375, 8))),
        # p is 2^-11 below a sum that bfloat16 rounds down
        "p-near-a-sum": ("small", 16, (("half", 0, 191.5 / 1024, 6),)),
        "ties-at-p": ("small", 16, (("tied", 0, 0.4, 10), ("tied", 0, 0.8, 12))),
        "argmax": (
            "small",
            8,
            (("steps", 0, 0.0, 4), ("even", 0, -1.0, 4), ("steps", 0, 1e-9, 4)),
        ),
        "zero-probability": (
            "small",
            16,
            (("zeros", 0, 1.0, 10), ("certain", 0, 0.9, 2), ("certain", 0, 1.0, 2)),
        ),
        "whole-vocabulary": ("small", 5, (("steps", 0, 1.0, 4), ("zipf", 0, 0.5, 1))),
        # all tokens together stay below p
        "sum-below-one": ("small", 5, (("short", 0, 1.0, 4),)),
        "vocabulary-ends": ("small", 16, (("ends", 0, 0.6, 6),)),
        # p falls into the middle of a token
        "near-ties": ("small", 16, (("near", 0, 0.01, 6), ("near", 0, 7.5 / 32, 6))),
        # rows of 448 tokens and of one: a row's limit must not apply to its neighbour
        "wide-and-narrow": (
            "small",
            16,
            (("wide", 0, 0.949, 10), ("steps", 0, 0.1, 2)),
        ),
        "batch": (
            "medium",
            112,
            (
                ("even", 0, 0.95, 56),
                ("steps", 0, 0.5, 4),
                ("zipf", 0, 0.6, 4),
                # p is 2^-11 above a sum; bfloat16 rounds it to the sum
                ("half", 0, 192.5 / 1024, 4),
            ),
        ),
        # two tokens of 1/297 each beyond 256, expected 21 times: the probability that
        # any token is never drawn is 1e-7
        "beyond-256": ("medium", 100, (("edge", 0, 0.5038, 64),)),
        "two-percent": (
            "large",
            1536,
            (("halves", 0, 0.9, 32), ("even", 0, 0.95, 16), ("zipf", 0, 0.6, 16)),
        ),
    },
    "top_k_top_p": {
        # p is a share of the kept mass; as a share of all, one more token is kept
        "p-of-the-kept": (
            "small",
            24,
            (
                ("steps", 3, 0.6, 8),
                ("steps", 5, 0.75, 16),
                ("steps", 2, 0.55, 6),
                ("steps", 1, 0.9, 2),
                ("steps", 3, 0.3, 3),
                ("steps", 4, 1.0, 16),
            ),
        ),
        "ties": (
            "small",
            16,
            (("tied", 3, 0.9, 10), ("tied", 5, 0.4, 10), ("tied", 7, 0.99, 12)),
        ),
        "argmax": (
            "small",
            8,
            (("steps", 5, 0.0, 4), ("even", 9, -1.0, 4), ("steps", 5, 1e-9, 4)),
        ),
        "zero-probability": (
            "small",
            16,
            (("zeros", 20, 1.0, 8), ("zeros", 20, 0.7, 8), ("certain", 5, 0.5, 2)),
        ),
        "k-keeps-all": (
            "small",
            5,
            (("steps", _ALL, 0.4, 4), ("steps", -1, 0.4, 2), ("steps", 1, 0.4, 1)),
        ),
        # about 30 equal tokens are kept: a positive k in place of these shows
        "k-not-positive": (
            "small",
            12,
            (("even", -1, 0.9, 2), ("even", 0, 0.9, 2), ("steps", 1, 0.9, 1)),
        ),
        "vocabulary-ends": ("small", 16, (("ends", 2, 0.9, 6),)),
        "near-ties": ("small", 16, (("near", 8, 1.0, 6), ("near", 16, 7.5 / 16, 6))),
        # a sum of tokens equals p exactly
        "p-is-a-sum": (
            "small",
            16,
            (("half", 3, 192 / 512, 6), ("half", 3, 365 / 512, 6)),
        ),
        # p is about 2^-10 from a sum: rounding the kept mass, or the sum before a token,
        # to bfloat16 moves the sum to the other side of p
        "p-near-a-sum": (
            "small",
            16,
            (
                ("half", 3, 191.5 / 512, 6),
                ("thirds", 2, 171.75 / 343, 6),
                ("thirds", 3, 343.35 / 513, 8),
            ),
        ),
        "batch": (
            "medium",
            112,
            (("even", 32, 1.0, 56), ("steps", 4, 0.7, 4), ("zipf", 50, 0.8, 4)),
        ),
        "two-percent": (
            "large",
            1536,
            (("halves", 2, 1.0, 32), ("even", 32, 1.0, 16), ("zipf", 50, 0.8, 16)),
        ),
    },
}


def cases(definition: Definition) -> list[Case]:
    """Return the cases of the definition's filters."""
    kind = "_".join(n for n in ("top_k", "top_p") if n in definition.interface.inputs)
    return [
        Case(
            name,
            size,
            {"batch_size": sum(count for *_, count in rows)},
            {"calls": calls, "rows": rows},
        )
        for name, (size, calls, rows) in _CASES[kind].items()
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs: shuffled rows of a few distributions, each on its own tokens.

    probs float32 [batch_size, vocab_size], top_k int32 and top_p float32 [batch_size].
    """
    vocab_size, batch_size = definition.axes["vocab_size"], case.axes["batch_size"]
    rows = [
        (distribution, k, p)
        for distribution, k, p, count in case.params["rows"]
        for _ in range(count)
    ]
    order = stream.child("order").permutation(batch_size).tolist()
    made: dict[str, torch.Tensor] = {}
    probs = torch.empty(batch_size, vocab_size)
    for row, place in enumerate(order):
        name = rows[place][0]
        if name not in made:
            tokens = stream.child(name).permutation(vocab_size)
            if name == "ends":
                inner = tokens[(tokens != 0) & (tokens != vocab_size - 1)]
                tokens = torch.cat([torch.tensor([vocab_size - 1, 0]), inner])
            falling = falling_probabilities(name, vocab_size)
            made[name] = torch.empty(vocab_size).index_copy_(0, tokens, falling)
        probs[row] = made[name]
    drawn = {
        "probs": probs,
        "top_k": torch.tensor([rows[i][1] for i in order], dtype=torch.int32),
        "top_p": torch.tensor([rows[i][2] for i in order], dtype=torch.float32),
    }
    return {name: drawn[name] for name in definition.interface.inputs}


def oracle(definition: Definition, inputs: dict[str, Any]) -> Laws:
    """Return the exact law of every row, computed in float64."""
    return laws_of(inputs)


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between draws with permuted tokens or rows."""
    return sampling_relations(definition, make_inputs)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return FlashInfer's int32 samples as the declared int64 [batch_size]."""
    from flashinfer import sampling

    probs, ks, ps = (inputs.get(name) for name in ("probs", "top_k", "top_p"))
    if ps is None:
        samples = sampling.top_k_sampling_from_probs(probs, ks, deterministic=True)
    elif ks is None:
        samples = sampling.top_p_sampling_from_probs(probs, ps, deterministic=True)
    else:
        samples = sampling.top_k_top_p_sampling_from_probs(
            probs, ks, ps, filter_apply_order="top_k_first", deterministic=True
        )
    wide: torch.Tensor = samples.to(torch.int64)
    return wide


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's sampler in PyTorch, which also runs on a CPU."""
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return SGLang's filtered probabilities: float32 [batch_size, vocab_size].

    They are more precise than draws. Each kind of row is computed once.
    """
    first, row_kind = distinct_rows(inputs)
    kinds = {name: value[first] for name, value in inputs.items()}
    probs, everything = kinds["probs"], definition.axes["vocab_size"]
    ks = kinds.get("top_k", torch.zeros(len(first), dtype=torch.int32))
    ks = torch.where(ks > 0, ks, everything).to(probs.device)
    # SGLang applies p to all mass, not to the kept: call it once per filter
    probs = _filtered_by_sglang(probs, ks, torch.ones_like(probs[:, 0]))
    if "top_p" in kinds:
        # SGLang keeps a token if those before it hold <= p, the op if they hold < p: pass
        # the next float below p
        below = torch.nextafter(kinds["top_p"], torch.full_like(kinds["top_p"], -1.0))
        ks = torch.full_like(ks, everything)
        probs = _filtered_by_sglang(probs, ks, below.clamp_min(0.0))
    return probs[row_kind.to(probs.device)]


def _filtered_by_sglang(
    probs: torch.Tensor, ks: torch.Tensor, ps: torch.Tensor
) -> torch.Tensor:
    """Return SGLang's filtered probabilities, normalised: float32 [rows, vocab_size]."""
    from sglang.srt.layers import sampler

    _, weights, tokens, _ = sampler.top_k_top_p_min_p_sampling_from_probs_torch(
        probs,
        ks,
        ps,
        torch.zeros_like(ps),
        False,
        None,
        torch.zeros_like(ks),
        return_filtered_probs=True,
    )
    kept = torch.zeros_like(probs).scatter_(1, tokens.long(), weights)
    return kept / kept.sum(dim=1, keepdim=True)
