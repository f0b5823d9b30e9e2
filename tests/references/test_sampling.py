"""Reference tests of op_type sampling.

Rendered: don't edit. `gen-tests --op-type sampling` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else generator/testing/tolerance.py by dtype.
Outputs of which several are right, indices or samples, are judged by POLICIES below.

SHA-256 of the definitions:
9565f92ebe4a99903b3d860c27a7ab3bf55797f436d170217860291bdef615db  top_k_sampling_from_probs_v128256
6478a08dbf8fe199263cebd6e8e00d20dc88bf9e9dd377fd781e463eb2218dcc  top_k_sampling_from_probs_v129280
6d9081fd8b5c9823caf2e1a2fa1534da8b792656bc905d1b45a6ced65a7a677b  top_k_sampling_from_probs_v151936
76b41e5cf47c99c9c2d26e75a4a3ea44c3f4ec1bc1ad3b68a49af4e5398a8c43  top_k_sampling_from_probs_v152064
c78e1772da64538245d485b99317e71cb639fac43d7b7878bcdbb19afd295438  top_k_sampling_from_probs_v200064
9c1ef4007bc7c3c193ebea8fde0a3626c771a01d4ce18dd08a929bf75fb222ab  top_k_sampling_from_probs_v202048
b74425149c9ee133a099ab30a05a49b6f07ceacc027165b08aedf39917255bd4  top_k_sampling_from_probs_v262208
08e2934e7a247f2fe9f124b5f7be73aa1b52369d5a9937a5bfba4261f08693ca  top_k_top_p_sampling_from_probs_v128256
e3bb84054ff44578ae0ced55111baf9a3bd6dcdc68c54aae54bc96cac397054b  top_k_top_p_sampling_from_probs_v129280
9885911061eddfa9008c46b1f776f75fb80da336ad5a0a81ad4d3a94c19b74cc  top_k_top_p_sampling_from_probs_v151936
7de2ace1a677157db97c35837530cf86dc16aef142a659aa7d12a9f77b93e6f8  top_k_top_p_sampling_from_probs_v152064
daba60e8382b38acb6ddfb80667ee4c065a61152941727ad94b8f4c789c52f9f  top_k_top_p_sampling_from_probs_v200064
18935600516b9bb5e66932f9eceb0aced1c211f39b3ece267c65734b367a8714  top_k_top_p_sampling_from_probs_v202048
419d320f8e8b71689b604ac04319e6c48866d599dc7689a1864b29dc85aa7151  top_k_top_p_sampling_from_probs_v262208
99ce0552e5ee83050cd846317d8300f6c0e6135dcb4ad4bc344876a57606489b  top_p_sampling_from_probs_v128256
5283405b09068cab65c923e7486fb2d4847bc84afc349a9b56b14b865718a3ae  top_p_sampling_from_probs_v129280
a7ba47f8afa2d2888d69b8affa48651bea021425830bab5cd78080355f0330ae  top_p_sampling_from_probs_v151936
0f01f3c52f0e85fe57be4861935554954d3c7a4a67e26a5990bdb77a368f4885  top_p_sampling_from_probs_v152064
9f3dd315e527bcf9be20b022e6cb635bc8fd3304b782bc5e336361929fe6c4ee  top_p_sampling_from_probs_v200064
4a3a6a53026d29ee9b9b824cef57f99d3d31f7741b7b7eab15bf086031a5d3b8  top_p_sampling_from_probs_v202048
a8ba47c453fd0b410abb861a6e6889319ca053886d30cbea7ddf2d32be46e197  top_p_sampling_from_probs_v262208
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.op_types.sampling.distribution import Distribution
from generator.ops.op_types.sampling.heads import falling_probabilities
from generator.ops.op_types.sampling.law import Laws, distinct_rows, laws_of
from generator.ops.op_types.sampling.relations import sampling_relations
from generator.testing.definition import Backend, Case, Definition, Interface
from generator.testing.harness import (
    GroundTruthsAgree,
    MatchesFlashInfer,
    MatchesSGLang,
    main,
)
from generator.testing.metamorphic import Metamorphic
from generator.testing.relation import Relation
from generator.testing.replay import MatchesRecorded
from generator.testing.seeded_inputs import Stream

# ---- the op: cases, inputs, float64 oracle, production kernels


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


# ---- the interfaces

INTERFACE_TOP_K_SAMPLING_FROM_PROBS = Interface(
    inputs={
        "probs": "float32[batch_size, vocab_size]",
        "top_k": "int32[batch_size]",
    },
    outputs={
        "samples": "int64[batch_size]",
    },
)
INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS = Interface(
    inputs={
        "probs": "float32[batch_size, vocab_size]",
        "top_k": "int32[batch_size]",
        "top_p": "float32[batch_size]",
    },
    outputs={
        "samples": "int64[batch_size]",
    },
)
INTERFACE_TOP_P_SAMPLING_FROM_PROBS = Interface(
    inputs={
        "probs": "float32[batch_size, vocab_size]",
        "top_p": "float32[batch_size]",
    },
    outputs={
        "samples": "int64[batch_size]",
    },
)

# ---- the references, as the definitions have them


# fmt: off
# of top_k_sampling_from_probs_v128256 and 6 more definitions
def reference_top_k_sampling_from_probs():
    import torch


    @torch.no_grad()
    def run(probs: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
        vocab_size = probs.shape[1]
        # A k that is not positive leaves out nothing, nor does one beyond the vocabulary.
        k = torch.where(top_k > 0, top_k, vocab_size).clamp(max=vocab_size)
        # Ranks from the largest k on are of no row: no need to sort the whole vocabulary.
        weights, tokens = probs.float().topk(int(k.max()), dim=1)
        rank = torch.arange(weights.shape[1], device=probs.device)
        weights = weights.masked_fill(rank >= k.unsqueeze(1), 0.0)
        # multinomial() draws in proportion to the weights, whatever their sum.
        drawn = torch.multinomial(weights, 1)
        return tokens.gather(1, drawn).squeeze(1)

    return run


# of top_k_top_p_sampling_from_probs_v128256 and 6 more definitions
def reference_top_k_top_p_sampling_from_probs():
    import torch


    @torch.no_grad()
    def run(probs: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
        vocab_size = probs.shape[1]
        # A k that is not positive leaves out nothing, nor does one beyond the vocabulary.
        k = torch.where(top_k > 0, top_k, vocab_size).clamp(max=vocab_size)
        # Ranks from the largest k on are of no row: no need to sort the whole vocabulary.
        weights, tokens = probs.float().topk(int(k.max()), dim=1)
        rank = torch.arange(weights.shape[1], device=probs.device)
        weights = weights.masked_fill(rank >= k.unsqueeze(1), 0.0)
        # p is a share of the mass that the k tokens hold, not of the whole.
        weights = weights / weights.sum(dim=1, keepdim=True)
        # A token is kept while those before it fall short of p: the one that crosses p is.
        before = weights.cumsum(dim=1) - weights
        kept = before < top_p.unsqueeze(1)
        # The most probable token is kept whatever p is, so p <= 0 means argmax.
        kept[:, 0] = True
        # multinomial() draws in proportion to the weights, whatever their sum.
        drawn = torch.multinomial(weights.masked_fill(~kept, 0.0), 1)
        return tokens.gather(1, drawn).squeeze(1)

    return run


# of top_p_sampling_from_probs_v128256 and 6 more definitions
def reference_top_p_sampling_from_probs():
    import torch


    def most_probable(
        probs: torch.Tensor, top_p: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the largest probabilities, falling, and their tokens: enough for p.

    A nucleus is mostly small, and to sort the whole vocabulary takes long.
    """
        vocab_size = probs.shape[1]
        count = min(256, vocab_size)
        while True:
            values, tokens = probs.topk(count, dim=1)
            if count == vocab_size or bool((values.sum(dim=1) >= top_p).all()):
                return values, tokens
            count = min(16 * count, vocab_size)


    @torch.no_grad()
    def run(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
        weights, tokens = most_probable(probs.float(), top_p)
        # A token is kept while those before it fall short of p: the one that crosses p is.
        before = weights.cumsum(dim=1) - weights
        kept = before < top_p.unsqueeze(1)
        # The most probable token is kept whatever p is, so p <= 0 means argmax.
        kept[:, 0] = True
        # multinomial() draws in proportion to the weights, whatever their sum.
        drawn = torch.multinomial(weights.masked_fill(~kept, 0.0), 1)
        return tokens.gather(1, drawn).squeeze(1)

    return run


# fmt: on
# ---- the tests


class SamplingTests(
    GroundTruthsAgree, MatchesFlashInfer, MatchesSGLang, MatchesRecorded, Metamorphic
):
    """What the tests of sampling share."""

    op_type = "sampling"
    sizes = ("small", "medium")
    tolerances = TOLERANCES
    policies = POLICIES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)
    sglang_backends = staticmethod(sglang_backends)
    sglang_ground_truth = staticmethod(sglang_ground_truth)


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of tokens that tie
# at the boundary any may be kept. Draws are those of torch's generator.
# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b, fi_api:flashinfer.sampling.top_k_sampling_from_probs
class TestTopKSamplingFromProbsV128256(SamplingTests):
    name = "top_k_sampling_from_probs_v128256"
    interface = INTERFACE_TOP_K_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_sampling_from_probs)
    VOCAB_SIZE = 128256


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of tokens that tie
# at the boundary any may be kept. Draws are those of torch's generator.
# model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.sampling.top_k_sampling_from_probs
class TestTopKSamplingFromProbsV129280(SamplingTests):
    name = "top_k_sampling_from_probs_v129280"
    interface = INTERFACE_TOP_K_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_sampling_from_probs)
    VOCAB_SIZE = 129280


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of tokens that tie
# at the boundary any may be kept. Draws are those of torch's generator.
# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b, fi_api:flashinfer.sampling.top_k_sampling_from_probs
class TestTopKSamplingFromProbsV151936(SamplingTests):
    name = "top_k_sampling_from_probs_v151936"
    interface = INTERFACE_TOP_K_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_sampling_from_probs)
    VOCAB_SIZE = 151936


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of tokens that tie
# at the boundary any may be kept. Draws are those of torch's generator.
# model:qwen2.5-7b, model:qwen2.5-72b,
# fi_api:flashinfer.sampling.top_k_sampling_from_probs
class TestTopKSamplingFromProbsV152064(SamplingTests):
    name = "top_k_sampling_from_probs_v152064"
    interface = INTERFACE_TOP_K_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_sampling_from_probs)
    VOCAB_SIZE = 152064


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of tokens that tie
# at the boundary any may be kept. Draws are those of torch's generator.
# model:minimax-m2, fi_api:flashinfer.sampling.top_k_sampling_from_probs
class TestTopKSamplingFromProbsV200064(SamplingTests):
    name = "top_k_sampling_from_probs_v200064"
    interface = INTERFACE_TOP_K_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_sampling_from_probs)
    VOCAB_SIZE = 200064


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of tokens that tie
# at the boundary any may be kept. Draws are those of torch's generator.
# model:llama-4-scout, fi_api:flashinfer.sampling.top_k_sampling_from_probs
class TestTopKSamplingFromProbsV202048(SamplingTests):
    name = "top_k_sampling_from_probs_v202048"
    interface = INTERFACE_TOP_K_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_sampling_from_probs)
    VOCAB_SIZE = 202048


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of tokens that tie
# at the boundary any may be kept. Draws are those of torch's generator.
# model:gemma-3-27b, fi_api:flashinfer.sampling.top_k_sampling_from_probs
class TestTopKSamplingFromProbsV262208(SamplingTests):
    name = "top_k_sampling_from_probs_v262208"
    interface = INTERFACE_TOP_K_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_sampling_from_probs)
    VOCAB_SIZE = 262208


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b, fi_api:flashinfer.sampling.top_k_top_p_sampling_from_probs
class TestTopKTopPSamplingFromProbsV128256(SamplingTests):
    name = "top_k_top_p_sampling_from_probs_v128256"
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_top_p_sampling_from_probs)
    VOCAB_SIZE = 128256


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.sampling.top_k_top_p_sampling_from_probs
class TestTopKTopPSamplingFromProbsV129280(SamplingTests):
    name = "top_k_top_p_sampling_from_probs_v129280"
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_top_p_sampling_from_probs)
    VOCAB_SIZE = 129280


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b, fi_api:flashinfer.sampling.top_k_top_p_sampling_from_probs
class TestTopKTopPSamplingFromProbsV151936(SamplingTests):
    name = "top_k_top_p_sampling_from_probs_v151936"
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_top_p_sampling_from_probs)
    VOCAB_SIZE = 151936


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# model:qwen2.5-7b, model:qwen2.5-72b,
# fi_api:flashinfer.sampling.top_k_top_p_sampling_from_probs
class TestTopKTopPSamplingFromProbsV152064(SamplingTests):
    name = "top_k_top_p_sampling_from_probs_v152064"
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_top_p_sampling_from_probs)
    VOCAB_SIZE = 152064


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# model:minimax-m2, fi_api:flashinfer.sampling.top_k_top_p_sampling_from_probs
class TestTopKTopPSamplingFromProbsV200064(SamplingTests):
    name = "top_k_top_p_sampling_from_probs_v200064"
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_top_p_sampling_from_probs)
    VOCAB_SIZE = 200064


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# model:llama-4-scout, fi_api:flashinfer.sampling.top_k_top_p_sampling_from_probs
class TestTopKTopPSamplingFromProbsV202048(SamplingTests):
    name = "top_k_top_p_sampling_from_probs_v202048"
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_top_p_sampling_from_probs)
    VOCAB_SIZE = 202048


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# model:gemma-3-27b, fi_api:flashinfer.sampling.top_k_top_p_sampling_from_probs
class TestTopKTopPSamplingFromProbsV262208(SamplingTests):
    name = "top_k_top_p_sampling_from_probs_v262208"
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_k_top_p_sampling_from_probs)
    VOCAB_SIZE = 262208


