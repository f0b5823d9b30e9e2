"""Reference tests of op_type moe_exchange.

Rendered: don't edit. `gen-tests --op-type moe_exchange` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- PyTorch's CUDA kernel, live, on a CUDA device
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
from typing import Any

import torch

from generator.ops.op_types.moe_exchange.relations import exchange_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.moe_exchange.relations

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


# ---- the interfaces

INTERFACE_MOE_COMBINE = Interface(
    inputs={
        "expert_rows": "bfloat16[world_size, num_places, hidden_size]",
        "sources": "int32[world_size, num_places]",
    },
    outputs={"combined": "bfloat16[world_size, tokens_per_rank, hidden_size]"},
    constraints=("num_places == world_size * tokens_per_rank",),
)
INTERFACE_MOE_DISPATCH = Interface(
    inputs={
        "hidden_states": "bfloat16[world_size, tokens_per_rank, hidden_size]",
        "topk_ids": "int32[world_size, tokens_per_rank, top_k]",
    },
    outputs={
        "received": "bfloat16[world_size, num_places, hidden_size]",
        "sources": "int32[world_size, num_places]",
        "counts": "int32[world_size]",
    },
    constraints=("num_places == world_size * tokens_per_rank",),
)

# ---- the tests


class MoeExchangeTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of moe_exchange share."""

    op_type = "moe_exchange"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) float32 sums and one rounding to bfloat16.
# (2) bits are copied, none is computed.


