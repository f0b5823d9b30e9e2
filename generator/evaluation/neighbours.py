"""Rounds whose inputs agree with another's in most of what a cache may look at.

A solution that knows earlier inputs by some of their values, by some inputs, or by what
it sums up of them, returns the answer to these for those. Each round here has one part of
values A from values B, or A in another order, of other signs, or rounded otherwise.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import torch

from generator.evaluation.solution_tolerance import solution_tolerance
from kernel_judge.checks.pairs import ORACLE
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.inputs.trial import same_bits

if TYPE_CHECKING:
    from generator.evaluation.rounds import Round

# a case of several rows, whose inputs are made and compared in no time
_FEW_BYTES = 8 << 20
# of weights that are larger, the case of fewest rows
_MOST_BYTES = 48 << 20
# what scales are multiplied with: codes times a scale that bfloat16 holds stay exact in it
_SCALED = 0.5
# what inputs are moved by, and how much more than a case's the outputs may move
_LAST_BITS, _MOST_TIMES = 2.0**-12, 2.0
# places that are drawn until two rows are about as large
_TRIES = 8
# dtype: integers of its size, and the bits that roundings to 8 bits, or to bfloat16, drop
_LOWER_BITS = {
    torch.bfloat16: (torch.int16, 0x7),
    torch.float16: (torch.int16, 0x3F),
    torch.float32: (torch.int32, 0x7FFF),
}
Values = Mapping[str, Any]


def neighbours(
    rounds: Sequence[tuple[Round, Round]],
    draw: random.Random,
    together: Mapping[str, Collection[str]],
) -> Iterator[Round]:
    """Yield rounds beside the first of a pair, each with a part of the second's values.

    `rounds` are two of each case. One case is asked: of those with usual values the
    largest that is small, else the smallest. Where an input is a key of `together`, it
    changes with the inputs of its value, and not alone. Where numbers decide what is
    chosen, 16-bit floats alone change, in a row or an element. Samplers are asked none:
    their law is tested on equal inputs.
    """
    asked = [two for two in rounds if 0 < _bytes(two) <= _MOST_BYTES]
    if not asked or asked[0][0].calls() > 1:
        return
    usual = [two for two in asked if not two[0].case.params] or asked
    few = [two for two in usual if _bytes(two) <= _FEW_BYTES]
    first, second = max(few, key=_bytes) if few else min(usual, key=_bytes)
    inputs, others = first.inputs, second.inputs
    linked = {n for k in together.keys() & inputs for n in (k, *together[k])}
    single = {n: v for n, v in inputs.items() if n not in linked}
    for change in few_changed(single, others, draw):
        yield from _obeying(first, change)
    if first.source == ORACLE and not _chooses(first):
        most = [_MOST_TIMES * moves for moves in _sensitivity(first)]
        for change in mixed(single, others, draw):
            for one in _obeying(first, change):
                if all(a <= b for a, b in zip(_sensitivity(one), most, strict=True)):
                    yield one
    if linked:
        yield from _obeying(first, {n: others[n] for n in inputs if n in linked})


def _obeying(first: Round, change: Values) -> Iterator[Round]:
    one = replace(first, values={**first.inputs, **change})
    if not one.trial.broken_constraints():
        yield one


def _sensitivity(one: Round) -> list[float]:
    """Return by how many bounds each output moves with the last bits of the inputs.

    What moves more than that of the case has differences of large numbers, which no bound
    is for: what kernels round would be refused.
    """
    moved = {
        n: v.float() * (1.0 + _LAST_BITS * torch.arange(1.0, v.shape[-1] + 1.0).cos())
        if _is_number(v) and v.dim() and v.element_size() > 1
        else v
        for n, v in one.inputs.items()
    }
    by_output = []
    outputs = one.subject.interface.output_specs
    changed = replace(one, values=moved).expected
    for name, before, after in zip(outputs, one.expected, changed, strict=False):
        bound = solution_tolerance(one.subject, name, one.source, one.case)
        if not isinstance(before, torch.Tensor) or bound.rtol == bound.atol == 0.0:
            continue
        allowed = bound.atol + (bound.rtol + bound.of_row) * before.double().abs()
        moves = (after.double() - before.double()).abs() / (allowed + 1e-300)
        rank = max(1, math.ceil(bound.hit_ratio * moves.numel()))
        ranked = moves.nan_to_num_(0.0).flatten()
        if not len(ranked):
            by_output.append(0.0)
        elif rank == len(ranked):
            by_output.append(float(ranked.max()))
        else:
            by_output.append(float(ranked.kthvalue(rank).values))
    return by_output


def few_changed(first: Values, second: Values, draw: random.Random) -> Iterator[Values]:
    """Yield inputs of 16-bit floats with another row, or another element, of `second`."""
    for name, value in first.items():
        if _is_of_16_bits(value) and _differ(value, second[name]):
            yield from ({name: v} for v in _parts(value, second[name], draw))


def mixed(first: Values, second: Values, draw: random.Random) -> Iterator[Values]:
    """Yield inputs of `second`, and inputs as `first` has them only in part.

    Where integers say which numbers are read, the others are larger, so that who reads
    them is seen: there numbers keep their places.
    """
    numbers = {n: v for n, v in first.items() if _is_number(v)}
    varied = {n: v for n, v in numbers.items() if _differ(v, second[n])}
    chosen = any(
        _differ(value, second[name])
        for name, value in first.items()
        if name not in numbers and not isinstance(value, float)
    )
    if not chosen:
        for name, value in varied.items():
            if not _is_of_16_bits(value):
                yield from ({name: v} for v in _parts(value, second[name], draw))
    whole = [
        name
        for name, value in varied.items()
        if value.is_floating_point() and value.dim() and _is_finite(value)
    ]
    draw.shuffle(whole)
    changed_all = set()
    changes = [_turned, _rolled, _rounded_otherwise]
    for change in changes if chosen else (*changes, _alike_at_ends):
        for name in whole:
            changed = change(first[name], second[name], draw)
            if changed is not None and not same_bits(changed, first[name]):
                yield {name: changed}
                if change is not _alike_at_ends:
                    changed_all.add(name)
                # each has its turn
                whole.remove(name)
                whole.append(name)
                break
    if not chosen:
        yield from ({n: second[n]} for n in varied if n not in changed_all)
    for name, value in first.items():
        if isinstance(value, float) and value:
            yield {name: value * _SCALED}


def _parts(
    value: torch.Tensor, other: torch.Tensor, draw: random.Random
) -> Iterator[torch.Tensor]:
    """Yield the values with another row, and with another element."""
    rows = value.reshape(-1, value.shape[-1] if value.dim() else 1)
    others = other.reshape(rows.shape)
    for _ in range(_TRIES):
        place = draw.randrange(len(rows)), draw.randrange(rows.shape[-1])
        if _are_alike(rows[place[0]], others[place[0]]):
            break
    else:
        return
    # of a mask an element may be the last of its row that is not masked
    for where in (place[:1], place) if _is_finite(value) else (place[:1],):
        part = rows.clone()
        part[where] = others[where]
        yield part.view(value.shape)


def _are_alike(row: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two rows are about as large: no page that nobody reads is among them."""
    sizes = [float(r.float().abs().nan_to_num(posinf=0.0).amax()) for r in (row, other)]
    return max(sizes) <= 2.0 * min(sizes)


