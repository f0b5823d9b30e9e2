"""The defects of experts: another one, another weight, halves and codes misread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
    shifted,
)
from generator.ops.op_types.moe.weights import by_blocks, dequantize_mxfp4
from generator.ops.op_types.moe_experts.inputs import (
    expert_sizes,
    is_fp8,
    is_mxfp4,
    scales_input,
)
from kernel_judge.definition import Definition

Pair = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_SWIGLU: dict[str, Pair] = {
    "gelu for silu": lambda g, u: torch.nn.functional.gelu(g) * u,
    "sigmoid missing": lambda g, u: g * u,
    "silu of the product": lambda g, u: torch.nn.functional.silu(g * u),
    "one added to up": lambda g, u: torch.nn.functional.silu(g) * (u + 1.0),
}
_CLIPPED: dict[str, Pair] = {
    "limit ignored": lambda g, u: g * torch.sigmoid(1.702 * g) * (u + 1.0),
    "alpha missing": lambda g, u: _clip(g, u, alpha=1.0),
    "one not added to up": lambda g, u: _clip(g, u, one=0.0),
    "up not clipped below": lambda g, u: _clip(g, u, low=-torch.inf),
}


def _clip(
    gate: torch.Tensor,
    up: torch.Tensor,
    alpha: float = 1.702,
    one: float = 1.0,
    low: float = -7.0,
) -> torch.Tensor:
    gate = gate.clamp(max=7.0)
    return gate * torch.sigmoid(alpha * gate) * (up.clamp(low, 7.0) + one)


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of experts of one kind."""
    count, top_k = expert_sizes(definition.axes)
    changes: dict[str, Change] = {
        "weights ignored": lambda i: {
            "topk_weights": torch.ones_like(i["topk_weights"])
        },
        "weights squared": lambda i: {"topk_weights": i["topk_weights"] ** 2},
        "weights of the next token": lambda i: {
            "topk_weights": shifted(i["topk_weights"], 0)
        },
        "experts of the next token": lambda i: {"topk_ids": shifted(i["topk_ids"], 0)},
        "the next expert": lambda i: {
            "topk_ids": torch.where(
                i["topk_ids"] < 0, -1, (i["topk_ids"] + 1) % count
            ).int()
        },
        "experts elsewhere taken as the first": lambda i: {
            "topk_ids": i["topk_ids"].clamp(min=0)
        },
        "experts elsewhere taken as the last": lambda i: {
            "topk_ids": (i["topk_ids"] % count).int()
        },
        "gate and up of the next row": lambda i: {"w13": shifted(i["w13"], 1)},
        "columns of w2 shifted": lambda i: {"w2": shifted(i["w2"], 2)},
    }
    if top_k > 1:
        changes["weights of the next slot"] = lambda i: {
            "topk_weights": shifted(i["topk_weights"], 1)
        }
        changes["last slot dropped"] = lambda i: {
            "topk_ids": torch.cat(
                (i["topk_ids"][:, :-1], torch.full_like(i["topk_ids"][:, -1:], -1)), 1
            )
        }
    if is_mxfp4(definition):
        changes |= _of_codes()
    if is_fp8(definition):
        changes |= _of_blocks(definition.axes)
    formulas = _CLIPPED if is_mxfp4(definition) else _SWIGLU
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    defects += [_instead(definition, name, pair) for name, pair in formulas.items()]
    activation = _clip if is_mxfp4(definition) else _swiglu
    defects.append(
        _instead(definition, "gate and up swapped", lambda g, u: activation(u, g))
    )
    defects.append(_instead(definition, "pairs for halves", activation, misread=True))
    if is_mxfp4(definition):
        defects.append(
            _instead(definition, "bias of w2 unweighted", activation, unweighted=True)
        )
    else:
        defects.append(
            _instead(definition, "weight on the other side", activation, turned=True)
        )
    return tuple(defects)


def _swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(gate) * up


def _of_codes() -> dict[str, Change]:
    """Return the defects of codes, scales and biases of both products."""
    defects: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {
        "halves of a byte swapped": ("", lambda t: (t << 4) | ((t >> 4) & 15)),
        "signs lost": ("", lambda t: t & 0x77),
        "scale of the next block": ("_scale", lambda t: shifted(t, 2)),
        "bias of 128 in exponents": ("_scale", lambda t: t - 1),
        "bias missing": ("_bias", torch.zeros_like),
        "bias of the next expert": ("_bias", lambda t: shifted(t, 0)),
    }
    return {
        f"{name}: {what}": partial(_changed, name + suffix, change)
        for name in ("w13", "w2")
        for what, (suffix, change) in defects.items()
    }


def _of_blocks(axes: Mapping[str, int]) -> dict[str, Change]:
    """Return the defects of codes and of scales of blocks, of both products."""
    defects: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "scale of the next block of columns": lambda t: shifted(t, 2),
        "scale of the next block of rows": lambda t: shifted(t, 1),
        "scales of the next expert": lambda t: shifted(t, 0),
        "one scale for all": lambda t: t.mean((1, 2), keepdim=True).expand_as(t),
    }
    columns = {
        "w13_scale": axes["num_hidden_blocks"],
        "w2_scale": axes["num_intermediate_blocks"],
    }
    return {
        f"{name}: {what}": partial(_changed, name, change)
        for name, count in columns.items()
        for what, change in defects.items()
        # a row of one block has no next one
        if count > 1 or "columns" not in what
    }


def _changed(
    name: str, change: Callable[[torch.Tensor], torch.Tensor], inputs: Inputs
) -> dict[str, torch.Tensor]:
    return {name: change(inputs[name])}


def _instead(
    definition: Definition,
    name: str,
    pair: Pair,
    *,
    misread: bool = False,
    unweighted: bool = False,
    turned: bool = False,
) -> DomainMutant:
    """Return the mutant with another activation, or what the flags say.

    `misread` takes pairs of rows of w13 for halves or the reverse; `unweighted` adds
    the bias of w2 without the weight; `turned` weighs the input for the output, or the
    reverse.
    """
    mx = is_mxfp4(definition)
    before = scales_input(definition) != turned

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        x, ids = inputs["hidden_states"].float(), inputs["topk_ids"]
        total = torch.zeros_like(x)
        for token, slot in (ids >= 0).nonzero().tolist():
            expert, weight = int(ids[token, slot]), inputs["topk_weights"][token, slot]
            one, two = (_matrix(inputs, n, expert) for n in ("w13", "w2"))
            both = one @ (x[token] * weight if before else x[token])
            if mx:
                both = both + inputs["w13_bias"][expert].float()
            halves = both.chunk(2) if mx == misread else (both[0::2], both[1::2])
            y = two @ pair(*halves)
            bias = inputs["w2_bias"][expert].float() if mx else torch.zeros_like(y)
            y = y + bias
            y = y if before else y * weight
            total[token] += y + bias * (1.0 - weight) if unweighted else y
        return (total.to(outputs[0].dtype),)

    return on_outputs(definition, name, spoil)


def _matrix(inputs: Inputs, name: str, expert: int) -> torch.Tensor:
    matrix: torch.Tensor = inputs[name][expert]
    if f"{name}_scale" in inputs:
        widen = dequantize_mxfp4 if f"{name}_bias" in inputs else by_blocks
        return widen(matrix, inputs[f"{name}_scale"][expert])
    return matrix.float()


MUTANTS = (MutantGroup(mutants, "topk_ids topk_weights w13 w2 hidden_size"),)
