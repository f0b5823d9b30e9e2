"""Reference tests of op_type sampling.

Rendered: don't edit. `gen-tests --op-type sampling` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.op_types.sampling.cases import sampling_cases
from generator.ops.op_types.sampling.distribution import Distribution
from generator.ops.op_types.sampling.heads import falling_probabilities
from generator.ops.op_types.sampling.law import (
    Laws,
    distinct_rows,
    laws_of,
    probabilities,
)
from generator.ops.op_types.sampling.relations import sampling_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.sampling.law
# policies: generator.ops.op_types.sampling.distribution,
# generator.ops.op_types.sampling.law
# relations: generator.ops.op_types.sampling.heads,
# generator.ops.op_types.sampling.relations


def _no_filter_of_flashinfer(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return the rows in which FlashInfer accepts no token: bool [batch_size].

    Its kernels accept a token if fewer than k tokens, or less than p, precede it. That is
    never true for k or p of 0, and they return token 0.
    """
    rows = torch.zeros(len(probabilities(inputs)), dtype=torch.bool)
    for name in ("top_k", "top_p"):
        if name in inputs:
            rows |= inputs[name].cpu() <= 0
    return rows


POLICIES = {"samples": Distribution({"flashinfer": _no_filter_of_flashinfer})}
# POLICIES compares draws
TOLERANCES = ()