def _turned(
    value: torch.Tensor, other: torch.Tensor, draw: random.Random
) -> torch.Tensor | None:
    """Return the values with the other sign, None where few have one of the two."""
    few, wide = value.numel() // 4, value.float()
    is_of_both = int((wide > 0).sum()) > few and int((wide < 0).sum()) > few
    return (-wide).to(value.dtype) if is_of_both else None


def _rolled(
    value: torch.Tensor, other: torch.Tensor, draw: random.Random
) -> torch.Tensor:
    """Return the values of each row in another order, with equal sums."""
    return torch.cat((value[..., 1:], value[..., :1]), dim=-1)


def _rounded_otherwise(
    value: torch.Tensor, other: torch.Tensor, draw: random.Random
) -> torch.Tensor | None:
    """Return values with the last bits of others, None where there are too few bits."""
    if value.dtype not in _LOWER_BITS:
        return None
    integers, lower = _LOWER_BITS[value.dtype]
    bits, last = value.contiguous().view(integers), other.contiguous().view(integers)
    changed = ((bits & ~lower) | (last & lower)).view(value.dtype)
    # what is half way between two stays so, and what is subnormal has other leading bits
    is_kept = (bits & lower == 0) | (last & lower == 0)
    is_kept |= value.abs() < torch.finfo(value.dtype).tiny
    return torch.where(is_kept, value, changed)


def _alike_at_ends(
    value: torch.Tensor, other: torch.Tensor, draw: random.Random
) -> torch.Tensor | None:
    """Return the values with a row that begins and ends as another, None without two."""
    rows = value.reshape(-1, value.shape[-1]).clone()
    third = rows.shape[-1] // 3
    if len(rows) < 2 or not third:
        return None
    one, two = draw.sample(range(len(rows)), 2)
    rows[two, :third] = rows[one, :third]
    rows[two, -third:] = rows[one, -third:]
    return rows.view(value.shape)


def _is_number(value: object) -> TypeGuard[torch.Tensor]:
    """Return whether a value is a tensor of numbers or codes, which any may stand for."""
    return isinstance(value, torch.Tensor) and (
        value.is_floating_point() or value.dtype == torch.int8
    )


def _is_of_16_bits(value: object) -> TypeGuard[torch.Tensor]:
    return _is_number(value) and value.dtype in (torch.bfloat16, torch.float16)


def _chooses(one: Round) -> bool:
    """Return whether numbers decide what is chosen: near ties are right both ways."""
    specs = one.subject.interface.output_specs.values()
    is_index = any(spec.dtype in ("int32", "int64") for spec in specs)
    return is_index or bool(one.subject.op.policies)


def _differ(first: Any, second: Any) -> bool:
    """Return whether two inputs of a shape have other values."""
    if not isinstance(first, torch.Tensor):
        return bool(first != second)
    return first.shape == second.shape and not same_bits(first, second)


def _is_finite(value: torch.Tensor) -> bool:
    return bool(value.float().isfinite().all())


def _bytes(two: tuple[Round, Round]) -> int:
    return tensor_bytes(two[0].subject.definition, two[0].case)
