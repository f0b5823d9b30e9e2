"""The defects of rotary embeddings in 8 bits: turns, scales, roundings, slots."""

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
    Run,
    calling,
    on_inputs,
)
from generator.ops.op_types.rope_quantize.names import CACHES
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple


def of_turns(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that turn otherwise, or by another position."""
    changes: dict[str, Change] = {
        "sin negated": lambda i: _cache(i, lambda cos, sin: (cos, -sin)),
        "cos and sin swapped": lambda i: _cache(i, lambda cos, sin: (sin, cos)),
        "sin missing": lambda i: _cache(i, lambda cos, sin: (cos, 0 * sin)),
        "frequencies reversed": lambda i: _cache(
            i, lambda cos, sin: (cos.flip(1), sin.flip(1))
        ),
        "positions ignored": lambda i: {
            "pos_ids": torch.arange(len(i["pos_ids"]), dtype=torch.int32)
            % len(i["cos_sin_cache"])
        },
        "positions of the first token": lambda i: {
            "pos_ids": i["pos_ids"][:1].expand_as(i["pos_ids"]).contiguous()
        },
        "positions one too far": lambda i: {
            "pos_ids": (i["pos_ids"] + 1) % len(i["cos_sin_cache"])
        },
        "q not turned": lambda i: {"q_rope": _turned_back(i, "q_rope", definition)},
        "k not turned": lambda i: {"k_rope": _turned_back(i, "k_rope", definition)},
    }
    mutants = [on_inputs(definition, name, change) for name, change in changes.items()]
    return (*mutants, _other_pairs(definition))


def _cache(inputs: Inputs, change: Callable[..., Any]) -> dict[str, Any]:
    cos, sin = inputs["cos_sin_cache"].chunk(2, dim=1)
    return {"cos_sin_cache": torch.cat(change(cos, sin), dim=1)}


def _turned_back(inputs: Inputs, name: str, definition: Definition) -> torch.Tensor:
    """Return rows that a turn brings back to what was given, nearly."""
    x: torch.Tensor = inputs[name].double()
    row = inputs["cos_sin_cache"][inputs["pos_ids"]].double()
    cos, sin = (part[:, None] for part in row.chunk(2, dim=1))
    if x.dim() == 2:
        cos, sin = cos[:, 0], sin[:, 0]
    neox, half = definition.constants["is_neox"], x.shape[-1] // 2
    first, second = (
        (x[..., :half], x[..., half:]) if neox else (x[..., 0::2], x[..., 1::2])
    )
    turned = (first * cos + second * sin, second * cos - first * sin)
    whole = torch.cat(turned, -1) if neox else torch.stack(turned, -1).flatten(-2)
    return whole.to(inputs[name].dtype)


def _other_pairs(definition: Definition) -> DomainMutant:
    """Return the mutant that turns the pairs of the other style."""
    rotary, neox = definition.axes["rope_dim"], definition.constants["is_neox"]
    pairs = torch.arange(rotary).view(-1, 2)
    order = pairs.T.flatten() if neox else pairs.flatten().view(2, -1).T.flatten()
    back = order.argsort()
    names = list(definition.interface.outputs)

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        permuted = {n: inputs[n][..., order].contiguous() for n in ("q_rope", "k_rope")}
        outputs = list(as_tuple(run(*{**inputs, **permuted}.values())))
        for name in ("q_rope_out", "k_rope_out"):
            if name in names:
                codes = outputs[names.index(name)].view(torch.uint8)[..., back]
                outputs[names.index(name)] = codes.view(torch.float8_e4m3fn)
        return tuple(outputs)

    name = "pairs interleaved" if neox else "pairs half a head apart"
    return calling(definition, name, call)


def of_scales(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of scales, and of what they multiply."""
    q, kv = "quant_scale_q", "quant_scale_kv"
    changes: dict[str, Change] = {
        "scales swapped": lambda i: {q: i[kv], kv: i[q]},
        "divided by the scales": lambda i: {q: 1.0 / i[q], kv: 1.0 / i[kv]},
        "scale of q missing": lambda i: {q: 1.0},
        "scale of k missing": lambda i: {kv: 1.0},
        "q_nope not scaled": lambda i: {"q_nope": _divided(i["q_nope"], i[q])},
        "k_nope not scaled": lambda i: {"k_nope": _divided(i["k_nope"], i[kv])},
        "q_rope not scaled": lambda i: {"q_rope": _divided(i["q_rope"], i[q])},
        "k_rope not scaled": lambda i: {"k_rope": _divided(i["k_rope"], i[kv])},
        "q and k swapped in the part without position": _nope_of_the_first,
    }
    if "v" in definition.interface.inputs:
        changes["v not scaled"] = lambda i: {"v": _divided(i["v"], i[kv])}
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    return (*defects, _rounded_between(definition), _cut_at(definition, 240.0))


def _divided(x: torch.Tensor, scale: float) -> torch.Tensor:
    return (x.double() / scale).to(x.dtype)


def _nope_of_the_first(inputs: Inputs) -> dict[str, Any]:
    """Give every query head the key's part without position, as far as it goes."""
    key = inputs["k_nope"]
    key = key[:, :1] if key.dim() == 3 else key[:, None]
    return {"q_nope": key.expand_as(inputs["q_nope"]).contiguous()}


def _rounded_between(definition: Definition) -> DomainMutant:
    """Return the mutant that rounds turned heads to bfloat16 before the scale."""
    names = list(definition.interface.outputs)

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        outputs = list(as_tuple(run(*inputs.values())))
        row = inputs["cos_sin_cache"][inputs["pos_ids"]]
        cos, sin = (part[:, None] for part in row.chunk(2, dim=1))
        x, neox = inputs["q_rope"].float(), definition.constants["is_neox"]
        half = x.shape[-1] // 2
        first, second = (
            (x[..., :half], x[..., half:]) if neox else (x[..., 0::2], x[..., 1::2])
        )
        turned = (first * cos - second * sin, second * cos + first * sin)
        whole = torch.cat(turned, -1) if neox else torch.stack(turned, -1).flatten(-2)
        scaled = whole.bfloat16().float() * inputs["quant_scale_q"]
        codes = scaled.clamp(-448.0, 448.0).to(torch.float8_e4m3fn)
        outputs[names.index("q_rope_out")] = codes
        return tuple(outputs)

    return calling(definition, "rounded to bfloat16 before the scale", call)


def _cut_at(definition: Definition, most: float) -> DomainMutant:
    """Return the mutant that cuts off at the largest value of another format."""

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        return tuple(
            x.float().clamp(-most, most).to(x.dtype)
            for x in as_tuple(run(*inputs.values()))
        )

    return calling(definition, f"cut off at {most:g}", call)


def of_slots(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that write to other slots, or to more of them."""
    changes: dict[str, Change] = {
        "first sequence for all": lambda i: {
            "batch_indices": torch.zeros_like(i["batch_indices"])
        },
        "page order ignored": lambda i: {
            "kv_indices": torch.arange(len(i["kv_indices"]), dtype=torch.int32)
        },
        "turned by the position in the sequence": lambda i: {
            "pos_ids": i["positions"] % len(i["cos_sin_cache"])
        },
        "written where it turns": _written_by_turns,
    }
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    names = list(definition.interface.outputs)
    caches = [name for name in CACHES if name in definition.interface.inputs]

    def cleared(run: Run, inputs: dict[str, Any]) -> Any:
        empty = {name: torch.zeros_like(inputs[name]) for name in caches}
        return run(*{**inputs, **empty}.values())

    def untouched(run: Run, inputs: dict[str, Any]) -> Any:
        outputs = list(as_tuple(run(*inputs.values())))
        for name in caches:
            outputs[names.index(f"{name}_out")] = inputs[name].clone()
        return tuple(outputs)

    def parts_swapped(run: Run, inputs: dict[str, Any]) -> Any:
        outputs = list(as_tuple(run(*inputs.values())))
        place = names.index("k_cache_out")
        codes = outputs[place].view(torch.uint8)
        rotary = definition.axes["rope_dim"]
        swapped = torch.cat([codes[..., rotary:], codes[..., :rotary]], dim=-1)
        outputs[place] = swapped.view(torch.float8_e4m3fn)
        return tuple(outputs)

    defects += [
        calling(definition, "rest of the caches cleared", cleared),
        calling(definition, "nothing appended", untouched),
    ]
    if "k_cache" in caches:
        name = "keys with the turned part last"
        defects.append(calling(definition, name, parts_swapped))
    return tuple(defects)


def _written_by_turns(inputs: Inputs) -> dict[str, Any]:
    """Write each row to the slot of the position by which it turns, within its pages."""
    starts, sequence = inputs["kv_indptr"], inputs["batch_indices"]
    room = (starts[sequence + 1] - starts[sequence]) * next(
        inputs[name].shape[1] for name in CACHES if name in inputs
    )
    return {"positions": inputs["pos_ids"] % room}


MUTANTS = (
    MutantGroup(of_turns, "q_rope k_rope cos_sin_cache pos_ids rope_dim is_neox"),
    MutantGroup(of_scales, "q_rope q_nope k_nope quant_scale_q quant_scale_kv"),
    MutantGroup(of_slots, "positions batch_indices kv_indices kv_indptr page_size"),
    MutantGroup(rounded_inputs, "q_rope cos_sin_cache"),
)