def cases(definition: Definition) -> list[Case]:
    """Return the cases of the definition's filters."""
    return sampling_cases(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs: shuffled rows of a few distributions, each on its own tokens.

    probs or logits float32 [batch_size, vocab_size]; top_k int32, top_p and min_p float32
    [batch_size]. Logits are logarithms plus 3, so that a softmax has to divide.
    """
    vocab_size, batch_size = definition.axes["vocab_size"], case.axes["batch_size"]
    # a workload has settings of its own
    usual = (("zipf", 50, 0.9, batch_size),)
    rows = [
        (distribution, k, p)
        for distribution, k, p, count in case.params.get("rows", usual)
        for _ in range(count)
    ]
    order = stream.child("order").permutation(batch_size).tolist()
    inputs: dict[str, torch.Tensor] = {}
    probs = torch.empty(batch_size, vocab_size)
    for row, place in enumerate(order):
        name = rows[place][0]
        if name not in inputs:
            tokens = stream.child(name).permutation(vocab_size)
            if name == "ends":
                inner = tokens[(tokens != 0) & (tokens != vocab_size - 1)]
                tokens = torch.cat([torch.tensor([vocab_size - 1, 0]), inner])
            falling = falling_probabilities(name, vocab_size)
            inputs[name] = torch.empty(vocab_size).index_copy_(0, tokens, falling)
        probs[row] = inputs[name]
    shares = torch.tensor([rows[i][2] for i in order], dtype=torch.float32)
    drawn = {
        "probs": probs,
        "logits": probs.double().log().add(3.0).float(),
        "top_k": torch.tensor([rows[i][1] for i in order], dtype=torch.int32),
        "top_p": shares,
        "min_p": shares,
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


# of a definition's name: the kernel's, where that is another
_KERNELS = {"min_p_sampling": "min_p_sampling_from_probs"}


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return FlashInfer's int32 samples as the declared int64 [batch_size]."""
    from flashinfer import sampling

    name = definition.name.rpartition("_v")[0]
    ordered = {"filter_apply_order": "top_k_first"} if "top_k_top_p" in name else {}
    kernel = getattr(sampling, _KERNELS.get(name, name))
    rows, *filters = inputs.values()
    samples: torch.Tensor = kernel(rows, *filters, deterministic=True, **ordered)
    return samples.to(torch.int64)


_FOR_SGLANG = {
    "logits": "probabilities of logits",
    "top_p": "the next float below top_p",
}
_NORMALISED = "outputs rewritten: what the kernel keeps is divided by its sum"


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's sampler in PyTorch, which also runs on a CPU."""
    inputs = definition.interface.inputs
    changed = [text for name, text in _FOR_SGLANG.items() if name in inputs]
    before = f"inputs rewritten: {', '.join(changed)}; " if changed else ""
    return (Backend("native", needs_cuda=False, rewrites=f"{before}{_NORMALISED}"),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return SGLang's filtered probabilities: float32 [batch_size, vocab_size].

    They are more precise than draws. Each kind of row is computed once.
    """
    first, row_kind = distinct_rows(inputs)
    kinds = {name: value[first] for name, value in inputs.items()}
    everything = definition.axes["vocab_size"]
    probs = kinds["probs"] if "probs" in kinds else kinds["logits"].softmax(dim=1)
    # float32 sums of a row exceed 1 by their rounding: no sum exceeds 2
    no_p = torch.full_like(probs[:, 0], 2.0)
    ks = kinds.get("top_k", torch.zeros(len(first), dtype=torch.int32))
    ks = torch.where(ks > 0, ks, everything).to(probs.device)
    # SGLang applies p to all mass, not to the kept: call it once per filter
    probs = _filtered_by_sglang(probs, ks, no_p, kinds.get("min_p"))
    if "top_p" in kinds:
        # SGLang keeps a token if those before it hold <= p, the op if they hold < p: pass
        # the next float below p
        below = torch.nextafter(kinds["top_p"], torch.full_like(kinds["top_p"], -1.0))
        ks = torch.full_like(ks, everything)
        probs = _filtered_by_sglang(probs, ks, below.clamp_min(0.0))
    return probs[row_kind.to(probs.device)]


def _filtered_by_sglang(
    probs: torch.Tensor,
    ks: torch.Tensor,
    ps: torch.Tensor,
    min_ps: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return SGLang's filtered probabilities, normalised: float32 [rows, vocab_size]."""
    from sglang.srt.layers import sampler

    _, weights, tokens, _ = sampler.top_k_top_p_min_p_sampling_from_probs_torch(
        probs,
        ks,
        ps,
        torch.zeros_like(ps) if min_ps is None else min_ps,
        min_ps is not None,
        None,
        torch.zeros_like(ks),
        return_filtered_probs=True,
    )
    kept = torch.zeros_like(probs).scatter_(1, tokens.long(), weights)
    return kept / kept.sum(dim=1, keepdim=True)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=relations,
    policies=POLICIES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_MIN_P_SAMPLING = Interface(
    inputs={"probs": "float32[batch_size, vocab_size]", "min_p": "float32[batch_size]"},
    outputs={"samples": "int64[batch_size]"},
)
INTERFACE_SAMPLING_FROM_LOGITS = Interface(
    inputs={"logits": "float32[batch_size, vocab_size]"},
    outputs={"samples": "int64[batch_size]"},
)
INTERFACE_SAMPLING_FROM_PROBS = Interface(
    inputs={"probs": "float32[batch_size, vocab_size]"},
    outputs={"samples": "int64[batch_size]"},
)
INTERFACE_TOP_K_SAMPLING_FROM_PROBS = Interface(
    inputs={"probs": "float32[batch_size, vocab_size]", "top_k": "int32[batch_size]"},
    outputs={"samples": "int64[batch_size]"},
)
INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_LOGITS = Interface(
    inputs={
        "logits": "float32[batch_size, vocab_size]",
        "top_k": "int32[batch_size]",
        "top_p": "float32[batch_size]",
    },
    outputs={"samples": "int64[batch_size]"},
)
INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS = Interface(
    inputs={
        "probs": "float32[batch_size, vocab_size]",
        "top_k": "int32[batch_size]",
        "top_p": "float32[batch_size]",
    },
    outputs={"samples": "int64[batch_size]"},
)
INTERFACE_TOP_P_SAMPLING_FROM_PROBS = Interface(
    inputs={"probs": "float32[batch_size, vocab_size]", "top_p": "float32[batch_size]"},
    outputs={"samples": "int64[batch_size]"},
)

# ---- the tests


class SamplingTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of sampling share."""

    op_type = "sampling"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# Reasons:
# (1) Draws are tokens of the exact law, and no chi-squared test, at 1e-6 in all,
# refuses it (generator.ops.op_types.sampling.distribution).


# Draws one token a row in proportion to the probabilities that a filter keeps. Of the
# tokens those are kept that have at least the share min_p of the largest probability.
# Draws are those of torch's generator.
# fi_api:flashinfer.sampling.min_p_sampling_from_probs
# Tolerances:
#   samples  every source  by  Distribution    (1)
def reference_min_p_sampling():
    import torch


    @torch.no_grad()
    def run(probs: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
        # The limit is a share of the largest probability, and itself within it.
        least = (min_p * probs.amax(dim=1)).unsqueeze(1)
        # No row keeps more tokens than this: no need to draw from the whole vocabulary.
        most = int((probs >= least).sum(dim=1).max())
        weights, tokens = probs.topk(most, dim=1)
        # multinomial() draws in proportion to the weights, whatever their sum.
        drawn = torch.multinomial(weights.masked_fill(weights < least, 0.0), 1)
        return tokens.gather(1, drawn).squeeze(1)

    return run


class MinPSamplingBase(SamplingTests):
    reference = staticmethod(reference_min_p_sampling)
    interface = INTERFACE_MIN_P_SAMPLING

class TestMinPSamplingV100352(MinPSamplingBase):
    name = "min_p_sampling_v100352"  # model:granite-4.1-8b, model:phi-4-14b
    axes = {"vocab_size": 100352}
    sha256 = "220ba02814b16fd0d4fdf84685df4600bf9ac93f13569e5841df03f389300618"

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestMinPSamplingV128256(MinPSamplingBase):
    name = "min_p_sampling_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "d993151290f0159a6d590af68f30fa287c6504eb1ab0d2414c25f208252d99b6"

class TestMinPSamplingV129280(MinPSamplingBase):
    name = "min_p_sampling_v129280"  # model:deepseek-v3, model:deepseek-r1
    axes = {"vocab_size": 129280}
    sha256 = "f8c09dcbb40b8304dcfebedbedb3b699f66a1258e72c7ce804a98389aa467950"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestMinPSamplingV151936(MinPSamplingBase):
    name = "min_p_sampling_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "f8c9f811f70979897a724507e38da2eda3eba14b1fd79554fd17c245fd64bf83"

class TestMinPSamplingV152064(MinPSamplingBase):
    name = "min_p_sampling_v152064"  # model:qwen2.5-7b, model:qwen2.5-72b
    axes = {"vocab_size": 152064}
    sha256 = "4bc5902518f699ca82264d95d5ff1bfb73354764a470b784b78291f947d75d93"

class TestMinPSamplingV200064(MinPSamplingBase):
    name = "min_p_sampling_v200064"  # model:minimax-m2
    axes = {"vocab_size": 200064}
    sha256 = "83375261fedea8961eba7ef5d82ebbc732050b0d0d9ce18286ee829de56dfc7f"

class TestMinPSamplingV201088(MinPSamplingBase):
    name = "min_p_sampling_v201088"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"vocab_size": 201088}
    sha256 = "76ceeb422280995f17da4d51ac2458e0d58074eb676482b6f7203263a11823b2"

class TestMinPSamplingV202048(MinPSamplingBase):
    name = "min_p_sampling_v202048"  # model:llama-4-scout
    axes = {"vocab_size": 202048}
    sha256 = "ea7b18a630ebecdf017928d3eb4057abe62f8db33d9a50d814d28347fa409ff0"

class TestMinPSamplingV262208(MinPSamplingBase):
    name = "min_p_sampling_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "6b036eff478f922939de52512a656a29f6a577dcdce3cf54da2f7670b5b1f88b"

# model:mistral-7b-v0.1, model:mixtral-8x7b, model:mixtral-8x22b
class TestMinPSamplingV32000(MinPSamplingBase):
    name = "min_p_sampling_v32000"
    axes = {"vocab_size": 32000}
    sha256 = "2bbdba96d2dc37b5ce42a6fd2d00cc4ee201b541db2b6f84507464d8362d2c7c"


# Draws one token a row in proportion to the softmax of the logits. No token is left
# out. Draws are those of torch's generator.
# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b, fi_api:flashinfer.sampling.sampling_from_logits
# Tolerances: those of reference_min_p_sampling.
def reference_sampling_from_logits():
    import torch


    @torch.no_grad()
    def run(logits: torch.Tensor) -> torch.Tensor:
        # Of exponential variables divided by the softmax the least is each token's as often
        # as the softmax says, and no sum is needed: the largest logit plus Gumbel noise.
        noise = torch.empty_like(logits).exponential_().log()
        return (logits - noise).argmax(dim=1)

    return run


class TestSamplingFromLogitsV128256(SamplingTests):
    name = "sampling_from_logits_v128256"
    reference = staticmethod(reference_sampling_from_logits)
    interface = INTERFACE_SAMPLING_FROM_LOGITS
    axes = {"vocab_size": 128256}
    sha256 = "a9720289c8944d848cc34e76e9b0a2b581c1e7231e87c666242c35e42b538ea0"


# Draws one token a row in proportion to the probabilities. No token is left out. Draws
# are those of torch's generator.
# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b, fi_api:flashinfer.sampling.sampling_from_probs
# Tolerances: those of reference_min_p_sampling.
def reference_sampling_from_probs():
    import torch


    @torch.no_grad()
    def run(probs: torch.Tensor) -> torch.Tensor:
        return torch.multinomial(probs, 1).squeeze(1)

    return run


class TestSamplingFromProbsV128256(SamplingTests):
    name = "sampling_from_probs_v128256"
    reference = staticmethod(reference_sampling_from_probs)
    interface = INTERFACE_SAMPLING_FROM_PROBS
    axes = {"vocab_size": 128256}
    sha256 = "21d6b5279608a82d7699ad4c033f0b5c6ef3a625cd47993edde782424d22d0d4"


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of tokens that tie
# at the boundary any may be kept. Draws are those of torch's generator.
# fi_api:flashinfer.sampling.top_k_sampling_from_probs
# Tolerances: those of reference_min_p_sampling.
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


class TopKSamplingFromProbsBase(SamplingTests):
    reference = staticmethod(reference_top_k_sampling_from_probs)
    interface = INTERFACE_TOP_K_SAMPLING_FROM_PROBS

class TestTopKSamplingFromProbsV100352(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v100352"  # model:granite-4.1-8b, model:phi-4-14b
    axes = {"vocab_size": 100352}
    sha256 = "f3add2a8d1ab24f1df0f1f0b51b8b363fde659a6df97be6ea06c22c758607b4c"

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestTopKSamplingFromProbsV128256(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "a49d1880a2d183edb3373a7031c17103cb44cca7dfefb594979c76811ae830cb"

class TestTopKSamplingFromProbsV129280(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v129280"  # model:deepseek-v3, model:deepseek-r1
    axes = {"vocab_size": 129280}
    sha256 = "f12d8a627db5e5875699aa35e4c3f09e6fdf2795af0884bc949f961bc79ffc24"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestTopKSamplingFromProbsV151936(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "8091c6af16a6564beffeadd4302e8308d72ea8de4862f8d98832127b4412decf"

class TestTopKSamplingFromProbsV152064(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v152064"  # model:qwen2.5-7b, model:qwen2.5-72b
    axes = {"vocab_size": 152064}
    sha256 = "71d002a723139999db563d0f0d326d233a9a42d1d3b4c93cd0859a875b9dfb95"

class TestTopKSamplingFromProbsV200064(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v200064"  # model:minimax-m2
    axes = {"vocab_size": 200064}
    sha256 = "037440e81ff95871954e9260641033f17f3fbb7be07339ef172e2c8b9e9b6d36"

class TestTopKSamplingFromProbsV201088(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v201088"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"vocab_size": 201088}
    sha256 = "996dc58063c51537b417999e8a8a894041ec4e9a84016b06f77f41eb55136068"

class TestTopKSamplingFromProbsV202048(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v202048"  # model:llama-4-scout
    axes = {"vocab_size": 202048}
    sha256 = "aca1da79594078de920f96f67f8302ac1aaa7ad736a807b7167e4e57e8501ea6"

class TestTopKSamplingFromProbsV262208(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "88d9098413753120deee36e23a8f7f1218c9d24e1d93bc5fc6ef921896558780"

# model:mistral-7b-v0.1, model:mixtral-8x7b, model:mixtral-8x22b
class TestTopKSamplingFromProbsV32000(TopKSamplingFromProbsBase):
    name = "top_k_sampling_from_probs_v32000"
    axes = {"vocab_size": 32000}
    sha256 = "9e9cd78cb7e716f01d7a112ad1708b6242ae003b5d4d317e70be6defe30849e6"


# Draws one token a row in proportion to the softmax of the logits that a filter keeps.
# The k most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# fi_api:flashinfer.sampling.top_k_top_p_sampling_from_logits
# Tolerances: those of reference_min_p_sampling.
def reference_top_k_top_p_sampling_from_logits():
    import torch


    @torch.no_grad()
    def run(logits: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
        vocab_size = logits.shape[1]
        # A k that is not positive leaves out nothing, nor does one beyond the vocabulary.
        k = torch.where(top_k > 0, top_k, vocab_size).clamp(max=vocab_size)
        # Ranks from the largest k on are of no row: no need to sort the whole vocabulary.
        kept_logits, tokens = logits.topk(int(k.max()), dim=1)
        rank = torch.arange(kept_logits.shape[1], device=logits.device)
        kept_logits = kept_logits.masked_fill(rank >= k.unsqueeze(1), float("-inf"))
        # The softmax is of the k tokens alone: p is a share of the mass that they hold.
        weights = kept_logits.softmax(dim=1)
        # A token is kept while those before it fall short of p: the one that crosses p is.
        before = weights.cumsum(dim=1) - weights
        kept = before < top_p.unsqueeze(1)
        # The most probable token is kept whatever p is, so p <= 0 means argmax.
        kept[:, 0] = True
        # multinomial() draws in proportion to the weights, whatever their sum.
        drawn = torch.multinomial(weights.masked_fill(~kept, 0.0), 1)
        return tokens.gather(1, drawn).squeeze(1)

    return run


class TopKTopPSamplingFromLogitsBase(SamplingTests):
    reference = staticmethod(reference_top_k_top_p_sampling_from_logits)
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_LOGITS

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestTopKTopPSamplingFromLogitsV128256(TopKTopPSamplingFromLogitsBase):
    name = "top_k_top_p_sampling_from_logits_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "977ce52ef5c45ec5df40ff3ec7f1351d02363730fa42d79dc31b4b220644e022"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestTopKTopPSamplingFromLogitsV151936(TopKTopPSamplingFromLogitsBase):
    name = "top_k_top_p_sampling_from_logits_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "a2309e0f0e5e58e68b432525bd81897f83d7fd0b3482b873e845cb5b5959f540"


# Draws one token a row in proportion to the probabilities that a filter keeps. The k
# most probable tokens are kept; a k that is not positive keeps all. Of these,
# renormalised: The most probable tokens are kept until they hold at least p of them,
# the token that crosses p included; p <= 0 keeps the most probable token alone. Of
# tokens that tie at the boundary any may be kept. Draws are those of torch's generator.
# fi_api:flashinfer.sampling.top_k_top_p_sampling_from_probs
# Tolerances: those of reference_min_p_sampling.
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


class TopKTopPSamplingFromProbsBase(SamplingTests):
    reference = staticmethod(reference_top_k_top_p_sampling_from_probs)
    interface = INTERFACE_TOP_K_TOP_P_SAMPLING_FROM_PROBS

# model:granite-4.1-8b, model:phi-4-14b
class TestTopKTopPSamplingFromProbsV100352(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v100352"
    axes = {"vocab_size": 100352}
    sha256 = "3106867b68f01c65fb5c340261f558c274aad01c1ebb2d316d50ea23b8b5d7e9"

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestTopKTopPSamplingFromProbsV128256(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "ab650ee09450784f9ed350f646069f3b8c26b9dec10e55bdf893863bae50e43d"

# model:deepseek-v3, model:deepseek-r1
class TestTopKTopPSamplingFromProbsV129280(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v129280"
    axes = {"vocab_size": 129280}
    sha256 = "0cc16b4c8c8efcfc6dd7b29f23a815d3e4d2a77652309d9fa5e420510256d996"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestTopKTopPSamplingFromProbsV151936(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "26bd1d9b239574e08ecf0350a20309d5f8d85b00574708fb24794beaadb2b21f"

# model:qwen2.5-7b, model:qwen2.5-72b
class TestTopKTopPSamplingFromProbsV152064(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v152064"
    axes = {"vocab_size": 152064}
    sha256 = "b4188f575f21004cff96b8aa5ff1247f41b0b3c51e3afdc3319f0b9dee3b0ddf"

class TestTopKTopPSamplingFromProbsV200064(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v200064"  # model:minimax-m2
    axes = {"vocab_size": 200064}
    sha256 = "1c5198ad674e584458408fd5e5dfb08d2475e90a7c1629d9b1ccfcad5e1a1d1c"

# model:gpt-oss-20b, model:gpt-oss-120b
class TestTopKTopPSamplingFromProbsV201088(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v201088"
    axes = {"vocab_size": 201088}
    sha256 = "f93d5fae78afe8125b1e56f5161887c2c87096a4b82d14b820c95f693c59d40d"

class TestTopKTopPSamplingFromProbsV202048(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v202048"  # model:llama-4-scout
    axes = {"vocab_size": 202048}
    sha256 = "49dfab8d712f6935e1267da17d134a7569fd56f31fc85b27afd8348acc0f65d1"

class TestTopKTopPSamplingFromProbsV262208(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "89a0fa654b22a29ea5a9ecb8f33d3eb2e8b8fab5bfd1923b1030e78a8a817509"

# model:mistral-7b-v0.1, model:mixtral-8x7b, model:mixtral-8x22b
class TestTopKTopPSamplingFromProbsV32000(TopKTopPSamplingFromProbsBase):
    name = "top_k_top_p_sampling_from_probs_v32000"
    axes = {"vocab_size": 32000}
    sha256 = "7c84e40fa97e56f4bb324602e2cafb99877e3deedf7bb8d978de5d8eacc83281"


# Draws one token a row in proportion to the probabilities that a filter keeps. The most
# probable tokens are kept until they hold at least p, the token that crosses p
# included; p <= 0 keeps the most probable token alone. Of tokens that tie at the
# boundary any may be kept. Draws are those of torch's generator.
# fi_api:flashinfer.sampling.top_p_sampling_from_probs
# Tolerances: those of reference_min_p_sampling.
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


class TopPSamplingFromProbsBase(SamplingTests):
    reference = staticmethod(reference_top_p_sampling_from_probs)
    interface = INTERFACE_TOP_P_SAMPLING_FROM_PROBS

class TestTopPSamplingFromProbsV100352(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v100352"  # model:granite-4.1-8b, model:phi-4-14b
    axes = {"vocab_size": 100352}
    sha256 = "bbec2d8740f225dd716d37be52772bf22b0de0279c8d31409f8835bb22166499"

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestTopPSamplingFromProbsV128256(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "f96db967ffc32ea3c70146fa2150aa98c7f010c57eab4529a7ac246c17652f16"

class TestTopPSamplingFromProbsV129280(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v129280"  # model:deepseek-v3, model:deepseek-r1
    axes = {"vocab_size": 129280}
    sha256 = "4c9e64ac2e60eabf2090ce2362f590762901432b797098fb0e36ae66a9802db2"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestTopPSamplingFromProbsV151936(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "1e3927bf189baccdb29eee43ae88b7556119634bd1bf8573464a6884545f3641"

class TestTopPSamplingFromProbsV152064(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v152064"  # model:qwen2.5-7b, model:qwen2.5-72b
    axes = {"vocab_size": 152064}
    sha256 = "b04d167cfc6c923b606aa402093efc42e81bc8c0cd60f6d2e43ab06b96eda5b5"

class TestTopPSamplingFromProbsV200064(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v200064"  # model:minimax-m2
    axes = {"vocab_size": 200064}
    sha256 = "dfe623c1963604f1ee9401cfe72d2ce3ffd9bfea500f93bea40cfb20d5c5e93d"

class TestTopPSamplingFromProbsV201088(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v201088"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"vocab_size": 201088}
    sha256 = "39a3ce189808ae8870d39a6ff54cc00f71deb9fb100a8c81c1e2db6a23a80eaf"

class TestTopPSamplingFromProbsV202048(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v202048"  # model:llama-4-scout
    axes = {"vocab_size": 202048}
    sha256 = "d28249a002ca458477b5de584997e9f16f140ea0cb5b53c471521345f5f8edb3"

class TestTopPSamplingFromProbsV262208(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "aca9b23bf3e01281bc69a03585e4dd46fc446c00d9e669368086f41eaf6162f5"

# model:mistral-7b-v0.1, model:mixtral-8x7b, model:mixtral-8x22b
class TestTopPSamplingFromProbsV32000(TopPSamplingFromProbsBase):
    name = "top_p_sampling_from_probs_v32000"
    axes = {"vocab_size": 32000}
    sha256 = "d4f119185df3e0a7b2d864cc97dc986eeba5bc88a1ebf202be5063ec775d55af"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
