"""The defects of appending: rows in the wrong slots, caches mixed up or cleared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
)
from generator.ops.op_types.page_append.caches import (
    by_token,
    cache_names,
    is_hnd,
    page_size_of,
)
from generator.ops.op_types.page_append.names import ROWS
from kernel_judge.definition import Definition

# (inputs, page size) → the page and the slot that each row is written to
Where = Callable[[Inputs, int], tuple[torch.Tensor, torch.Tensor]]


def _pages(inputs: Inputs, start: torch.Tensor, page: torch.Tensor) -> torch.Tensor:
    """Return page numbers; one past the table's end is the last of it."""
    indices: torch.Tensor = inputs["kv_indices"].long()
    return indices[(start + page).clamp(0, len(indices) - 1)]


def _start(inputs: Inputs) -> torch.Tensor:
    starts: torch.Tensor = inputs["kv_indptr"].long()
    return starts[inputs["batch_indices"].long()]


def _moved(by: int) -> Where:
    def where(inputs: Inputs, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        position = (inputs["positions"].long() + by).clamp_min(0)
        return _pages(inputs, _start(inputs), position // size), position % size

    return where


def _first_page(inputs: Inputs, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    position = inputs["positions"].long()
    return _pages(inputs, _start(inputs), 0 * position), position % size


def _not_looked_up(inputs: Inputs, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    position = inputs["positions"].long()
    return _start(inputs) + position // size, position % size


def _without_indptr(inputs: Inputs, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    position = inputs["positions"].long()
    return _pages(inputs, 0 * position, position // size), position % size


def _from_the_first_slot(
    inputs: Inputs, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Count the rows of each sequence from 0: the tokens before them are forgotten."""
    sequences, position = inputs["batch_indices"].long(), inputs["positions"].long()
    first = torch.full_like(inputs["kv_indptr"].long(), int(position.max()))
    first = first.scatter_reduce(0, sequences, position, "amin")
    position = position - first[sequences]
    return _pages(inputs, _start(inputs), position // size), position % size


_WHERE: dict[str, Where] = {
    "one slot too far": _moved(1),
    "one slot too near": _moved(-1),
    "first page of a sequence for all": _first_page,
    "page numbers not looked up": _not_looked_up,
    "kv_indptr ignored": _without_indptr,
    "positions counted from the appended rows": _from_the_first_slot,
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of appending to two caches."""
    defects = [_written(definition, name, where) for name, where in _WHERE.items()]
    defects += [
        _on_caches(definition, "first row not written", _keep_old(slice(1))),
        _on_caches(definition, "last row not written", _keep_old(slice(-1, None))),
        _on_caches(definition, "rest of the page cleared", _clear_after),
        _on_caches(definition, "cache cleared first", _clear_others),
        on_inputs(definition, "rows of the next token", _rolled),
    ]
    first, second = cache_names(definition)
    shapes = [definition.interface.input_specs[ROWS[n]].shape for n in (first, second)]
    if shapes[0] == shapes[1]:
        one, other = ROWS[first], ROWS[second]
        defects += [
            on_inputs(
                definition, "K and V swapped", lambda i: {one: i[other], other: i[one]}
            ),
            on_inputs(definition, "K written for V", lambda i: {other: i[one]}),
        ]
        # pages of one head are the same in both layouts
        if definition.axes["num_kv_heads"] > 1:
            defects.append(
                _on_caches(definition, "pages in the other layout", _other_layout)
            )
    return tuple(defects)


# (definition, the cache before, the cache after, inputs) → the wrong cache
Spoil = Callable[[Definition, torch.Tensor, torch.Tensor, Inputs], torch.Tensor]


def _on_caches(definition: Definition, name: str, spoil: Spoil) -> DomainMutant:
    names = cache_names(definition)

    def change(outputs: Outputs, inputs: Inputs) -> Outputs:
        return tuple(
            spoil(definition, inputs[cache], after, inputs)
            for cache, after in zip(names, outputs, strict=True)
        )

    return on_outputs(definition, name, change)


def _written(definition: Definition, name: str, where: Where) -> DomainMutant:
    """Return the mutant that writes each row elsewhere."""
    names = cache_names(definition)

    def change(outputs: Outputs, inputs: Inputs) -> Outputs:
        pages, slots = where(inputs, page_size_of(definition, inputs))
        caches = []
        for cache in names:
            after = inputs[cache].clone()
            by_token(definition, after)[pages, slots] = inputs[ROWS[cache]]
            caches.append(after)
        return tuple(caches)

    return on_outputs(definition, name, change)


def _slots(definition: Definition, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
    return _moved(0)(inputs, page_size_of(definition, inputs))


def _keep_old(rows: slice) -> Spoil:
    def spoil(
        definition: Definition,
        before: torch.Tensor,
        after: torch.Tensor,
        inputs: Inputs,
    ) -> torch.Tensor:
        pages, slots = (part[rows] for part in _slots(definition, inputs))
        wrong = after.clone()
        by_token(definition, wrong)[pages, slots] = by_token(definition, before)[
            pages, slots
        ]
        return wrong

    return spoil


def _clear_after(
    definition: Definition, before: torch.Tensor, after: torch.Tensor, inputs: Inputs
) -> torch.Tensor:
    """Clear the slots behind the last row of each page that was written to."""
    pages, slots = _slots(definition, inputs)
    wrong = after.clone()
    view = by_token(definition, wrong)
    for page in set(pages.tolist()):
        view[page, int(slots[pages == page].max()) + 1 :] = 0
    return wrong


def _clear_others(
    definition: Definition, before: torch.Tensor, after: torch.Tensor, inputs: Inputs
) -> torch.Tensor:
    where = _slots(definition, inputs)
    wrong = torch.zeros_like(after)
    by_token(definition, wrong)[where] = by_token(definition, after)[where]
    return wrong


def _other_layout(
    definition: Definition, before: torch.Tensor, after: torch.Tensor, inputs: Inputs
) -> torch.Tensor:
    """Write the rows as if tokens and heads of a page stood the other way round."""
    pages, size, heads, length = by_token(definition, before).shape
    wrong = before.clone()
    shape = (pages, size, heads) if is_hnd(definition) else (pages, heads, size)
    view = wrong.view(*shape, length)
    if not is_hnd(definition):
        view = view.transpose(1, 2)
    where = _slots(definition, inputs)
    view[where] = by_token(definition, after)[where]
    return wrong


def _rolled(inputs: Inputs) -> dict[str, Any]:
    return {n: inputs[n].roll(1, 0) for n in ROWS.values() if n in inputs}


MUTANTS = (MutantGroup(mutants, "batch_indices positions kv_indices kv_indptr"),)
