"""moe_exchange: rows to the ranks of their experts, and the sums of what these return.

A case holds what all ranks have: token t of rank r has the number r * tokens_per_rank + t.
Expert e is on rank e // (num_experts / world_size). A rank gets a token once, however many
of its experts the token has. What is sent back is added in float32 and rounded once.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.moe_exchange.relations import exchange_relations
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_COPIED = "bits are copied, none is computed"
_ONCE = (
    "float32 sums and one rounding to bfloat16: half an ulp is 2^-8 of a value at most; "
    "sums of up to 16 rows of 5 have errors of 2^-24 of 80, which is 5e-6"
)
TOLERANCES = (
    *(Override(output, EXACT, _COPIED) for output in ("received", "sources", "counts")),
    Override("combined", Tolerance(4e-3, 1e-5, 5e-6), _ONCE, source="oracle"),
    Override(
        "combined",
        Tolerance(8e-3, 1e-5, 5e-6),
        f"{_ONCE}; both sides round nearly the same value, to neighbours at most",
    ),
)
# tokens of a rank, the size, and how experts are chosen
_CASES: dict[str, tuple[str, int, str]] = {
    "one-token": ("small", 1, ""),
    "few-tokens": ("small", 3, ""),
    "one-rank-for-all": ("small", 2, "last"),
    "without-experts": ("small", 3, "none"),
    "batch": ("medium", 16, ""),
    "past-limits": (LIMITS, 270, ""),
    "long-batch": ("large", 512, ""),
}


def is_dispatch(definition: Definition) -> bool:
    """Return whether rows are sent to experts, not back from them."""
    return "topk_ids" in definition.interface.inputs


def cases(definition: Definition) -> list[Case]:
    """Return few tokens, all for one rank, some for none, and batches."""
    ranks = definition.axes["world_size"]
    return [
        Case(name, size, axes_of(ranks, tokens), {"experts": experts})
        for name, (size, tokens, experts) in _CASES.items()
    ]


def axes_of(ranks: int, tokens: int) -> dict[str, int]:
    """Return the axes of so many tokens on each rank."""
    return {"tokens_per_rank": tokens, "num_places": ranks * tokens}


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return rows bfloat16 [world_size, rows, hidden_size], and ids or numbers int32.

    Of a token no expert occurs twice. Numbers of tokens behind a rank's last are -1, and
    rows there are as loud as others.
    """
    axes = {**definition.axes, **case.axes}
    ranks, places, hidden = (
        axes[n] for n in ("world_size", "num_places", "hidden_size")
    )
    rows = stream.child("rows")
    if is_dispatch(definition):
        tokens, top_k = axes["tokens_per_rank"], axes["top_k"]
        ids = _experts(definition, case, stream.child("ids"), places, top_k)
        return {
            "hidden_states": rows.values((ranks, tokens, hidden)).to(torch.bfloat16),
            "topk_ids": ids.view(ranks, tokens, top_k),
        }
    numbers = torch.full((ranks, places), -1)
    draws = stream.child("numbers")
    for rank in range(ranks):
        share = 1.0 if case.params["experts"] == "last" else 0.6
        if case.params["experts"] == "none" and rank % 2:
            continue
        chosen = draws.child(f"{rank}").permutation(places)[
            : max(int(share * places), 1)
        ]
        numbers[rank, : len(chosen)] = chosen.sort().values
    return {
        "expert_rows": rows.values((ranks, places, hidden)).to(torch.bfloat16),
        "sources": numbers.int(),
    }


def _experts(
    definition: Definition, case: Case, stream: Stream, count: int, top_k: int
) -> torch.Tensor:
    """Return the experts of each token: int32 [count, top_k]."""
    experts = definition.constants["num_experts"]
    share = experts // definition.axes["world_size"]
    kind = case.params["experts"]
    ids = torch.stack(
        [stream.child(f"{n}").permutation(experts)[:top_k] for n in range(count)]
    )
    if kind == "last":
        ids = experts - share + ids % share
    if kind == "none":
        # or beside one beyond the last, on the first rank alone
        ids = ids % share
        ids[::2] = -1
        ids[1::2, 0] = experts
    else:
        # both ends
        ids[0, 0], ids[-1, -1] = 0, experts - 1
    return ids.int()


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return what each rank gets, or the sums in float64: token by token."""
    if is_dispatch(definition):
        return _dispatched(definition, inputs)
    rows, sources = inputs["expert_rows"].double(), inputs["sources"]
    ranks, places, hidden = rows.shape
    total = torch.zeros(places, hidden, dtype=rows.dtype, device=rows.device)
    for rank, numbers in enumerate(sources.tolist()):
        for place, number in enumerate(numbers):
            if 0 <= number < places:
                total[number] += rows[rank, place]
    return torch.stack(total.chunk(ranks))


def _dispatched(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    states, experts = inputs["hidden_states"], definition.constants["num_experts"]
    ranks, tokens, hidden = states.shape
    share = experts // ranks
    queues: list[list[int]] = [[] for _ in range(ranks)]
    for rank, rows in enumerate(inputs["topk_ids"].tolist()):
        for token, ids in enumerate(rows):
            for goal in sorted({e // share for e in ids if 0 <= e < experts}):
                queues[goal].append(rank * tokens + token)
    places = ranks * tokens
    received = torch.zeros(ranks, places, hidden, dtype=torch.float64)
    sources = torch.full((ranks, places), -1.0, dtype=torch.float64)
    for goal, queue in enumerate(queues):
        for place, number in enumerate(queue):
            received[goal, place] = states[number // tokens, number % tokens].double()
            sources[goal, place] = number
    counts = torch.tensor([float(len(queue)) for queue in queues])
    device = states.device
    return received.to(device), sources.to(device), counts.double().to(device)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's gather of rows, or its sum by index, on one GPU for all ranks."""
    if is_dispatch(definition):
        rewrites = (
            "inputs rewritten: ids become places of rows, as dispatchers do before"
        )
        return (Backend("index_select", rewrites=rewrites),)
    return (Backend("index_add", rewrites="outputs rewritten: sums are rounded"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return what index_select or index_add gives; rows behind the last are cleared."""
    if backend == "index_select":
        return _selected(definition, inputs)
    rows, numbers = inputs["expert_rows"], inputs["sources"].flatten().long()
    ranks, places, hidden = rows.shape
    # rows of no token get a place of their own
    numbers = numbers.where((numbers >= 0) & (numbers < places), places)
    shape = (places + 1, hidden)
    total = torch.zeros(shape, dtype=torch.float32, device=rows.device)
    total.index_add_(0, numbers, rows.flatten(0, 1).float())
    return total[:-1].to(rows.dtype).view(ranks, places // ranks, hidden)


def _selected(definition: Definition, inputs: dict[str, Any]) -> Any:
    states, ids = inputs["hidden_states"], inputs["topk_ids"].flatten(0, 1)
    ranks, experts = len(states), definition.constants["num_experts"]
    goals = torch.arange(ranks, device=ids.device)[:, None, None]
    share = experts // ranks
    hits = ((ids >= goals * share) & (ids < (goals + 1) * share)).any(-1)
    counts = hits.sum(1)
    # those that a rank gets stand first, in their order
    order = hits.int().argsort(dim=1, descending=True, stable=True)
    behind = torch.arange(order.shape[1], device=ids.device) >= counts[:, None]
    rows = states.flatten(0, 1).index_select(0, order.flatten())
    received = rows.view(*order.shape, -1).masked_fill(behind[:, :, None], 0.0)
    return received, order.masked_fill(behind, -1).int(), counts.int()


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=exchange_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)
