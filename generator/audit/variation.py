"""Random cases in the manner of a definition's own: other lengths, other draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from generator.support.definition import Case, Definition
from generator.support.paging import SPARE_PAGES, page_counts
from generator.support.stream import Stream

# lengths up to a little more than two blocks of 32
_LONGEST = 70
# of recurrences, a step of which takes as long as all of an attention's keys
_SHORTEST = 9


def varied(
    definition: Definition, cases: Sequence[Case], number: int
) -> tuple[Case, Stream]:
    """Return the numbered random case, and the stream to make its inputs from.

    Its kind is that of the definition's cases in turn. Lengths of sequences, numbers of
    rows, and filters of samples are drawn anew; what else a case says stays.
    """
    case = cases[number % len(cases)]
    stream = Stream(definition.name, case.name, f"audit {number}")
    draw = stream.child("variation")
    params, axes = dict(case.params), dict(case.axes)
    # most cases have the usual scale, which a reference may make itself
    if "q_std" in params and number // len(cases) % 2:
        params["scale"] = draw.child("scale").integers(4, 8, 1)[0] / 8.0
    # where queries have length 1 it does not show that they are normalised once more
    if definition.op_type == "gdn" and number // len(cases) % 2:
        params["q_length"] = 0.5
    if "kv_lens" in params:
        params, lengths = _with_lengths(params, draw)
        axes |= _axes_of(params, lengths, definition.axes.get("page_size", 1))
    elif "rows" in params and "calls" in params:
        rows = _filters(params["rows"], "top_p" in definition.interface.inputs, draw)
        params |= {"rows": rows, "calls": 1}
        axes["batch_size"] = sum(count for *_, count in rows)
    elif "lengths" in params:
        tokens = draw.integers(0, _SHORTEST, draw.integers(1, 4, 1)[0])
        tokens[0] = max(tokens[0], 1)
        params["lengths"] = tuple(tokens)
        axes["total_seq_len"] = sum(tokens)
        axes |= {"num_seqs": len(tokens), "len_cu_seqlens": len(tokens) + 1}
    elif {"local", "remote"} <= set(params):
        axes["seq_len"] = draw.integers(1, 6, 1)[0]
        params["local"] = _experts_here(definition, params, draw)
        # small cases give every token of a softmax the same weights, and DeepSeek's
        # have one scaling factor, and scores that are mostly positive
        if number // len(cases) % 2:
            params["uneven"] = True
            params["factor"] = draw.child("factor").integers(4, 9, 1)[0] / 4.0
            params["bias_mean"] = -1.5
    elif "seq_lens" in params:
        params["seq_lens"] = _lengths_around(params, definition.axes["topk"], draw)
        axes |= _axes_of_table(params["seq_lens"], definition.axes)
    elif set(axes) <= {"M"} or (set(axes) == {"batch_size"} and "std" in params):
        axes = {name: draw.integers(1, 9, 1)[0] for name in axes}
    axes = {name: axes[name] for name in case.axes}
    return replace(case, axes=axes, params=params), stream


def _with_lengths(
    params: dict[str, Any], draw: Stream
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Return parameters with other lengths, and those: pairs of queries and keys."""
    sequences = draw.integers(1, 5, 1)[0]
    keys = draw.child("kv").integers(0, _LONGEST, sequences)
    if set(params["q_lens"]) == {1}:
        queries = [1] * sequences
    else:
        queries = draw.child("q").integers(0, _LONGEST // 2, sequences)
        queries[0] = max(queries[0], 1)
    lengths = list(zip(queries, keys, strict=True))
    return {**params, "q_lens": tuple(queries), "kv_lens": tuple(keys)}, lengths


def _axes_of(
    params: dict[str, Any], lengths: list[tuple[int, int]], page_size: int
) -> dict[str, int]:
    pages = sum(page_counts(params["kv_lens"], page_size))
    return {
        "batch_size": len(lengths),
        "len_indptr": len(lengths) + 1,
        "total_q": sum(q for q, _ in lengths),
        "total_kv": sum(kv for _, kv in lengths),
        "num_kv_indices": pages,
        "num_pages": pages + SPARE_PAGES,
    }


def _filters(
    rows: Sequence[tuple[str, int, float, int]], with_p: bool, draw: Stream
) -> tuple[tuple[str, int, float, int], ...]:
    """Return as many kinds of rows under other filters, eight rows of each.

    No two tokens that may be kept are tied: which one stands first is free, and would
    make one law look like two. All of `steps` and, where k keeps 8, of `zeros` have
    sums that p can meet exactly.
    """
    made = []
    for place in range(len(rows)):
        own = draw.child(str(place))
        name = ("steps", "zeros", "zipf")[place % 3]
        # the tokens behind the first 12 of `steps`, and the 7th and 8th of `zeros`,
        # are tied: p leaves those out
        fewest, most = {
            "steps": (1, 12),
            "zeros": (8, 12) if with_p else (1, 6),
            "zipf": (-1, 24),
        }[name]
        p = own.integers(-1, 65 if name == "zipf" else 60, 1)[0] / 64
        # and beside a sum by less than bfloat16 has
        p += own.child("beside").integers(-1, 2, 1)[0] / 4096
        made.append((name, own.integers(fewest, most + 1, 1)[0], p, 8))
    return tuple(made)


def _experts_here(
    definition: Definition, params: Mapping[str, Any], draw: Stream
) -> int:
    """Return of how many experts here the tokens choose: few, which saves time.

    Where none are elsewhere, it takes more than each token has.
    """
    top_k = definition.constants["top_k"]
    fewest = 1 if params["remote"] else top_k + 1
    if params.get("ends"):
        fewest = max(fewest, 2)
    return int(min(params["local"], fewest + draw.child("here").integers(0, 3, 1)[0]))


def _lengths_around(
    params: Mapping[str, Any], topk: int, draw: Stream
) -> tuple[int, ...]:
    """Return lengths of a few sequences: short, or about k where a case has such."""
    if max(params["seq_lens"]) < topk // 2:
        return tuple(draw.integers(0, 3 * _LONGEST, draw.integers(1, 5, 1)[0]))
    near = draw.integers(-_LONGEST, _LONGEST, draw.integers(1, 3, 1)[0])
    return tuple(max(topk + more, 0) for more in near)


def _axes_of_table(lens: Sequence[int], axes: Mapping[str, int]) -> dict[str, int]:
    counts, page_size = page_counts(lens, axes["page_size"]), axes["page_size"]
    return {
        "batch_size": len(lens),
        # a column more than any sequence needs, and room for k tokens
        "max_num_pages": max(*counts, -(-axes["topk"] // page_size)) + 1,
        "num_pages": sum(counts) + SPARE_PAGES,
    }
