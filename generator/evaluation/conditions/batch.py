"""The condition of batch invariance: the bits of a row, whatever is beside it.

A row is the part of the outputs at one index of the only axis of variable length, where
that leads all outputs. Where sequences have lengths of their own, the relations of the
op_type that reorder or split a batch are asked, bit by bit. A sequence with many keys is
computed alone, and in a batch so large that a kernel has no idle blocks to split it over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from generator.evaluation.conditions.asking import Asking
from generator.evaluation.conditions.condition import BROKEN, HOLDS, Condition
from generator.evaluation.rounds import Round
from generator.ops.attention.beside import long_among_many
from generator.ops.row_relations import taken
from kernel_judge.checks.related import related_calls
from kernel_judge.comparison.policy import Repeating
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.inputs.trial import Inputs, same_bits
from kernel_judge.relation import Relation

REPEATS, ALONE, PLACE = "repeats", "alone", "place"
NEIGHBOURS, SIZES, PAGES = "neighbours", "sizes", "pages"
COLUMNS = (REPEATS, ALONE, PLACE, NEIGHBOURS, SIZES, PAGES)
"""Twice, a sampler from one seed; a row by itself, elsewhere, beside others; n rows, and
32n; on other pages."""
_RELATIONS = {
    ALONE: ("batch-in-two", "rows-in-two", "tokens-in-two", "segment-in-two"),
    PLACE: (
        *("batch-reversed", "rows-reversed", "tokens-reversed"),
        *("sequences-reversed", "segments-reversed", "decodes-reversed"),
    ),
    PAGES: ("pages-permuted", "pages-renamed", "slots-permuted"),
}
_OF_ROWS = (*_RELATIONS[ALONE], *_RELATIONS[PLACE], "rows-and-columns-reversed")
_ALONE, _OTHERS = 3, 31
_MOST_BYTES = 64 << 20
# inputs of a batch of many sequences
_MANY_BYTES = {"cpu": 32 << 20, "cuda": 160 << 20}
# of which 32 times as many take other paths of kernels
_ROWS = range(8, 129)


def batch(asking: Asking) -> Condition:
    """Ask whether a row has the same bits in another batch, place and neighbourhood."""
    rounds = asking.cases(len(asking.asked.rounds))
    some = [one for one in rounds if max(one.case.axes.values()) in _ROWS]
    one = some[0] if some else rounds[0]
    details = dict.fromkeys(COLUMNS, "-")
    reasons: list[str] = []

    def note(column: str, why: str) -> None:
        if details[column] != "no":
            details[column] = "no" if why else "yes"
        if why:
            reasons.append(f"{column}: {why}")

    seed = asking.draw.randrange(2**31)
    whole = asking.called(one, seed=seed)
    for slot in (0, 1):
        again = asking.called(one, seed=seed, slot=slot)
        note(REPEATS, _difference(again, whole))
    # what a sampler draws for a row depends on the row's place: it has one column
    draws = any(isinstance(p, Repeating) for p in one.subject.op.policies.values())
    relations = () if draws else relations_of(one)
    axis = rows_axis(one, relations)
    if axis is not None and one.case.axes[axis] > 1:
        _of_rows(asking, one, axis, seed, note)
    for column, names in _RELATIONS.items():
        if axis is None or column == PAGES:
            for relation in relations:
                if relation.name in names:
                    _related(asking, one, relation, column, note)
    if any(map(_is_of_sequences, relations)):
        most = _MANY_BYTES[asking.device.type]
        among = long_among_many(one.subject.definition, most)
        _related(asking, one, among, ALONE, note)
    if reasons:
        return Condition(BROKEN, reasons[0], details)
    return Condition(HOLDS, "", details)


def rows_axis(one: Round, relations: Sequence[Relation]) -> str | None:
    """Return the axis whose indices are rows that know nothing of each other, if any.

    That they don't is what the op_type's relations say.
    """
    interface = one.subject.interface
    if len(one.case.axes) != 1 or not any(r.name in _OF_ROWS for r in relations):
        return None
    (axis,) = one.case.axes
    leads = [spec.shape and spec.shape[0] == axis for spec in _outputs(one)]
    has_it = any(axis in (s.shape or ()) for s in interface.input_specs.values())
    return axis if all(leads) and has_it else None


def _is_of_sequences(relation: Relation) -> bool:
    """Return whether it splits a batch of sequences with keys of their own."""
    return relation.name == "batch-in-two" and "kv_lens" in relation.cases[0].params


def _outputs(one: Round) -> list[Any]:
    interface = one.subject.interface
    filled = [interface.input_specs[name] for name in one.filled]
    return [*interface.output_specs.values(), *filled]


def _of_rows(
    asking: Asking, one: Round, axis: str, seed: int, note: Callable[[str, str], None]
) -> None:
    """Compare rows of the whole with the same rows in other batches."""
    interface, length = one.subject.interface, one.case.axes[axis]
    size = max(tensor_bytes(one.subject.definition, one.case), 1)
    whole = _rows(asking, one, axis, one.inputs, seed)

    def asked(column: str, inputs: Inputs, places: torch.Tensor) -> None:
        """Ask for inputs whose first rows are those of the whole at `places`."""
        actual = _rows(asking, one, axis, inputs, seed)
        count = len(places)
        fewer = tuple(value[:count] for value in actual)
        wanted = tuple(value[places] for value in _bytes(whole))
        note(column, _difference(_bytes(fewer), wanted))

    def at(places: torch.Tensor) -> Inputs:
        return taken(interface, one.inputs, axis, lambda _: places)

    for place in asking.draw.sample(range(length), min(_ALONE, length)):
        asked(ALONE, at(torch.tensor([place])), torch.tensor([place]))
    order = list(range(length))
    asking.draw.shuffle(order)
    asked(PLACE, at(torch.tensor(order)), torch.tensor(order))
    count = min(_OTHERS, max(1, _MOST_BYTES // size - 1))
    others = [_beside(asking, one, axis) for _ in range(count)]
    keeps = asking.draw.randrange(1, length)
    mixed = _joined(one, axis, [one.inputs, others[0]], [keeps, length - keeps])
    asked(NEIGHBOURS, mixed, torch.arange(keeps))
    batches = [one.inputs, *others]
    together = _rows(
        asking, one, axis, _joined(one, axis, batches, [length] * len(batches)), seed
    )
    for place, inputs in enumerate(batches):
        alone = whole if place == 0 else _rows(asking, one, axis, inputs, seed)
        rows = slice(place * length, (place + 1) * length)
        among = tuple(value[rows] for value in together)
        note(SIZES, _difference(_bytes(among), _bytes(alone)))


def _beside(asking: Asking, one: Round, axis: str) -> Inputs:
    """Return a round's inputs with other values in all that has the axis."""
    specs, other = one.subject.interface.input_specs, asking.other(one).inputs
    return {
        name: other[name] if axis in (specs[name].shape or ()) else value
        for name, value in one.inputs.items()
    }


