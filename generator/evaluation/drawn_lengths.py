"""Lengths that nobody published: of each definition some, drawn from the secret seed.

A solution that is right for the lengths of cases and workloads alone is refused. Drawn are:

- rows: each residue of 16 once, residues of 64 and 128 spread evenly, and more than 1,024
  where a row is cheap;
- sequences of keys: sixteen in one batch, each residue of 16 once, with as many queries as
  the op has; two of more than 1,024 and more than 4,096 keys; one of more than 16,384, and
  so of 256 pages where these are of 64, or on a GPU of more than 32,768;
- of all other op_types what their audit varies;
- small cases past the limits of kernels, on a GPU larger ones too, and there rows beyond
  65,536 where the definition has a case of rows that repeat: their oracle is cheap.

Bytes are bounded, so that a CPU takes seconds: sequences that do not fit are shortened, and
where weights are large, fewer residues are drawn, two at least.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch

from generator.ops.attention.audit import axes_of
from generator.ops.registry import optional_op_module
from kernel_judge.definition import LIMITS, Case, Definition
from kernel_judge.inputs.memory import tensor_bytes

AxesOfRows = Callable[[int], dict[str, int]]
RESIDUES, BLOCKS = 16, 8
# arguments of all calls for one solution together, and of one call
_TOTAL_BYTES = {"cpu": 640 << 20, "cuda": 4 << 30}
_CALL_BYTES = {"cpu": 80 << 20, "cuda": 1 << 30}
# the longest sequence of keys, and rows beyond which a kernel may loop
_LONGEST = {"cpu": 16_384, "cuda": 32_768}
_MANY_ROWS = 1_024
# a product with weights of more bytes takes a CPU too long for many rows
_LIGHT_BYTES = 1 << 20
# rows that a kernel may number by 16 bits, and bytes of a call with so many; of another
_FAR_ROWS, _FAR_BYTES = 65_536, 9 << 27
_SMALL_BYTES = {"cpu": 24 << 20, "cuda": 64 << 20}
# of rows, however large the weights are
_FEWEST = 2
# where an op_type has neither rows nor sequences
_VARIED = 4


def drawn_lengths(
    definition: Definition,
    cases: Sequence[Case],
    draw: random.Random,
    device: torch.device,
) -> Iterator[Case]:
    """Return random cases of other lengths, in the manner of a definition's own."""
    usual = _usual([case for case in cases if case.size != LIMITS])
    if usual is None:
        return
    if "kv_lens" in usual.params and "q_lens" in usual.params:
        yield from _sequences(definition, usual, draw, device.type)
        return
    axes_of_rows = _axes_of_rows(definition, usual)
    if axes_of_rows is not None and not usual.params.keys() & _OF_ROWS:
        repeats = {case.repeats for case in cases if case.repeats}
        yield from _rows(definition, usual, axes_of_rows, draw, device.type, repeats)


# parameters that say something of each row
_OF_ROWS = {"rows", "chains", "local", "hot", "products"}


def _usual(cases: Sequence[Case]) -> Case | None:
    """Return the case whose values are the most usual ones: no extremes, no edges."""
    named = {case.name: case for case in cases}
    for name in ("ragged", "rows", "batch", "odd-rows"):
        if name in named and named[name].size != "large":
            return named[name]
    fitting = [case for case in cases if case.size != "large"]
    return fitting[0] if fitting else None


def _axes_of_rows(definition: Definition, usual: Case) -> AxesOfRows | None:
    """Return what makes a call's axes of a number of rows: the op says it where they are several."""
    judged = optional_op_module(definition.op_type, "judged")
    stated: Callable[[Definition, int], dict[str, int]] | None
    stated = getattr(judged, "rows_axes", None)
    if stated is not None:
        return partial(stated, definition)
    if len(usual.axes) > 1:
        return None
    (axis,) = usual.axes
    return lambda rows: {axis: rows}


