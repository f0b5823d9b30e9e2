"""Relations of mixtures of experts: tokens are independent, experts are names, and add up.

Weights of chosen experts alone are there; the others are zeros, which cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

from . import moe_routing as routing
from .definition import Case, Definition
from .moe_inputs import hot_experts, routing_inputs, token_inputs, weight_inputs
from .related_rows import reordered, select
from .relation import Bound, Claim, RelatedCase, Relation, Subject, alike
from .stream import Stream
from .tiled import Tiled
from .tolerance import Tolerance
from .trial import Inputs

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


class Chosen(Tiled):
    """Stand for weights of which some experts, at places of their own, are no zeros."""

    def __init__(self, tiled: Tiled, experts: Mapping[int, int]) -> None:
        super().__init__(tiled.base, tiled.shape)
        self.experts = dict(experts)

    def on(self, device: torch.device) -> Chosen:
        """Return the same stand-in with a stream of its own on a device."""
        return Chosen(super().on(device), self.experts)

    def __getitem__(self, expert: int) -> torch.Tensor:
        """Return the matrix at a place, zeros where no expert stands."""
        if expert in self.experts:
            return super().__getitem__(self.experts[expert])
        return torch.zeros(self.shape[1:], dtype=self.dtype, device=self.device)

    def tensor(self, device: torch.device) -> torch.Tensor:
        """Return the tensor on a device."""
        made = _zeros(self.shape, self.dtype, device)
        # moving bits: not every operation knows float8
        bits, tiled = made.view(torch.uint8), Tiled(self.base, self.shape)
        for place, expert in self.experts.items():
            bits[place] = tiled[expert].view(torch.uint8).to(device)
        return made

    def same_bits(self, other: torch.Tensor) -> bool:
        """Return whether a tensor has these experts; the zeros are not looked at.

        Whether `run()` writes to its inputs is for the tests of the op's own cases.
        """
        if tuple(other.shape) != self.shape or other.dtype != self.dtype:
            return False
        pairs = ((self[place], other[place]) for place in self.experts)
        return all(
            torch.equal(own.to(given.device).view(torch.uint8), given.view(torch.uint8))
            for own, given in pairs
        )

    def moved(self, places: Callable[[int], int | None]) -> Chosen:
        """Return these experts at other places; None leaves one out."""
        found = {places(place): expert for place, expert in self.experts.items()}
        return Chosen(self, {p: e for p, e in found.items() if p is not None})


def _zeros(
    shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """Return zeros; those that nobody reads take a CPU neither time nor memory."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    columns = shape[2] * dtype.itemsize
    untouched = np.zeros((*shape[:2], columns), dtype=np.uint8)
    return torch.from_numpy(untouched).view(dtype)


def moe_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a mixture of experts.

    Experts of DeepSeek's routing are renamed by `local_expert_offset`, for which other
    devices must have experts; groups tie the others' names. Else all names are free.
    """
    cases = [_case(definition)]
    found = [reordered("tokens-reversed", ["seq_len"], _ALIKE, cases)]
    if routing.routing_of(definition) != routing.DEEPSEEK:
        found.append(Relation("experts-renamed", _renamed, cases))
    if _has_room(definition):
        found.append(Relation("offset-halves-add-up", _offset_halves, cases))
    else:
        found.append(Relation("expert-halves-add-up", _halves, cases))
    return found


def _has_room(definition: Definition) -> bool:
    """Return whether experts can lie as many places before and behind those here."""
    experts, local = routing.experts_of(definition)
    takes_offset = "local_expert_offset" in definition.interface.inputs
    return takes_offset and experts >= 3 * local


def _case(definition: Definition) -> RelatedCase:
    experts, local = routing.experts_of(definition)
    top_k = definition.constants["top_k"]
    remote = min(experts - local, 3 * top_k)
    params = {
        # without experts elsewhere a token chooses all but one of these
        "local": 2 if remote else top_k + 1,
        "remote": remote,
        "offset": local if _has_room(definition) else 0,
        "bias": True,
    }
    return RelatedCase("two-tokens", "small", {"seq_len": 2}, params, _chosen_inputs)


def _chosen_inputs(definition: Definition, case: Case, stream: Stream) -> Inputs:
    """Return the op's inputs with the weights of the chosen experts alone."""
    offset = case.params["offset"]
    made = {
        **routing_inputs(definition, case, stream),
        **token_inputs(definition, case, stream),
        **weight_inputs(definition, case, stream),
        "local_expert_offset": offset,
        "routed_scaling_factor": 2.5,
    }
    hot = hot_experts(definition, case, stream)[: case.params["local"]]
    for name in _WEIGHTS:
        made[name] = Chosen(made[name], {e - offset: e - offset for e in hot})
    return {name: made[name] for name in definition.interface.inputs}


def _local_tensors(definition: Definition, inputs: Inputs) -> list[str]:
    """Return the inputs beside the weights with a row for each expert that is here."""
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


def _renamed(subject: Subject) -> Iterator[Claim]:
    """Give the experts other numbers, and route by these."""
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


def _cut(subject: Subject) -> int:
    """Return a place between the chosen experts, half of them before it."""
    places = sorted(subject.inputs[_WEIGHTS[0]].experts)
    cut: int = places[len(places) // 2]
    return cut


def _halves(subject: Subject) -> Iterator[Claim]:
    """Add what the experts of either half give, the others' second product being 0."""
    cut = _cut(subject)
    total = torch.zeros_like(subject.whole["output"], dtype=torch.float64)
    for early in (True, False):
        second = subject.inputs[_WEIGHTS[1]].moved(
            lambda e, early=early: e if (e < cut) == early else None
        )
        total += subject.run({**subject.inputs, _WEIGHTS[1]: second})["output"]
    yield from alike(subject.whole, {"output": total}, _ADDED)


def _offset_halves(subject: Subject) -> Iterator[Claim]:
    """Add what two devices give, each with half of the experts, by their offsets.

    Beside its half a device has experts of zeros: interfaces fix how many there are.
    """
    definition, inputs = subject.definition, subject.inputs
    count, cut = routing.experts_of(definition)[1], _cut(subject)
    total = torch.zeros_like(subject.whole["output"], dtype=torch.float64)
    # the experts before the cut come last on a device, those behind it first
    for shift in (count - cut, -cut):

        def place(expert: int, shift: int = shift) -> int | None:
            return expert + shift if 0 <= expert + shift < count else None

        given = {**inputs, **{n: inputs[n].moved(place) for n in _WEIGHTS}}
        for name in _local_tensors(definition, inputs):
            given[name] = inputs[name].roll(shift, dims=0)
        given["local_expert_offset"] = inputs["local_expert_offset"] - shift
        total += subject.run(given)["output"]
    yield from alike(subject.whole, {"output": total}, _ADDED)
