"""Relations of prefill on decode: it is two calls, and a prefill's end is a decode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from generator.ops.attention.related import ALIKE
from generator.ops.op_types.pod.inputs import DECODE, PREFILL, pod_axes
from generator.ops.paging import page_counts, page_table, token_slots
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs
from kernel_judge.relation import (
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_ALIKE = dict.fromkeys(("output_p", "output_d"), ALIKE["output"])


def pod_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a prefill and decodes."""
    lengths = (17, 80, (1, 64, 65, 129))
    case = RelatedCase(
        "prefill-and-four",
        "small",
        pod_axes(*lengths, definition.axes["page_size"]),
        {"q_std": 2.0, "kv_lens": lengths[2]},
    )
    return [
        Relation("is-two-calls", _two_calls, [case]),
        Relation("prefill-by-one-query", _one_query, [case]),
        Relation("last-query-is-a-decode", _is_decode, [case]),
        Relation("decodes-reversed", _reversed, [case]),
    ]


def _two_calls(subject: RelatedCalls) -> Iterator[Claim]:
    """Call with the prefill alone, then with the decodes alone.

    A call has both: beside the prefill the decodes have other queries and keys, and
    beside the decodes the prefill has.
    """
    inputs = subject.inputs
    other = Stream(subject.trial.case.name, "other")
    noise = {
        name: other.child(name).values(inputs[name].shape, 1.0, torch.bfloat16)
        for name in (*PREFILL, *DECODE[:3])
    }
    prefill = {**inputs, **{name: noise[name] for name in DECODE[:3]}}
    decode = {**inputs, **{name: noise[name] for name in PREFILL}}
    for noisy, name in ((prefill, "output_p"), (decode, "output_d")):
        yield from alike(
            {name: subject.whole[name]}, subject.run(noisy), {name: _ALIKE[name]}
        )


def _one_query(subject: RelatedCalls) -> Iterator[Claim]:
    """Call with single queries of the prefill, and the keys that each sees."""
    inputs = subject.inputs
    q_len, kv_len = len(inputs["q_p"]), len(inputs["k_p"])
    for i in (0, q_len // 2, q_len - 1):
        seen = kv_len - q_len + i + 1
        prefix = {name: inputs[name][:seen].contiguous() for name in ("k_p", "v_p")}
        prefix["q_p"] = inputs["q_p"][i : i + 1].contiguous()
        actual = subject.run({**inputs, **prefix})["output_p"]
        expected = subject.whole["output_p"][i : i + 1]
        yield Claim("output_p", actual, expected, _ALIKE["output_p"])


def _is_decode(subject: RelatedCalls) -> Iterator[Claim]:
    """Put the prefill's keys in pages, and decode its last query."""
    inputs = subject.inputs
    page_size = subject.definition.axes["page_size"]
    keys = {name: inputs[f"{name}_p"] for name in ("k", "v")}
    cache = _in_pages(keys, [len(inputs["k_p"])], page_size)
    last_query = {**inputs, **cache, "q_d": inputs["q_p"][-1:].contiguous()}
    actual = subject.run(last_query)["output_d"]
    yield Claim("output_d", actual, subject.whole["output_p"][-1:], _ALIKE["output_d"])


def _in_pages(tokens: Inputs, kv_lens: Sequence[int], page_size: int) -> dict[str, Any]:
    """Return caches that hold k and v [tokens, …], and their page table."""
    pages = sum(page_counts(kv_lens, page_size))
    table = page_table(kv_lens, page_size, pages, Stream("pod pages"))
    slots = torch.cat(token_slots(table, page_size))
    paged: dict[str, Any] = {
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
    }
    for name, value in tokens.items():
        held = torch.zeros(pages * page_size, *value.shape[1:], dtype=value.dtype)
        held[slots] = value
        paged[f"{name}_cache"] = held.view(pages, page_size, *value.shape[1:])
    return paged


def _reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Reverse the decodes, with their pages."""
    inputs = subject.inputs
    starts = inputs["kv_indptr"].tolist()
    pages = [
        inputs["kv_indices"][starts[b] : starts[b + 1]] for b in range(len(starts) - 1)
    ]
    flipped = {
        "q_d": inputs["q_d"].flip(0),
        "kv_indices": torch.cat(pages[::-1]),
        "kv_indptr": (starts[-1] - inputs["kv_indptr"].flip(0)),
        "kv_last_page_len": inputs["kv_last_page_len"].flip(0),
    }
    expected = {**subject.whole, "output_d": subject.whole["output_d"].flip(0)}
    yield from alike(expected, subject.run({**inputs, **flipped}), _ALIKE)