# Draws one token a row in proportion to the probabilities that a filter keeps. The most
# probable tokens are kept until they hold at least p, the token that crosses p
# included; p <= 0 keeps the most probable token alone. Of tokens that tie at the
# boundary any may be kept. Draws are those of torch's generator.
# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b, fi_api:flashinfer.sampling.top_p_sampling_from_probs
class TestTopPSamplingFromProbsV128256(SamplingTests):
    name = "top_p_sampling_from_probs_v128256"
    interface = INTERFACE_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_p_sampling_from_probs)
    VOCAB_SIZE = 128256


# Draws one token a row in proportion to the probabilities that a filter keeps. The most
# probable tokens are kept until they hold at least p, the token that crosses p
# included; p <= 0 keeps the most probable token alone. Of tokens that tie at the
# boundary any may be kept. Draws are those of torch's generator.
# model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.sampling.top_p_sampling_from_probs
class TestTopPSamplingFromProbsV129280(SamplingTests):
    name = "top_p_sampling_from_probs_v129280"
    interface = INTERFACE_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_p_sampling_from_probs)
    VOCAB_SIZE = 129280


# Draws one token a row in proportion to the probabilities that a filter keeps. The most
# probable tokens are kept until they hold at least p, the token that crosses p
# included; p <= 0 keeps the most probable token alone. Of tokens that tie at the
# boundary any may be kept. Draws are those of torch's generator.
# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b, fi_api:flashinfer.sampling.top_p_sampling_from_probs
class TestTopPSamplingFromProbsV151936(SamplingTests):
    name = "top_p_sampling_from_probs_v151936"
    interface = INTERFACE_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_p_sampling_from_probs)
    VOCAB_SIZE = 151936