def _joined(
    one: Round, axis: str, parts: Sequence[Inputs], lengths: Sequence[int]
) -> Inputs:
    """Return inputs with rows of several, one part's first rows behind the other's."""
    joined = dict(parts[0])
    for name, spec in one.subject.interface.input_specs.items():
        shape = spec.shape or ()
        if isinstance(joined[name], torch.Tensor) and axis in shape:
            dim, dtype = shape.index(axis), joined[name].dtype
            values = _bytes([part[name] for part in parts])
            rows = [v.narrow(dim, 0, n) for v, n in zip(values, lengths, strict=True)]
            joined[name] = torch.cat(rows, dim).view(dtype)
    return joined


def _rows(
    asking: Asking, one: Round, axis: str, inputs: Inputs, seed: int
) -> tuple[Any, ...]:
    return asking.judge.called(inputs, one.filled, 0, {}, seed=seed)


def _related(
    asking: Asking,
    one: Round,
    relation: Relation,
    column: str,
    note: Callable[[str, str], None],
) -> None:
    """Ask one relation on its first case that is not large."""
    cases = [case for case in relation.cases if case.size != "large"]
    if relation.peer is not None or not cases:
        return
    run = asking.judge.run
    subject = one.subject.with_run(run)
    single = replace(one, case=cases[0])
    trial = subject.trial(
        cases[0], run=run, make_inputs=single.make_inputs, shift=one.shift
    )
    if not asking.takes(trial):
        return
    for claim in relation.claims(related_calls(subject, trial)):
        if claim.judge is None:
            differs = _difference((claim.actual,), (claim.expected,))
            note(column, differs and f"{relation.name}: {claim.output}: {differs}")


def relations_of(one: Round) -> Sequence[Relation]:
    """Return the relations of a round's op_type, none where nothing is known of it."""
    lists = one.subject.op.relations
    if lists is None or one.subject.unresolved is not None:
        return ()
    return lists(one.subject.definition)


def _bytes(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return tensors of one byte as integers, which can be indexed and joined."""
    return tuple(v.view(torch.uint8) if v.dtype.itemsize == 1 else v for v in values)


def _difference(actual: Sequence[Any], expected: Sequence[Any]) -> str:
    """Return in words which bits differ; empty where none do."""
    for number, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if same_bits(a, e):
            continue
        if not isinstance(a, torch.Tensor) or a.shape != e.shape:
            return f"output {number} has another shape or value"
        wide = a.double(), e.double()
        count = int((wide[0] != wide[1]).sum())
        furthest = float((wide[0] - wide[1]).abs().nan_to_num().max())
        return (
            f"output {number} has other bits in {count} of {a.numel()} elements, "
            f"by {furthest:.3g} at most"
        )
    return ""
