"""The defects of moving heads: another order, another place, reshaped for transposed."""

from __future__ import annotations

import torch

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
)
from kernel_judge.definition import Definition


def of_split(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of splitting fused rows."""
    heads, kv_heads, dim = (
        definition.axes[a] for a in ("num_qo_heads", "num_kv_heads", "head_dim")
    )
    counts = (heads, kv_heads, kv_heads)

    def by_group(outputs: Outputs, inputs: Inputs) -> Outputs:
        # as Megatron writes them: the queries of a key head, its key, its value
        each = heads // kv_heads
        rows = inputs["qkv"].unflatten(1, (kv_heads, each + 2, dim))
        return (
            rows[:, :, :each].flatten(1, 2),
            rows[:, :, each],
            rows[:, :, each + 1],
        )

    def transposed(outputs: Outputs, inputs: Inputs) -> Outputs:
        rows = inputs["qkv"].unflatten(1, (dim, sum(counts))).transpose(1, 2)
        return tuple(rows.split(counts, dim=1))

    def values_first(outputs: Outputs, inputs: Inputs) -> Outputs:
        rows = inputs["qkv"].unflatten(1, (sum(counts), dim))
        v, k, q = rows.split(counts[::-1], dim=1)
        return q, k, v

    def swapped(outputs: Outputs, inputs: Inputs) -> Outputs:
        q, k, v = outputs
        return q, v, k

    def keys_twice(outputs: Outputs, inputs: Inputs) -> Outputs:
        q, k, _ = outputs
        return q, k, k

    changes = {
        "heads and columns exchanged": transposed,
        "values first": values_first,
        "k and v swapped": swapped,
        "keys for values": keys_twice,
    }
    if kv_heads > 1:
        # of one key head both orders are the same
        changes["heads by groups of keys"] = by_group
    return (
        *(on_outputs(definition, name, change) for name, change in changes.items()),
        on_inputs(definition, "columns shifted by one", lambda i: _rolled(i, "qkv", 1)),
        on_inputs(
            definition, "columns shifted by a head", lambda i: _rolled(i, "qkv", dim)
        ),
    )


def of_turn(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of exchanging heads and tokens."""

    def reshaped(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (inputs["x"].reshape(outputs[0].shape),)

    def columns(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (outputs[0].flip(2),)

    def first_head(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (outputs[0][:1].expand_as(outputs[0]).contiguous(),)

    return (
        on_outputs(definition, "reshaped for transposed", reshaped),
        on_outputs(definition, "columns in reverse", columns),
        on_outputs(definition, "first slice for all", first_head),
        on_inputs(definition, "next slice", lambda i: {"x": i["x"].roll(-1, 0)}),
    )


def of_keys(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of keys that share their rotary part."""

    def rotary_first(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (outputs[0].roll(definition.axes["rope_dim"], 2),)

    def first_head_alone(outputs: Outputs, inputs: Inputs) -> Outputs:
        keys = outputs[0].clone()
        keys[:, 1:, definition.axes["nope_dim"] :] = 0.0
        return (keys,)

    def of_token(outputs: Outputs, inputs: Inputs) -> Outputs:
        keys = outputs[0].clone()
        keys[..., definition.axes["nope_dim"] :] = inputs["k_rope"][:1]
        return (keys,)

    return (
        on_outputs(definition, "rotary part first", rotary_first),
        on_outputs(definition, "rotary part of the first head alone", first_head_alone),
        on_outputs(definition, "rotary part of the first token", of_token),
        on_inputs(
            definition,
            "rotary part of the token before",
            lambda i: _rolled(i, "k_rope"),
        ),
        on_inputs(
            definition, "own part of the token before", lambda i: _rolled(i, "k_nope")
        ),
        on_inputs(
            definition,
            "own part of the head before",
            lambda i: {"k_nope": i["k_nope"].roll(1, 1)},
        ),
    )


def _rolled(inputs: Inputs, name: str, columns: int = 0) -> dict[str, torch.Tensor]:
    """Return an input shifted along its columns, or else along its tokens."""
    value = inputs[name]
    return {name: value.roll(columns, 1) if columns else value.roll(1, 0)}


MUTANTS = (
    MutantGroup(of_split, "qkv q k v num_qo_heads num_kv_heads head_dim"),
    MutantGroup(of_turn, "x output num_heads"),
    MutantGroup(of_keys, "k_nope k_rope k nope_dim rope_dim"),
)