# Draws one token a row in proportion to the probabilities that a filter keeps. The most
# probable tokens are kept until they hold at least p, the token that crosses p
# included; p <= 0 keeps the most probable token alone. Of tokens that tie at the
# boundary any may be kept. Draws are those of torch's generator.
# model:qwen2.5-7b, model:qwen2.5-72b,
# fi_api:flashinfer.sampling.top_p_sampling_from_probs
class TestTopPSamplingFromProbsV152064(SamplingTests):
    name = "top_p_sampling_from_probs_v152064"
    interface = INTERFACE_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_p_sampling_from_probs)
    VOCAB_SIZE = 152064


# Draws one token a row in proportion to the probabilities that a filter keeps. The most
# probable tokens are kept until they hold at least p, the token that crosses p
# included; p <= 0 keeps the most probable token alone. Of tokens that tie at the
# boundary any may be kept. Draws are those of torch's generator.
# model:minimax-m2, fi_api:flashinfer.sampling.top_p_sampling_from_probs
class TestTopPSamplingFromProbsV200064(SamplingTests):
    name = "top_p_sampling_from_probs_v200064"
    interface = INTERFACE_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_p_sampling_from_probs)
    VOCAB_SIZE = 200064


# Draws one token a row in proportion to the probabilities that a filter keeps. The most
# probable tokens are kept until they hold at least p, the token that crosses p
# included; p <= 0 keeps the most probable token alone. Of tokens that tie at the
# boundary any may be kept. Draws are those of torch's generator.
# model:llama-4-scout, fi_api:flashinfer.sampling.top_p_sampling_from_probs
class TestTopPSamplingFromProbsV202048(SamplingTests):
    name = "top_p_sampling_from_probs_v202048"
    interface = INTERFACE_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_p_sampling_from_probs)
    VOCAB_SIZE = 202048


# Draws one token a row in proportion to the probabilities that a filter keeps. The most
# probable tokens are kept until they hold at least p, the token that crosses p
# included; p <= 0 keeps the most probable token alone. Of tokens that tie at the
# boundary any may be kept. Draws are those of torch's generator.
# model:gemma-3-27b, fi_api:flashinfer.sampling.top_p_sampling_from_probs
class TestTopPSamplingFromProbsV262208(SamplingTests):
    name = "top_p_sampling_from_probs_v262208"
    interface = INTERFACE_TOP_P_SAMPLING_FROM_PROBS
    reference = staticmethod(reference_top_p_sampling_from_probs)
    VOCAB_SIZE = 262208


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
