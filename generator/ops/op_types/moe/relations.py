"""Relations of mixtures of experts: tokens are independent, expert numbers arbitrary.

Only the selected experts have weights. The others are zeros, which cost neither time nor
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from mmap import mmap

import torch

from generator.ops.op_types.moe import routing
from generator.ops.op_types.moe.inputs import (
    hot_experts,
    remote_experts,
    routing_inputs,
    token_inputs,
    weight_inputs,
)
from generator.ops.row_relations import reordered, select
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.lazy_weights import Tiled
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_WEIGHTS = ("gemm1_weights", "gemm2_weights")
_ROUTING = ("routing_logits", "routing_bias")
_ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=3e-4, nmse=1e-6),
        "float32 sums in another order, of outputs of about 1 that cancel; both sides "
        "round once, to neighbours at most: 2^-7, and that is rare",
    )
}
_ADDED = {
    "output": Bound(
        Tolerance(rtol=4e-3, atol=2.4e-2, nmse=1e-5),
        "both parts and the whole are rounded to bfloat16, by 2^-8 at most: parts of 3 "
        "that cancel leave 2.4e-2; three roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, "
        "squared) are 7e-6 of the power",
    )
}


class ChosenExperts(Tiled):
    """Weights that are zero but for some experts of a `Tiled`.

    `experts` maps a place in this tensor to an expert of the `Tiled`.
    """

    def __init__(self, tiled: Tiled, experts: Mapping[int, int]) -> None:
        super().__init__(tiled.base, tiled.shape)
        self.experts = dict(experts)

    def on(self, device: torch.device) -> ChosenExperts:
        """Return the same weights with their base on a device."""
        return ChosenExperts(super().on(device), self.experts)

    def __getitem__(self, expert: int) -> torch.Tensor:
        """Return the matrix at a place, zeros if it has no expert."""
        if expert in self.experts:
            return super().__getitem__(self.experts[expert])
        return torch.zeros(self.shape[1:], dtype=self.dtype, device=self.device)

    def tensor(self, device: torch.device) -> torch.Tensor:
        """Return the whole tensor, of `shape` and the dtype of the base, on a device."""
        whole = _zeros(self.shape, self.dtype, device)
        # copy bytes: not every operation supports float8
        bits, tiled = whole.view(torch.uint8), Tiled(self.base, self.shape)
        for place, expert in self.experts.items():
            bits[place] = tiled[expert].view(torch.uint8).to(device)
        return whole

    def same_bits(self, other: torch.Tensor) -> bool:
        """Return whether a tensor has the same bits at these experts; ignores the zeros.

        The tests of the op's own cases check that run() writes to no input.
        """
        if tuple(other.shape) != self.shape or other.dtype != self.dtype:
            return False
        pairs = ((self[place], other[place]) for place in self.experts)
        return all(
            torch.equal(
                part.to(tensor.device).view(torch.uint8), tensor.view(torch.uint8)
            )
            for part, tensor in pairs
        )

    def moved(self, places: Callable[[int], int | None]) -> ChosenExperts:
        """Return the experts at `places(place)`; None drops an expert."""
        moved = {places(place): expert for place, expert in self.experts.items()}
        return ChosenExperts(self, {p: e for p, e in moved.items() if p is not None})


def _zeros(
    shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """Return zeros; on a CPU, pages that are never read are not allocated."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    # not numpy's: where malloc keeps freed memory, that is written with zeros again
    untouched = torch.frombuffer(
        mmap(-1, prod(shape) * dtype.itemsize), dtype=torch.uint8
    )
    return untouched.view(dtype).view(shape)


