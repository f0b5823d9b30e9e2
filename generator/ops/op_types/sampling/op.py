"""sampling: draw one token a row from all, or from those that filters keep.

Min-p keeps the tokens that have at least the share p of the most probable one's. Top-k
keeps the k most probable tokens, all if k <= 0. Top-p then keeps the most probable
of these until they hold at least the share p: it keeps the token that crosses p, and only
the most probable one if p <= 0. At a boundary any of the tied tokens may be kept:
FlashInfer keeps all, an implementation that sorts keeps as many as fit.

A batch has many rows of few kinds, and run() is called `calls` times with different
seeds. The draws of each kind are tested against its exact law, at a significance of 1e-6
for the whole comparison; that of logits is the law of their softmax. For top-k and top-p
this detects, with a probability above 0.99:

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
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
from kernel_judge.subject import Kernel, Op


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
