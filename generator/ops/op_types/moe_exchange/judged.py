"""The case that only solutions are asked: numbers of nobody other than -1."""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.moe_exchange.op import axes_of, is_dispatch, make_inputs
from generator.ops.own_inputs import OwnInputs
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_TOKENS = 3


def cases(definition: Definition) -> list[Case]:
    """Return sums of rows of which some are of numbers below -1, and of no token."""
    if is_dispatch(definition):
        return []
    axes = axes_of(definition.axes["world_size"], _TOKENS)
    params = {"experts": ""}
    return [OwnInputs("strangers", "small", axes, params, make_inputs=_made)]


def _made(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    inputs = make_inputs(definition, case, stream)
    places = case.axes["num_places"]
    others = torch.tensor([-1, places, -2, places + 7, -places, 2**31 - 1, -(2**31)])
    sources = inputs["sources"].long()
    each = others[torch.arange(sources.numel()) % len(others)].view(sources.shape)
    return {**inputs, "sources": torch.where(sources < 0, each, sources).int()}
