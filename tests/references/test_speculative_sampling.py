"""Reference tests of op_type speculative_sampling.

Rendered: don't edit. `gen-tests --op-type speculative_sampling` renders this file anew.

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

from generator.ops.op_types.speculative_sampling.chains import chain_case, chain_inputs
from generator.ops.op_types.speculative_sampling.law import (
    ChainDistribution,
    chain_laws,
)
from generator.ops.op_types.speculative_sampling.relations import chain_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.speculative_sampling.law
# policies: generator.ops.op_types.speculative_sampling.law
# relations: generator.ops.op_types.speculative_sampling.chains,
# generator.ops.op_types.speculative_sampling.relations


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


# ---- the interfaces

INTERFACE_CHAIN_SPECULATIVE_SAMPLING = Interface(
    inputs={
        "draft_probs": "float32[batch_size, num_speculative, vocab_size]",
        "draft_token_ids": "int32[batch_size, num_speculative]",
        "target_probs": "float32[batch_size, num_speculative_plus_1, vocab_size]",
    },
    outputs={"accepted_token_ids": "int32[batch_size, num_speculative_plus_1]"},
    constraints=("num_speculative_plus_1 == num_speculative + 1",),
)

# ---- the tests


class SpeculativeSamplingTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of speculative_sampling share."""

    op_type = "speculative_sampling"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# Reasons:
# (1) Draws are outcomes of each chain's law, and no chi-squared test, at 1e-6 in all,
# refuses it (generator.ops.op_types.speculative_sampling.law).


# Accepts the drafted tokens of each chain in order, each with the probability target /
# draft, until the first rejection; then draws one token from what the target has more
# than the draft, or from the target's last row where all were accepted. -1 stands
# behind it. Draws are those of torch's generator.
# fi_api:flashinfer.sampling.chain_speculative_sampling
# Tolerances:
#   accepted_token_ids  every source  by  ChainDistribution    (1)
def reference_chain_speculative_sampling():
    import torch


    @torch.no_grad()
    def run(
        draft_probs: torch.Tensor,
        draft_token_ids: torch.Tensor,
        target_probs: torch.Tensor,
    ) -> torch.Tensor:
        batch_size, drafts = draft_token_ids.shape
        tokens = draft_token_ids.long().unsqueeze(2)
        drafted = draft_probs.gather(2, tokens).squeeze(2)
        wanted = target_probs[:, :drafts].gather(2, tokens).squeeze(2)
        # accepted with the probability target / draft, at most 1
        accepted = torch.rand_like(drafted) * drafted < wanted
        # the first rejection ends the chain
        emitted = accepted.long().cumprod(dim=1).sum(dim=1)
        rows = torch.arange(batch_size, device=draft_probs.device)
        residual = target_probs[rows, emitted].clone()
        # behind a rejection what the draft had of a token is taken off it; a chain that
        # was accepted whole has no draft for its last token
        cut = emitted < drafts
        residual[cut] -= draft_probs[rows[cut], emitted[cut]]
        # multinomial() draws in proportion to the weights, whatever their sum
        drawn = torch.multinomial(residual.clamp(min=0.0), 1)
        place = torch.arange(drafts + 1, device=draft_probs.device)
        padded = torch.cat([draft_token_ids, draft_token_ids[:, :1]], dim=1)
        result = torch.where(place < emitted.unsqueeze(1), padded, -1)
        result[rows, emitted] = drawn.squeeze(1).to(result.dtype)
        return result

    return run


class ChainSpeculativeSamplingBase(SpeculativeSamplingTests):
    reference = staticmethod(reference_chain_speculative_sampling)
    interface = INTERFACE_CHAIN_SPECULATIVE_SAMPLING

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestChainSpeculativeSamplingV129280(ChainSpeculativeSamplingBase):
    name = "chain_speculative_sampling_v129280"
    axes = {"vocab_size": 129280}
    sha256 = "8d1260c1665a2f0211e7add34fa10d904209e859c2ce5b906f1a9a8999ac6394"

class TestChainSpeculativeSamplingV151552(ChainSpeculativeSamplingBase):
    name = "chain_speculative_sampling_v151552"  # model:glm-4.6
    axes = {"vocab_size": 151552}
    sha256 = "80214fb61df0ed234cf29a75742a03177466c1762057fe01728047b820bdc2af"

class TestChainSpeculativeSamplingV151936(ChainSpeculativeSamplingBase):
    name = "chain_speculative_sampling_v151936"  # model:qwen3-next-80b-a3b
    axes = {"vocab_size": 151936}
    sha256 = "9c8b80c1b50291d282ff11a208297eb193bba3de2ca43a7a3fb54f6ea715cc33"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