# What world_size ranks computed for tokens, sent back and added up in float32, rounded
# to bfloat16 once: sources has the number of the token of each row, and rows of other
# numbers are nobody's. One tensor holds what all ranks have; in serving each has its
# part. Token t of rank r has the number r * tokens_per_rank + t. A rank's row is the
# weighted sum of its experts.
# Tolerances:
#   output    source   rtol   atol   NMSE   reason
#   combined  oracle   0.004  1e-05  5e-06  (1)
#   combined  pytorch  0.008  1e-05  5e-06  (1)
def reference_moe_combine():
    import torch


    @torch.no_grad()
    def run(expert_rows: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
        world_size, num_places, hidden_size = expert_rows.shape
        # Token t of rank r has the number r * tokens_per_rank + t; other numbers are none's.
        numbers = sources.flatten().long()
        is_token = (numbers >= 0) & (numbers < num_places)
        rows = expert_rows.flatten(0, 1)[is_token].float()
        total = torch.zeros(
            num_places, hidden_size, dtype=torch.float32, device=expert_rows.device
        )
        total.index_add_(0, numbers[is_token], rows)
        combined = total.to(expert_rows.dtype)
        return combined.reshape(world_size, num_places // world_size, hidden_size)

    return run


class MoeCombineBase(MoeExchangeTests):
    reference = staticmethod(reference_moe_combine)
    interface = INTERFACE_MOE_COMBINE

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, ep:16
class TestMoeCombineEp16H7168(MoeCombineBase):
    name = "moe_combine_ep16_h7168"
    axes = {"world_size": 16, "hidden_size": 7168}
    sha256 = "630fa99593c82e0c8182aa5a42e801358269eeae3880073ecf4684f7c883d13e"

class TestMoeCombineEp4H2048(MoeCombineBase):
    name = "moe_combine_ep4_h2048"  # model:qwen3-30b-a3b, ep:4
    axes = {"world_size": 4, "hidden_size": 2048}
    sha256 = "ee186b12bf5b43227534fda2b259ed3935b050a89535e556f9e8894b133900a5"

class TestMoeCombineEp8H2880(MoeCombineBase):
    name = "moe_combine_ep8_h2880"  # model:gpt-oss-120b, ep:8
    axes = {"world_size": 8, "hidden_size": 2880}
    sha256 = "cd47ca9fdb70762b791b2b0253eeb40e3ded7b774c253dd7dcaaf870ed3f4eff"

class TestMoeCombineEp8H3072(MoeCombineBase):
    name = "moe_combine_ep8_h3072"  # model:minimax-m2, ep:8
    axes = {"world_size": 8, "hidden_size": 3072}
    sha256 = "99e3b66530522bd041953ac2e6561670bb6f9854c34643b9c40c3fe9c1687792"

# model:qwen3-235b-a22b, model:qwen3.5-397b-a17b, ep:8
class TestMoeCombineEp8H4096(MoeCombineBase):
    name = "moe_combine_ep8_h4096"
    axes = {"world_size": 8, "hidden_size": 4096}
    sha256 = "c69782b667f60b643f8103b31dfc73bef2e1aa1625bfdc40f3546867280d4190"

class TestMoeCombineEp8H5120(MoeCombineBase):
    name = "moe_combine_ep8_h5120"  # model:glm-4.6, ep:8
    axes = {"world_size": 8, "hidden_size": 5120}
    sha256 = "23ef2863957273847b7527c630ee686fd037cd378d0eb336d1f595f5c5dc9019"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2, ep:8
class TestMoeCombineEp8H7168(MoeCombineBase):
    name = "moe_combine_ep8_h7168"
    axes = {"world_size": 8, "hidden_size": 7168}
    sha256 = "db22ef419026da08c5b8d47e26613579146713748d31bd15ac358f43d61b825b"


# A rank gets a token once. Rows stand in the order of their numbers, which are in
# sources, and behind the last are zeros and -1. One tensor holds what all ranks have;
# in serving each has its part. Token t of rank r has the number r * tokens_per_rank +
# t.
# Tolerances:
#   output    source           rtol   atol  NMSE  reason
#   received  oracle, pytorch  exact              (2)
#   sources   oracle, pytorch  exact              (2)
#   counts    oracle, pytorch  exact              (2)
def reference_moe_dispatch_topk8_e256():
    import torch

    NUM_EXPERTS = 256


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, topk_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        world_size, tokens_per_rank, hidden_size = hidden_states.shape
        num_places = world_size * tokens_per_rank
        # Token t of rank r has the number r * tokens_per_rank + t.
        rows = hidden_states.reshape(num_places, hidden_size)
        ids = topk_ids.reshape(num_places, -1)
        is_expert = (ids >= 0) & (ids < NUM_EXPERTS)
        ranks = torch.where(is_expert, ids // (NUM_EXPERTS // world_size), -1)

        received = rows.new_zeros(world_size, num_places, hidden_size)
        sources = ids.new_full((world_size, num_places), -1)
        counts = ids.new_zeros(world_size)
        for rank in range(world_size):
            # Several experts of one rank get one row; rows stand in the order of numbers.
            wanted = (ranks == rank).any(dim=1).nonzero().squeeze(1)
            received[rank, : len(wanted)] = rows[wanted]
            sources[rank, : len(wanted)] = wanted.to(sources.dtype)
            counts[rank] = len(wanted)
        return received, sources, counts

    return run


class MoeDispatchTopk8E256Base(MoeExchangeTests):
    reference = staticmethod(reference_moe_dispatch_topk8_e256)
    interface = INTERFACE_MOE_DISPATCH
    axes = {"top_k": 8}
    constants = ("num_experts",)
    NUM_EXPERTS = 256  # "e256" in the name

# Tokens of 16 ranks sent to the ranks of their experts: expert e is on rank e // 16,
# and an id that is none of 0 to 255 is nowhere.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, ep:16
class TestMoeDispatchEp16Topk8E256H7168(MoeDispatchTopk8E256Base):
    name = "moe_dispatch_ep16_topk8_e256_h7168"
    axes = {"world_size": 16, "hidden_size": 7168}
    sha256 = "c1fcef955c60f3ac20a04f287f2e0275794fd14fd0b55797207dd3ab3ef0b671"

# The next 2: Tokens of 8 ranks sent to the ranks of their experts: expert e is on rank
# e // 32, and an id that is none of 0 to 255 is nowhere.
class TestMoeDispatchEp8Topk8E256H3072(MoeDispatchTopk8E256Base):
    name = "moe_dispatch_ep8_topk8_e256_h3072"  # model:minimax-m2, ep:8
    axes = {"world_size": 8, "hidden_size": 3072}
    sha256 = "312ff6150d7be0668d6ec039c3222d0e20b3d79a71379bbbce4409489dd5bef0"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, ep:8
class TestMoeDispatchEp8Topk8E256H7168(MoeDispatchTopk8E256Base):
    name = "moe_dispatch_ep8_topk8_e256_h7168"
    axes = {"world_size": 8, "hidden_size": 7168}
    sha256 = "58a54d4d29ba419c858617a40cb165962642fc0b8917dd713d295c1a2fc050b2"


# A rank gets a token once. Rows stand in the order of their numbers, which are in
# sources, and behind the last are zeros and -1. One tensor holds what all ranks have;
# in serving each has its part. Token t of rank r has the number r * tokens_per_rank +
# t.
# Tolerances: those of reference_moe_dispatch_topk8_e256.
def reference_moe_dispatch_e128():
    import torch

    NUM_EXPERTS = 128


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, topk_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        world_size, tokens_per_rank, hidden_size = hidden_states.shape
        num_places = world_size * tokens_per_rank
        # Token t of rank r has the number r * tokens_per_rank + t.
        rows = hidden_states.reshape(num_places, hidden_size)
        ids = topk_ids.reshape(num_places, -1)
        is_expert = (ids >= 0) & (ids < NUM_EXPERTS)
        ranks = torch.where(is_expert, ids // (NUM_EXPERTS // world_size), -1)

        received = rows.new_zeros(world_size, num_places, hidden_size)
        sources = ids.new_full((world_size, num_places), -1)
        counts = ids.new_zeros(world_size)
        for rank in range(world_size):
            # Several experts of one rank get one row; rows stand in the order of numbers.
            wanted = (ranks == rank).any(dim=1).nonzero().squeeze(1)
            received[rank, : len(wanted)] = rows[wanted]
            sources[rank, : len(wanted)] = wanted.to(sources.dtype)
            counts[rank] = len(wanted)
        return received, sources, counts

    return run


class MoeDispatchE128Base(MoeExchangeTests):
    reference = staticmethod(reference_moe_dispatch_e128)
    interface = INTERFACE_MOE_DISPATCH
    constants = ("num_experts",)
    NUM_EXPERTS = 128  # "e128" in the name

# Tokens of 4 ranks sent to the ranks of their experts: expert e is on rank e // 32, and
# an id that is none of 0 to 127 is nowhere.
class TestMoeDispatchEp4Topk8E128H2048(MoeDispatchE128Base):
    name = "moe_dispatch_ep4_topk8_e128_h2048"  # model:qwen3-30b-a3b, ep:4
    axes = {"world_size": 4, "hidden_size": 2048, "top_k": 8}
    sha256 = "a8a93a9272cb8800fe818dd08a1aa48b646ad436a7168892abab04fd78933ed9"

# The next 2: Tokens of 8 ranks sent to the ranks of their experts: expert e is on rank
# e // 16, and an id that is none of 0 to 127 is nowhere.
class TestMoeDispatchEp8Topk4E128H2880(MoeDispatchE128Base):
    name = "moe_dispatch_ep8_topk4_e128_h2880"  # model:gpt-oss-120b, ep:8
    axes = {"world_size": 8, "hidden_size": 2880, "top_k": 4}
    sha256 = "87c9f391c77076c33123f415aa727acfef7ce68857aab25fcb18489c41c0c052"

class TestMoeDispatchEp8Topk8E128H4096(MoeDispatchE128Base):
    name = "moe_dispatch_ep8_topk8_e128_h4096"  # model:qwen3-235b-a22b, ep:8
    axes = {"world_size": 8, "hidden_size": 4096, "top_k": 8}
    sha256 = "9e13dee94e27537b7af6adb4aa24e196b8af74876b061c8051d3fd1b1a9d57ec"


# Tokens of 8 ranks sent to the ranks of their experts: expert e is on rank e // 64, and
# an id that is none of 0 to 511 is nowhere. A rank gets a token once. Rows stand in the
# order of their numbers, which are in sources, and behind the last are zeros and -1.
# One tensor holds what all ranks have; in serving each has its part. Token t of rank r
# has the number r * tokens_per_rank + t.
# model:qwen3.5-397b-a17b, ep:8
# Tolerances: those of reference_moe_dispatch_topk8_e256.
def reference_moe_dispatch_topk10_e512_h4096():
    import torch

    NUM_EXPERTS = 512


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, topk_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        world_size, tokens_per_rank, hidden_size = hidden_states.shape
        num_places = world_size * tokens_per_rank
        # Token t of rank r has the number r * tokens_per_rank + t.
        rows = hidden_states.reshape(num_places, hidden_size)
        ids = topk_ids.reshape(num_places, -1)
        is_expert = (ids >= 0) & (ids < NUM_EXPERTS)
        ranks = torch.where(is_expert, ids // (NUM_EXPERTS // world_size), -1)

        received = rows.new_zeros(world_size, num_places, hidden_size)
        sources = ids.new_full((world_size, num_places), -1)
        counts = ids.new_zeros(world_size)
        for rank in range(world_size):
            # Several experts of one rank get one row; rows stand in the order of numbers.
            wanted = (ranks == rank).any(dim=1).nonzero().squeeze(1)
            received[rank, : len(wanted)] = rows[wanted]
            sources[rank, : len(wanted)] = wanted.to(sources.dtype)
            counts[rank] = len(wanted)
        return received, sources, counts

    return run


class TestMoeDispatchEp8Topk10E512H4096(MoeExchangeTests):
    name = "moe_dispatch_ep8_topk10_e512_h4096"
    reference = staticmethod(reference_moe_dispatch_topk10_e512_h4096)
    interface = INTERFACE_MOE_DISPATCH
    axes = {"world_size": 8, "hidden_size": 4096, "top_k": 10}
    constants = ("num_experts",)
    NUM_EXPERTS = 512  # "e512" in the name
    sha256 = "57d0b17f9a0e005f885e576e7fcaedded9d0a32d0647a59d20ae63e03302d1dd"


# Tokens of 8 ranks sent to the ranks of their experts: expert e is on rank e // 20, and
# an id that is none of 0 to 159 is nowhere. A rank gets a token once. Rows stand in the
# order of their numbers, which are in sources, and behind the last are zeros and -1.
# One tensor holds what all ranks have; in serving each has its part. Token t of rank r
# has the number r * tokens_per_rank + t.
# model:glm-4.6, ep:8
# Tolerances: those of reference_moe_dispatch_topk8_e256.
def reference_moe_dispatch_topk8_e160_h5120():
    import torch

    NUM_EXPERTS = 160


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, topk_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        world_size, tokens_per_rank, hidden_size = hidden_states.shape
        num_places = world_size * tokens_per_rank
        # Token t of rank r has the number r * tokens_per_rank + t.
        rows = hidden_states.reshape(num_places, hidden_size)
        ids = topk_ids.reshape(num_places, -1)
        is_expert = (ids >= 0) & (ids < NUM_EXPERTS)
        ranks = torch.where(is_expert, ids // (NUM_EXPERTS // world_size), -1)

        received = rows.new_zeros(world_size, num_places, hidden_size)
        sources = ids.new_full((world_size, num_places), -1)
        counts = ids.new_zeros(world_size)
        for rank in range(world_size):
            # Several experts of one rank get one row; rows stand in the order of numbers.
            wanted = (ranks == rank).any(dim=1).nonzero().squeeze(1)
            received[rank, : len(wanted)] = rows[wanted]
            sources[rank, : len(wanted)] = wanted.to(sources.dtype)
            counts[rank] = len(wanted)
        return received, sources, counts

    return run


class TestMoeDispatchEp8Topk8E160H5120(MoeExchangeTests):
    name = "moe_dispatch_ep8_topk8_e160_h5120"
    reference = staticmethod(reference_moe_dispatch_topk8_e160_h5120)
    interface = INTERFACE_MOE_DISPATCH
    axes = {"world_size": 8, "hidden_size": 5120, "top_k": 8}
    constants = ("num_experts",)
    NUM_EXPERTS = 160  # "e160" in the name
    sha256 = "d4b7fc2e37e51917220436727ffd13a3e5b80d25ff5d618009a70bf4446a8036"


# Tokens of 8 ranks sent to the ranks of their experts: expert e is on rank e // 48, and
# an id that is none of 0 to 383 is nowhere. A rank gets a token once. Rows stand in the
# order of their numbers, which are in sources, and behind the last are zeros and -1.
# One tensor holds what all ranks have; in serving each has its part. Token t of rank r
# has the number r * tokens_per_rank + t.
# model:kimi-k2, ep:8
# Tolerances: those of reference_moe_dispatch_topk8_e256.
def reference_moe_dispatch_topk8_e384_h7168():
    import torch

    NUM_EXPERTS = 384


    @torch.no_grad()
    def run(
        hidden_states: torch.Tensor, topk_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        world_size, tokens_per_rank, hidden_size = hidden_states.shape
        num_places = world_size * tokens_per_rank
        # Token t of rank r has the number r * tokens_per_rank + t.
        rows = hidden_states.reshape(num_places, hidden_size)
        ids = topk_ids.reshape(num_places, -1)
        is_expert = (ids >= 0) & (ids < NUM_EXPERTS)
        ranks = torch.where(is_expert, ids // (NUM_EXPERTS // world_size), -1)

        received = rows.new_zeros(world_size, num_places, hidden_size)
        sources = ids.new_full((world_size, num_places), -1)
        counts = ids.new_zeros(world_size)
        for rank in range(world_size):
            # Several experts of one rank get one row; rows stand in the order of numbers.
            wanted = (ranks == rank).any(dim=1).nonzero().squeeze(1)
            received[rank, : len(wanted)] = rows[wanted]
            sources[rank, : len(wanted)] = wanted.to(sources.dtype)
            counts[rank] = len(wanted)
        return received, sources, counts

    return run


class TestMoeDispatchEp8Topk8E384H7168(MoeExchangeTests):
    name = "moe_dispatch_ep8_topk8_e384_h7168"
    reference = staticmethod(reference_moe_dispatch_topk8_e384_h7168)
    interface = INTERFACE_MOE_DISPATCH
    axes = {"world_size": 8, "hidden_size": 7168, "top_k": 8}
    constants = ("num_experts",)
    NUM_EXPERTS = 384  # "e384" in the name
    sha256 = "7dd5375e9fe748e0849a116ff066113d646bb420da56af903677c8a180586713"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
