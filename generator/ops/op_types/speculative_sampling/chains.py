"""Chains of drafts: which distributions they were drawn from, and what they become."""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.sampling.heads import falling_probabilities
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# of each draft: its distribution, its token's rank there, and the target's
# distribution; then that of the token behind all drafts; then the number of rows
Chain = tuple[tuple[tuple[str, int, str], ...], str, int]


def chain_case(name: str, size: str, calls: int, chains: tuple[Chain, ...]) -> Case:
    """Return a case of some kinds of chains, all of one length."""
    (drafts,) = {len(chain) for chain, _, _ in chains}
    axes = {
        "batch_size": sum(count for *_, count in chains),
        "num_speculative": drafts,
        "num_speculative_plus_1": drafts + 1,
    }
    return Case(name, size, axes, {"calls": calls, "chains": chains})


def chain_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return a case's inputs, its rows shuffled.

    draft_probs float32 [batch_size, drafts, vocab_size], draft_token_ids int32
    [batch_size, drafts], target_probs float32 [batch_size, drafts + 1, vocab_size].
    Draft and target share an order of the tokens, another one at each place.
    """
    vocab_size = definition.axes["vocab_size"]
    batch, drafts = case.axes["batch_size"], case.axes["num_speculative"]
    draft = torch.empty(batch, drafts, vocab_size)
    target = torch.empty(batch, drafts + 1, vocab_size)
    tokens = torch.empty(batch, drafts, dtype=torch.int32)
    rows = iter(stream.child("order").permutation(batch).tolist())
    chains = case.params.get("chains", ())
    if not chains or chain_case(case.name, case.size, 1, chains).axes != case.axes:
        # a workload has rows and drafts of its own: here every token may be one
        chains = (((("zipf", 0, "half"),) * drafts, "half", batch),)
    for number, (chain, last, count) in enumerate(chains):
        mine = [next(rows) for _ in range(count)]
        for place, (law, rank, wanted) in enumerate((*chain, ("", 0, last))):
            order = _order(law + wanted, vocab_size, stream.child(f"{number} {place}"))
            target[mine, place] = _placed(wanted, order)
            if place < drafts:
                draft[mine, place] = _placed(law, order)
                tokens[mine, place] = int(order[rank])
    return {"draft_probs": draft, "draft_token_ids": tokens, "target_probs": target}


def _order(names: str, vocab_size: int, stream: Stream) -> torch.Tensor:
    order = stream.permutation(vocab_size)
    if "ends" not in names:
        return order
    # the most probable two are the vocabulary's last and first
    inner = order[(order != 0) & (order != vocab_size - 1)]
    return torch.cat([torch.tensor([vocab_size - 1, 0]), inner])


def _placed(name: str, order: torch.Tensor) -> torch.Tensor:
    falling = falling_probabilities(name, len(order))
    return torch.empty(len(order)).index_copy_(0, order, falling)
