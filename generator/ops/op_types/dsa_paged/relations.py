"""Relations of sparse attention and its indexer: token ids are arbitrary names."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.attention.related import ALIKE, MERGED, merged
from generator.ops.head_relations import head_shards
from generator.ops.row_relations import in_two_parts, reordered, taken
from generator.ops.topk_policy import PADDING, REFERENCE
from kernel_judge.comparison.compare import Comparison
from kernel_judge.comparison.policy import Policy, Question
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_COUNTS = (1, 31, 32, 33, 63, 64, 65)
_CACHES = ("ckv_cache", "kpe_cache")
_CHOSEN = Bound(
    EXACT,
    "the same scores in float32: of two at the boundary that differ by less than "
    "rounding explains, either may be selected",
)


def sparse_relations(definition: Definition) -> list[Relation]:
    """Return the relations of attention over lists of tokens.

    Page sizes above 1 are also compared with the definition of page size 1 and the same
    geometry, if the test file has it.
    """
    topk, page = definition.axes["topk"], definition.axes["page_size"]
    counts = tuple(min(n, topk) for n in _COUNTS)
    pool = -(-(max(counts) + 30) // page)
    axes = {"num_tokens": len(counts), "num_pages": pool}
    params = {"counts": counts, "scattered": False, "ends": False, "q_std": 2.0}
    cases = [RelatedCase("short-lists", "small", axes, params)]
    relations = [
        reordered("tokens-reversed", ["num_tokens"], ALIKE, cases),
        in_two_parts("tokens-in-two", "num_tokens", ALIKE, cases),
        head_shards(["num_qo_heads"], ALIKE, cases),
        Relation("lists-shuffled", _lists_shuffled, cases),
        Relation("lists-in-two-merged", _lists_in_two, cases),
        Relation("slots-permuted", _slots_permuted, cases),
    ]
    if page > 1:

        def accepts(other: Definition) -> bool:
            return other.axes == {**definition.axes, "page_size": 1}

        relations.append(Relation("page-size-1", _page_size_1, cases, accepts))
    return relations


def _lists_shuffled(subject: RelatedCalls) -> Iterator[Claim]:
    """Reorder the tokens of each list; the padding stays at the end."""
    lists = subject.inputs["sparse_indices"].clone()
    for row in lists:
        count = int((row != PADDING).sum())
        row[:count] = row[Stream("list", str(count)).permutation(count)]
    actual = subject.run({**subject.inputs, "sparse_indices": lists})
    yield from alike(subject.whole, actual, ALIKE)


def _lists_in_two(subject: RelatedCalls) -> Iterator[Claim]:
    """Attend over two parts of each list, then merge; skip lists of one token."""
    lists = subject.inputs["sparse_indices"]
    counts = (lists != PADDING).sum(dim=1)
    rows = counts > 1
    place = torch.arange(lists.shape[1]) - (counts // 3).clamp_min(1)[:, None]
    interface = subject.definition.interface
    parts = []
    for hidden in (place >= 0, place < 0):
        some = {**subject.inputs, "sparse_indices": lists.masked_fill(hidden, PADDING)}
        # move the padding of the second part to its end
        order = (some["sparse_indices"] == PADDING).int().argsort(dim=1, stable=True)
        some["sparse_indices"] = some["sparse_indices"].gather(1, order)
        part = taken(interface, some, "num_tokens", lambda n: rows.nonzero()[:, 0])
        parts.append(subject.run(part))
    expected = {name: value[rows] for name, value in subject.whole.items()}
    yield from alike(expected, merged(*parts), MERGED)


def _slots_permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Move the tokens to other slots of the pool, and adapt the indices."""
    inputs = subject.inputs
    shape = inputs[_CACHES[0]].shape[:2]
    order = Stream("slots").permutation(shape[0] * shape[1])
    moved = {
        name: inputs[name].flatten(0, 1)[order].view(inputs[name].shape)
        for name in _CACHES
    }
    lists = inputs["sparse_indices"]
    named = order.argsort()[lists.long().clamp_min(0)].to(lists.dtype)
    moved["sparse_indices"] = torch.where(lists == PADDING, lists, named)
    yield from alike(subject.whole, subject.run({**inputs, **moved}), ALIKE)


def _page_size_1(subject: RelatedCalls) -> Iterator[Claim]:
    """Call the definition of page size 1; the indices stay the same."""
    inputs = subject.inputs
    flat = {name: inputs[name].flatten(0, 1)[:, None] for name in _CACHES}
    yield from alike(subject.whole, subject.other()({**inputs, **flat}), ALIKE)


def indexer_relations(definition: Definition, policy: Policy) -> list[Relation]:
    """Return the relations of the indexer; `policy` compares the ids as sets."""
    k, page = definition.axes["topk"], definition.axes["page_size"]
    lens = (1, 31, 32, 33, page - 1, page, page + 1, k + page)
    counts = [-(-n // page) for n in lens]
    axes = {
        "batch_size": len(lens),
        "max_num_pages": max(*counts, -(-k // page)) + 1,
        "num_pages": sum(counts) + 3,
    }
    params = {"seq_lens": lens, "tied": False}
    cases = [RelatedCase("lengths", "small", axes, params)]

    def same_choice(subject: RelatedCalls, actual: torch.Tensor) -> Claim:
        """Claim the ids of the first call, up to ties at the boundary."""

        def judge(actual: torch.Tensor, expected: torch.Tensor) -> Comparison:
            question = Question(definition, subject.trial.case, inputs, REFERENCE)
            return policy.judge(actual, expected, question)

        inputs = subject.inputs
        expected = subject.whole["topk_indices"]
        return Claim("topk_indices", actual, expected, _CHOSEN, judge)

    def rows_reversed(subject: RelatedCalls) -> Iterator[Claim]:
        flipped = taken(
            definition.interface,
            subject.inputs,
            "batch_size",
            lambda n: torch.arange(n).flip(0),
        )
        yield same_choice(subject, subject.run(flipped)["topk_indices"].flip(0))

    def pages_permuted(subject: RelatedCalls) -> Iterator[Claim]:
        inputs = subject.inputs
        order = Stream("pages").permutation(len(inputs["k_index_cache_fp8"]))
        permuted = {
            **inputs,
            "k_index_cache_fp8": inputs["k_index_cache_fp8"][order],
            "block_table": order.argsort()[inputs["block_table"].long()].int(),
        }
        ids = subject.run(permuted)["topk_indices"].long()
        back = order[ids.clamp_min(0) // page] * page + ids % page
        ids = torch.where(ids < 0, ids, back).int()
        yield same_choice(subject, ids)

    return [
        Relation("batch-reversed", rows_reversed, cases),
        Relation("pages-permuted", pages_permuted, cases),
    ]
