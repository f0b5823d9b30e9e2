"""The defects of stores: another slot, another row, what stays, scales, blocks."""

from __future__ import annotations

from collections.abc import Callable

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
from kernel_judge.definition import Definition


def of_slots(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of which row goes to which slot."""

    def skipped(value: int) -> Change:
        def change(inputs: Inputs) -> dict[str, torch.Tensor]:
            wanted = inputs["slot_mapping"] != value
            return {n: inputs[n][wanted] for n in _by_token(inputs)}

        return change

    def last_missing(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {name: inputs[name][:-1] for name in _by_token(inputs)}

    changes: dict[str, Change] = {
        "slots in order": lambda i: {
            "slot_mapping": torch.arange(
                len(i["slot_mapping"]), device=i["slot_mapping"].device
            )
        },
        "slot of the token before": lambda i: {
            "slot_mapping": i["slot_mapping"].roll(1)
        },
        "slots sorted": lambda i: {"slot_mapping": i["slot_mapping"].sort().values},
        "slot 0 taken as padding": skipped(0),
        "last token missing": last_missing,
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def of_pairs(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of caches of keys and of values."""

    caches = [name.removesuffix("_out") for name in definition.interface.outputs]

    def cleared(outputs: Outputs, inputs: Inputs) -> Outputs:
        outs = []
        for out, name in zip(outputs, caches, strict=True):
            bits = out.view(torch.uint8).clone()
            same = bits == inputs[name].contiguous().view(torch.uint8)
            bits[same.all(-1)] = 0
            outs.append(bits.view(out.dtype))
        return tuple(outs)

    def unwritten(outputs: Outputs, inputs: Inputs) -> Outputs:
        return tuple(
            inputs[name].clone() if name.startswith("v_") else out
            for out, name in zip(outputs, caches, strict=True)
        )

    return (
        on_outputs(definition, "rest of the cache cleared", cleared),
        on_outputs(definition, "values not written", unwritten),
    )


def of_rows(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of keys and values as rows."""
    changes: dict[str, Change] = {
        "keys and values swapped": lambda i: {"k": i["v"], "v": i["k"]},
        "keys as values": lambda i: {"v": i["k"]},
        "heads shifted": lambda i: {"k": i["k"].roll(1, 2)},
        "row of the token before": lambda i: {"v": shifted(i["v"], 0)},
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def of_scales(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of scales and of rounding to e4m3."""

    def truncated(name: str) -> Change:
        # towards zero: the last four bits of bfloat16 cut off
        def change(inputs: Inputs) -> dict[str, torch.Tensor]:
            exact = inputs[name].float() / inputs[f"{name}_scale"]
            bits = exact.contiguous().view(torch.int32) & ~((1 << 20) - 1)
            return {name: bits.view(torch.float32) * inputs[f"{name}_scale"]}

        return change

    changes: dict[str, Change] = {
        "multiplied by the scale of keys": lambda i: {"k_scale": 1.0 / i["k_scale"]},
        "multiplied by the scale of values": lambda i: {"v_scale": 1.0 / i["v_scale"]},
        "scale of keys missing": lambda i: {"k_scale": 1.0},
        "scale of values missing": lambda i: {"v_scale": 1.0},
        "scales swapped": lambda i: {"k_scale": i["v_scale"], "v_scale": i["k_scale"]},
        "limited to 240": lambda i: {
            "k": i["k"].clamp(-240.0 * i["k_scale"], 240.0 * i["k_scale"])
        },
        "keys truncated": truncated("k"),
        "values truncated": truncated("v"),
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def of_codes(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of codes of four bits and of their scales."""

    def halves_swapped(outputs: Outputs, inputs: Inputs) -> Outputs:
        return tuple(
            _in_slots(out, inputs, lambda t: (t << 4) | ((t >> 4) & 15))
            if out.dtype == torch.int8
            else out
            for out in outputs
        )

    def signs_lost(outputs: Outputs, inputs: Inputs) -> Outputs:
        return tuple(
            _in_slots(out, inputs, lambda t: t & 0x77)
            if out.dtype == torch.int8
            else out
            for out in outputs
        )

    def scales_shifted(outputs: Outputs, inputs: Inputs) -> Outputs:
        return tuple(
            out
            if out.dtype == torch.int8
            else _in_slots(out.view(torch.uint8), inputs, lambda t: t.roll(1, -1)).view(
                out.dtype
            )
            for out in outputs
        )

    def scales_kept(outputs: Outputs, inputs: Inputs) -> Outputs:
        return outputs[0], inputs["k_scale_cache"].clone(), *outputs[2:]

    return (
        on_outputs(definition, "halves of a byte swapped", halves_swapped),
        on_outputs(definition, "signs lost", signs_lost),
        on_outputs(definition, "scales of the next block", scales_shifted),
        on_outputs(definition, "scales of keys not written", scales_kept),
    )


def _in_slots(
    cache: torch.Tensor,
    inputs: Inputs,
    change: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Return a cache whose written slots are changed."""
    out, slots = cache.clone(), inputs["slot_mapping"]
    out[slots] = change(out[slots])
    return out


def of_latents(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of latents and rotary parts in one row."""
    rope = definition.axes["rope_dim"]

    def rotary_first(inputs: Inputs) -> dict[str, torch.Tensor]:
        row = torch.cat((inputs["rope"], inputs["latent"]), dim=1)
        return {"latent": row[:, :-rope], "rope": row[:, -rope:]}

    def cleared(outputs: Outputs, inputs: Inputs) -> Outputs:
        same = (outputs[0] == inputs["kv_cache"]).all(1)
        return (outputs[0].masked_fill(same[:, None], 0.0),)

    return (
        on_inputs(definition, "rotary part first", rotary_first),
        on_inputs(
            definition,
            "rotary part of the token before",
            lambda i: {"rope": i["rope"].roll(1, 0)},
        ),
        on_inputs(
            definition,
            "rotary part missing",
            lambda i: {"rope": torch.zeros_like(i["rope"])},
        ),
        on_outputs(definition, "rest of the cache cleared", cleared),
    )


def of_blocks(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of copying blocks."""

    def in_turn(outputs: Outputs, inputs: Inputs) -> Outputs:
        return tuple(out.flip(1) for out in outputs)

    changes: dict[str, Change] = {
        "sources and targets swapped": lambda i: {
            "sources": i["targets"],
            "targets": i["sources"],
        },
        "block behind the source": lambda i: {
            "sources": (i["sources"] + 1) % len(i["k_cache"])
        },
        "last copy missing": lambda i: {
            "sources": i["sources"][:-1],
            "targets": i["targets"][:-1],
        },
        "targets sorted": lambda i: {"targets": i["targets"].sort().values},
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "places of a block in reverse", in_turn),
    )


def _by_token(inputs: Inputs) -> list[str]:
    return [n for n in ("k", "v", "latent", "rope", "slot_mapping") if n in inputs]


MUTANTS = (
    MutantGroup(of_slots, "slot_mapping"),
    MutantGroup(of_pairs, "k_cache v_cache k_cache_out v_cache_out"),
    MutantGroup(of_rows, "k v slot_mapping"),
    MutantGroup(of_scales, "k v k_scale v_scale"),
    MutantGroup(of_codes, "k_scale_cache v_scale_cache slot_mapping"),
    MutantGroup(of_latents, "latent rope kv_cache rope_dim"),
    MutantGroup(of_blocks, "sources targets k_cache"),
)
