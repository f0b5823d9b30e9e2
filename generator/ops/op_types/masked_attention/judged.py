"""Cases that only solutions are asked: no key, hidden keys at finite numbers, far logits.

A definition whose mask is bool states what a sequence without a key returns. Engines fill a
float mask with a large negative number, and then hide all keys of padding by it: a softmax
of such logits is that of the others. Whoever hides keys of padding by -10,000 has to have
larger logits; of the lowest ones here each key has the same, -32,768 or less. Production
kernels are not asked: what they return without a key differs, and so does the least number
that they tell from minus infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.op_types.masked_attention.op import make_inputs
from generator.ops.own_inputs import OwnInputs
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import MakeInputs

_SIZES = {"batch_size": 3, "q_len": 5, "kv_len": 70}
# what hides a key beside one that is seen, and all of them: of the latter float32 has bits left
_HIDDEN, _ALL_HIDDEN = -10_000.0, -256.0
# queries and keys along one direction, of opposite signs: logits of -288 and about
_AGAINST = 6.0
# such queries and keys with the same in all elements: logits of -32,768 and less
_LARGE = 64.0


def cases(definition: Definition) -> list[Case]:
    """Return what is asked by the kind of mask, and logits far below 0."""
    inputs = definition.interface.input_specs
    if "relative_bias" in inputs:
        axes = {"batch_size": 2, "seq_len": 33}
        return [_case("low-logits", _against(0.125), axes)]
    low = [
        _case("low-logits", _against(1.0), _SIZES),
        _case("lowest-logits", _alike, _SIZES),
    ]
    if inputs["mask"].dtype == "bool":
        return [*low, _case("no-keys", _without_keys, _SIZES)]
    return [*low, _case("finite-mask", _finite, _SIZES)]


def _case(
    name: str, change: Callable[[dict[str, Any]], None], axes: dict[str, int]
) -> Case:
    def masked(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
        inputs = make_inputs(definition, case, stream)
        change(inputs)
        return inputs

    make: MakeInputs = masked
    return OwnInputs(name, "small", axes, make_inputs=make)


def _without_keys(inputs: dict[str, Any]) -> None:
    inputs["mask"][1] = False


def _finite(inputs: dict[str, Any]) -> None:
    mask = inputs["mask"]
    hidden = mask.isneginf()
    mask[hidden] = _HIDDEN
    mask[2] = _ALL_HIDDEN


def _alike(inputs: dict[str, Any]) -> None:
    """Make all keys alike, and queries against them; what is added is 0 or hides."""
    signs = 1.0 - 2.0 * (torch.arange(inputs["q"].shape[-1]) % 3 % 2)
    for name, size in (("q", _LARGE), ("k", -_LARGE)):
        inputs[name] = (size * signs).bfloat16().expand_as(inputs[name]).clone()
    mask = inputs["mask"]
    if mask.dtype != torch.bool:
        mask[~mask.isneginf()] = 0.0


def _against(share: float) -> Callable[[dict[str, Any]], None]:
    def change(inputs: dict[str, Any]) -> None:
        signs = 1.0 - 2.0 * (torch.arange(inputs["q"].shape[-1]) % 3 % 2)
        for name, size in (("q", _AGAINST * share), ("k", -_AGAINST)):
            inputs[name] = (0.25 * inputs[name].float() + size * signs).bfloat16()

    return change
