"""Domain mutants of experts: gate and up, expert numbers, scales, routing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.common_mutants import rounded_inputs
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    on_inputs,
    shifted,
    taken,
    zeroed,
)
from generator.ops.op_types.moe import router_mutants as moe_router
from generator.ops.op_types.moe import routing as moe_routing
from kernel_judge.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the experts and of the definition's routing."""
    changes = {
        "gate and up swapped": _swapped,
        "columns of w13 shifted": lambda i: {
            "gemm1_weights": shifted(i["gemm1_weights"], 2)
        },
        "rows of w2 shifted": lambda i: {
            "gemm2_weights": shifted(i["gemm2_weights"], 1)
        },
        **_of_experts(definition),
        **_of_blocks(definition),
        **_of_tensor_scales(definition),
    }
    of_inputs = (
        on_inputs(definition, name, change) for name, change in changes.items()
    )
    # only scales and logits: bfloat16 holds fp4 weights
    rounded = rounded_inputs(definition, lossless=("gemm1_weights", "gemm2_weights"))
    return (*of_inputs, *rounded, *moe_router.mutants(definition))


def _of_experts(definition: Definition) -> dict[str, Change]:
    """Return mutants that use another expert's weights; none for a single expert."""
    if moe_routing.experts_of(definition)[1] == 1:
        return {}
    parts = {
        name: spec.shape
        for name, spec in definition.interface.input_specs.items()
        if name.startswith(("gemm", "output")) and spec.shape
    }

    def moved(prefixes: tuple[str, ...]) -> Change:
        names = [name for name in parts if name.startswith(prefixes)]
        return lambda i: {name: shifted(i[name], 0) for name in names}

    return {
        "experts permuted": moved(("gemm", "output")),
        "w13 of the next expert": moved(("gemm1", "output1")),
        "w2 of the next expert": moved(("gemm2", "output2")),
        "first expert left out": lambda i: {
            "gemm2_weights": zeroed(i["gemm2_weights"], 0, 0)
        },
        "last expert left out": lambda i: {
            "gemm2_weights": zeroed(i["gemm2_weights"], 0, -1)
        },
        "one expert wrong": lambda i: _one_wrong(definition, i),
    }


def _one_wrong(definition: Definition, inputs: Inputs) -> dict[str, Any]:
    """Replace the second product of one selected expert by its neighbour's."""
    count = moe_routing.experts_of(definition)[1]
    offset = inputs.get("local_expert_offset", 0)
    here = [
        expert - offset
        for choice in moe_routing.choices(definition, inputs)
        for expert in choice
        if 0 <= expert - offset < count
    ]
    order = torch.arange(count)
    if here:
        order[here[0]] = (here[0] + 1) % count
    return {"gemm2_weights": taken(inputs["gemm2_weights"], 0, order)}


def _swapped(inputs: Inputs) -> dict[str, Any]:
    """Swap the halves of the first product, with their block scales."""

    def halves(tensor: torch.Tensor) -> torch.Tensor:
        return shifted(tensor, 1, tensor.shape[1] // 2)

    names = [n for n in ("gemm1_weights", "gemm1_weights_scale") if n in inputs]
    return {name: halves(inputs[name]) for name in names}


def _of_blocks(definition: Definition) -> dict[str, Change]:
    """Return mutants of block scales that the numbers of blocks allow."""
    axes, specs = definition.axes, definition.interface.input_specs
    changes: dict[str, Change] = {}
    if "hidden_states_scale" in specs:
        changes["scale of the hidden states missing"] = _change(
            "hidden_states_scale", lambda s: torch.full_like(s, float(s.mean()))
        )
        if axes["num_hidden_blocks"] > 1:
            changes["scale of the hidden states transposed"] = _change(
                "hidden_states_scale", lambda s: s.reshape(s.T.shape).T.contiguous()
            )
            changes["scale of the hidden states per token"] = _change(
                "hidden_states_scale", lambda s: s[:1].expand_as(s).contiguous()
            )
    for gemm in ("gemm1", "gemm2"):
        name = f"{gemm}_weights_scale"
        if name not in specs:
            continue
        rows, columns = (axes[axis] for axis in (specs[name].shape or ())[1:])
        changes[f"scale of {gemm} missing"] = _change(
            name, lambda s: torch.full_like(s, float(s.mean()))
        )
        if rows > 1:
            changes[f"scale of {gemm} of the next rows"] = _change(
                name, lambda s: shifted(s, 1)
            )
            changes[f"scale of {gemm} per column"] = _change(
                name, lambda s: s[:, :1].expand_as(s).contiguous()
            )
        if columns > 1:
            changes[f"scale of {gemm} of the next columns"] = _change(
                name, lambda s: shifted(s, 2)
            )
            changes[f"scale of {gemm} per row"] = _change(
                name, lambda s: s[:, :, :1].expand_as(s).contiguous()
            )
        if rows > 1 and columns > 1:
            changes[f"scale of {gemm} transposed"] = _change(
                name, lambda s: s.mT.contiguous().view(s.shape)
            )
    return changes


def _of_tensor_scales(definition: Definition) -> dict[str, Change]:
    names = ("output1_scales_scalar", "output1_scales_gate_scalar")
    up, gate = names
    if up not in definition.interface.inputs:
        return {}
    changes: dict[str, Change] = {
        "scales of gate and up swapped": lambda i: {up: i[gate], gate: i[up]},
        "scale of gate for both": lambda i: {up: i[gate]},
        "scale of up for both": lambda i: {gate: i[up]},
    }
    if moe_routing.experts_of(definition)[1] > 1:
        for name in (*names, "output2_scales_scalar"):
            changes[f"{name} of the next expert"] = _change(
                name, lambda s: shifted(s, 0)
            )
            changes[f"{name} of the first expert"] = _change(
                name, lambda s: s[:1].expand_as(s).contiguous()
            )
    return changes


def _change(name: str, function: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    return lambda inputs: {name: function(inputs[name])}


MUTANTS = (MutantGroup(mutants, "hidden_states gemm1_weights gemm2_weights top_k"),)