def moe_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a mixture of experts.

    DeepSeek's groups fix the order of experts, so only `local_expert_offset` may move
    them, which needs experts on other devices. In other routings any order is allowed,
    which says nothing new where the offset may move them.
    """
    cases = [_case(definition)]
    relations = [reordered("tokens-reversed", ["seq_len"], _ALIKE, cases)]
    takes_offset = "local_expert_offset" in definition.interface.inputs
    if not takes_offset:
        relations.append(Relation("experts-renamed", _renamed, cases))
    if _has_room(definition):
        relations.append(Relation("offset-halves-add-up", _offset_halves, cases))
    else:
        relations.append(Relation("expert-halves-add-up", _halves, cases))
    return relations


def _has_room(definition: Definition) -> bool:
    """Return whether `local` remote experts fit before and after the local ones."""
    experts, local = routing.experts_of(definition)
    takes_offset = "local_expert_offset" in definition.interface.inputs
    return takes_offset and experts >= 3 * local


def _case(definition: Definition) -> RelatedCase:
    local = routing.experts_of(definition)[1]
    top_k = definition.constants["top_k"]
    remote = remote_experts(definition, 2)
    params = {
        # without remote experts a token selects all but one of these
        "local": 2 if remote else top_k + 1,
        "remote": remote,
        "offset": local if _has_room(definition) else 0,
    }
    return RelatedCase("two-tokens", "small", {"seq_len": 2}, params, _chosen_inputs)


def _chosen_inputs(definition: Definition, case: Case, stream: Stream) -> Inputs:
    """Return the op's inputs, with weights of the selected experts only."""
    offset = case.params["offset"]
    inputs = {
        **routing_inputs(definition, case, stream),
        **token_inputs(definition, case, stream),
        **weight_inputs(definition, case, stream),
        "local_expert_offset": offset,
        "routed_scaling_factor": 2.5,
    }
    hot = hot_experts(definition, case, stream)[: case.params["local"]]
    for name in _WEIGHTS:
        inputs[name] = ChosenExperts(
            inputs[name], {e - offset: e - offset for e in hot}
        )
    return {name: inputs[name] for name in definition.interface.inputs}


def _local_tensors(definition: Definition, inputs: Inputs) -> list[str]:
    """Return the names of the scales with one row per local expert."""
    count = routing.experts_of(definition)[1]
    return [
        name
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor)
        and name not in (*_ROUTING, "topk_ids")
        and "scale" in name
        and not name.startswith("hidden_states")
        and len(value) == count
    ]


def _renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Renumber the experts, in the weights and in the routing."""
    definition, inputs = subject.definition, subject.inputs
    count = routing.experts_of(definition)[1]
    # expert order[n] gets the number n
    order = Stream("experts").permutation(count)
    number = order.argsort()
    renamed = {n: inputs[n].moved(lambda e: int(number[e])) for n in _WEIGHTS}
    for name in _local_tensors(definition, inputs):
        renamed[name] = select(inputs[name], 0, order)
    for name in {*_ROUTING} & set(inputs):
        renamed[name] = select(inputs[name], inputs[name].dim() - 1, order)
    if "topk_ids" in inputs:
        packed = inputs["topk_ids"]
        experts = number[(packed >> 16).long()].to(torch.int32)
        renamed["topk_ids"] = (experts << 16) | (packed & 0xFFFF)
    yield from alike(subject.whole, subject.run({**inputs, **renamed}), _ALIKE)


def _cut(subject: RelatedCalls) -> int:
    """Return the place that splits the selected experts into halves."""
    places = sorted(subject.inputs[_WEIGHTS[0]].experts)
    cut: int = places[len(places) // 2]
    return cut


def _halves(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the outputs of both halves of the experts; the other half's gemm2 is 0."""
    cut = _cut(subject)
    total = torch.zeros_like(subject.whole["output"], dtype=torch.float64)
    for early in (True, False):
        second = subject.inputs[_WEIGHTS[1]].moved(
            lambda e, early=early: e if (e < cut) == early else None
        )
        total += subject.run({**subject.inputs, _WEIGHTS[1]: second})["output"]
    yield from alike(subject.whole, {"output": total}, _ADDED)


def _offset_halves(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the outputs of two devices with half of the experts each, by their offsets.

    The rest of a device's experts are zeros, as the interface fixes their number.
    """
    definition, inputs = subject.definition, subject.inputs
    count, cut = routing.experts_of(definition)[1], _cut(subject)
    total = torch.zeros_like(subject.whole["output"], dtype=torch.float64)
    # experts before the cut are the last of one device, the others the first of another
    for shift in (count - cut, -cut):

        def place(expert: int, shift: int = shift) -> int | None:
            return expert + shift if 0 <= expert + shift < count else None

        moved = {**inputs, **{n: inputs[n].moved(place) for n in _WEIGHTS}}
        for name in _local_tensors(definition, inputs):
            moved[name] = inputs[name].roll(shift, dims=0)
        moved["local_expert_offset"] = inputs["local_expert_offset"] - shift
        total += subject.run(moved)["output"]
    yield from alike(subject.whole, {"output": total}, _ADDED)
