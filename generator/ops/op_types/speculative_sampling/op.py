"""speculative_sampling: accept or reject the drafts of a chain, and draw what follows.

A draft is accepted with the probability target / draft of its token, the first rejection
ends the chain, and one token is drawn behind the accepted ones: from what the target has
more than the draft, or from the target where all were accepted. -1 stands behind it.

A batch has many rows of few kinds, and run() is called `calls` times with different
seeds. The outcomes of each kind, pairs of a length and a last token, are tested against
their exact law at a significance of 1e-6 for the whole comparison. A chain of small
cases is drawn 96 times or more: an outcome of 1/5 that never comes is a statistic of
96/4 = 24 at one degree of freedom, p = 1e-6, and one draw of an outcome without any
probability fails. Medium cases draw 2048 times: 5 % moved between two outcomes of 1/4
have a noncentrality of 2048 · 0.05² · 8 = 41; large ones, 49152 draws, 2 %: 157.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.op_types.speculative_sampling.chains import chain_case, chain_inputs
from generator.ops.op_types.speculative_sampling.law import (
    ChainDistribution,
    chain_laws,
)
from generator.ops.op_types.speculative_sampling.relations import chain_relations
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
from kernel_judge.subject import Kernel, Op


def _without_draft(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return the rows with a token that its draft could not draw: bool [batch_size].

    SGLang's kernel rejects such a token whatever the target says.
    """
    tokens = inputs["draft_token_ids"].long()[:, :, None]
    drafted: torch.Tensor = inputs["draft_probs"].gather(2, tokens)
    return (drafted <= 0).flatten(1).any(dim=1)


POLICIES = {"accepted_token_ids": ChainDistribution({"sglang": _without_draft})}
# POLICIES compares draws
TOLERANCES = ()


def cases(definition: Definition) -> list[Case]:
    """Return chains of one to four drafts, and what is certain of these."""
    # 3/4 accepted; 9/10; 2/5, with a token behind that is drawn from a tail
    some = (("steps", 0, "half"), ("half", 4, "steps"), ("half", 9, "steps"))
    return [
        chain_case(
            "one-draft",
            "small",
            12,
            tuple(((draft,), "ends", 8) for draft in some),
        ),
        chain_case(
            "three-drafts",
            "small",
            12,
            ((some, "zeros", 16), ((some[2], some[0], some[0]), "steps", 8)),
        ),
        # drafts that the target has as probable or more, in which u decides nothing
        chain_case(
            "all-accepted",
            "small",
            8,
            (
                ((("steps", 2, "steps"), ("tied", 1, "steps")), "zeros", 8),
                ((("zeros", 9, "steps"), ("half", 0, "steps")), "certain", 4),
            ),
        ),
        # tokens that the target never draws, at the first place and behind another
        chain_case(
            "none-accepted",
            "small",
            8,
            (
                ((("steps", 9, "zeros"), ("steps", 3, "steps")), "certain", 8),
                ((("steps", 1, "steps"), ("even", 20, "zeros")), "certain", 8),
            ),
        ),
        chain_case(
            "vocabulary-ends",
            "small",
            8,
            (((("zeros", 0, "ends"),), "ends", 8), ((("half", 1, "ends"),), "ends", 6)),
        ),
        chain_case(
            "batch",
            "medium",
            64,
            (((some[0], some[2]), "half", 32), ((some[2], some[1]), "even", 16)),
        ),
        chain_case(
            "past-limits",
            LIMITS,
            4,
            (
                ((some[2], some[0], some[0], some[1]), "steps", 128),
                ((("zeros", 9, "steps"), *[("half", 0, "steps")] * 3), "certain", 4),
            ),
        ),
        chain_case(
            "two-percent",
            "large",
            1536,
            (((some[0], some[2]), "halves", 32), ((some[2], some[0]), "even", 16)),
        ),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs of chains; see `chain_inputs` for their shapes."""
    return chain_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return the exact law of every row, computed in float64."""
    return chain_laws(inputs)


def relations(definition: Definition) -> list[Relation]:
    """Return what holds of draws under renamed tokens, and of the first token."""
    return chain_relations(definition, make_inputs)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return FlashInfer's tokens; it counts accepted and emitted ones besides."""
    from flashinfer import sampling

    tokens: torch.Tensor
    tokens, _, _ = sampling.chain_speculative_sampling(
        inputs["draft_probs"], inputs["draft_token_ids"], inputs["target_probs"]
    )
    return tokens


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's Triton kernel."""
    rewrites = "outputs rewritten: slots behind the emitted tokens are set to -1"
    return (Backend("triton", min_sm=80, needs=("triton",), rewrites=rewrites),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the tokens of SGLang's kernel, whose first slot is the chain's root."""
    from sglang.kernels.ops.speculative import reject_sampling

    drafts = inputs["draft_token_ids"]
    batch, device = len(drafts), drafts.device
    slots = drafts.shape[1] + 1
    root = torch.zeros_like(drafts[:, :1])
    places = torch.arange(batch * slots, device=device).view(batch, slots)
    predicts = torch.full((batch * slots,), -1, dtype=torch.int32, device=device)
    chosen = torch.full((batch, slots), -1, dtype=torch.int32, device=device)
    emitted = torch.zeros(batch, dtype=torch.int32, device=device)
    reject_sampling.chain_speculative_sampling_triton(
        predicts,
        chosen,
        emitted,
        torch.cat([root, drafts], dim=1).long(),
        places,
        None,
        None,
        torch.rand(batch, slots, device=device),
        torch.rand(batch, device=device),
        inputs["target_probs"],
        inputs["draft_probs"],
        1.0,
        1.0,
        True,
    )
    kept = torch.arange(slots, device=device) <= emitted[:, None]
    return torch.where(kept, predicts.view(batch, slots), -1)


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