def _rows(
    definition: Definition,
    usual: Case,
    axes_of_rows: AxesOfRows,
    draw: random.Random,
    device: str,
    repeats: Collection[str],
) -> Iterator[Case]:
    """Yield rows of drawn numbers; many repeat where `repeats` has their axis."""
    axis = next(iter(usual.axes))
    fixed = tensor_bytes(definition, replace(usual, axes=axes_of_rows(0)))
    lengths = _stratified(draw)
    light = fixed <= _LIGHT_BYTES or device != "cpu"
    if light:
        lengths.append(_MANY_ROWS + draw.randrange(1, 128))
    if axis == "kv_len":
        lengths += [4_096 + draw.randrange(1, 1_500)]
        lengths += [_LONGEST[device] + draw.randrange(1, 1_000)]
    left = _TOTAL_BYTES[device]
    for number, length in enumerate(lengths):
        case = replace(usual, axes=axes_of_rows(length))
        if length > _MANY_ROWS and axis in repeats:
            case = replace(case, repeats=axis)
        size = tensor_bytes(definition, case)
        if size <= left or number < _FEWEST:
            left -= size
            yield case


def _stratified(draw: random.Random) -> list[int]:
    """Return 16 lengths from 1 to 128: each residue of 16 once, each block of 16 twice."""
    blocks = list(range(BLOCKS)) * (RESIDUES // BLOCKS)
    draw.shuffle(blocks)
    lengths = [RESIDUES * b + r or RESIDUES * BLOCKS for r, b in enumerate(blocks)]
    draw.shuffle(lengths)
    return lengths


def _sequences(
    definition: Definition, usual: Case, draw: random.Random, device: str
) -> Iterator[Case]:
    decodes = set(usual.params["q_lens"]) == {1}

    def queries(count: int, most: int) -> list[int]:
        return [1 if decodes else draw.randrange(1, most) for _ in range(count)]

    def case_of(queries: list[int], keys: list[int]) -> Case:
        params = {**usual.params, "q_lens": tuple(queries), "kv_lens": tuple(keys)}
        page_size = definition.axes.get("page_size", 1)
        axes = axes_of(params, list(zip(queries, keys, strict=True)), page_size)
        return replace(
            usual, axes={name: axes[name] for name in usual.axes}, params=params
        )

    # queries of every residue too, each behind at least as many keys
    keys = [n + 128 * draw.randrange(2) for n in _stratified(draw)]
    lengths = [1] * len(keys) if decodes else _stratified(draw)
    yield case_of([min(q, k) for q, k in zip(lengths, keys, strict=True)], keys)
    middle = [1_025 + draw.randrange(1_500), 4_097 + draw.randrange(1_500)]
    longest = _LONGEST[device] + 1 + draw.randrange(1_000)
    for wanted in (middle, [longest]):
        scale = 1.0
        while scale > 1 / 64:
            case = case_of(queries(len(wanted), 5), [int(n * scale) for n in wanted])
            if tensor_bytes(definition, case) <= _CALL_BYTES[device]:
                yield case
                break
            scale /= 1.25


def past_limits(
    definition: Definition,
    cases: Sequence[Case],
    draw: random.Random,
    device: torch.device,
) -> Iterator[Case]:
    """Return the cases of size `limits` that are cheap; on a GPU rows that repeat, longer.

    A CPU takes too long for these: as many rows as it can have are drawn above.
    """
    # those of far factors are asked apart, as far as kernels take them
    past = [case for case in cases if case.size == LIMITS and not case.moved]
    if device.type == "cpu":
        past = [case for case in past if not case.repeats]
    far = next((case for case in past if case.repeats), None)
    for case in past:
        most = _SMALL_BYTES[device.type]
        if case is far:
            most = _FAR_BYTES
            case = _far(definition, case, _FAR_ROWS + 1 + draw.randrange(1_000))
        if tensor_bytes(definition, case) <= most:
            yield case


def _far(definition: Definition, case: Case, rows: int) -> Case:
    """Return a case with as many rows along the axis that repeats as the bytes allow."""
    axis = case.repeats
    size = tensor_bytes(definition, replace(case, axes={**case.axes, axis: rows}))
    most = max(case.axes[axis], rows * _FAR_BYTES // max(size, _FAR_BYTES))
    return replace(case, axes={**case.axes, axis: min(rows, most)})


def varied_anyway(definition: Definition, cases: Sequence[Case], device: str) -> int:
    """Return how many cases to draw as an audit does, where no length was drawn."""
    audit = optional_op_module(definition.op_type, "audit")
    usual = _usual(cases)
    if usual is None or not hasattr(audit, "varied"):
        return 0
    fits = tensor_bytes(definition, usual) <= _CALL_BYTES[device]
    return _VARIED if fits else 0
