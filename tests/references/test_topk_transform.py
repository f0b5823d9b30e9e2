"""Reference tests of op_type topk_transform.

Rendered: don't edit. `gen-tests --op-type topk_transform` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.op_types.topk_transform.relations import topk_relations
from generator.ops.op_types.topk_transform.scores import (
    score_case,
    score_inputs,
    score_rows,
)
from generator.ops.topk_policy import PADDING, TopKSet
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.topk_transform.scores, generator.ops.topk_policy
# policies: generator.ops.op_types.topk_transform.scores, generator.ops.topk_policy
# relations: generator.ops.op_types.topk_transform.relations,
# generator.ops.op_types.topk_transform.scores, generator.ops.topk_policy

POLICIES = {"indices": TopKSet(score_rows)}
# POLICIES compares sets
TOLERANCES = ()


# places are int32: beyond 16 bits, 24 bits and the halves of both
_FAR = 2**30


def cases(definition: Definition) -> list[Case]:
    """Return rows around k and around a page, ties, near ties, and shared sequences."""
    k, page = definition.axes["k"], definition.constants.get("page_size", 1)
    ragged = tuple(Stream("top-k lengths").integers(1, 5 * k, 12))
    long = tuple(Stream("long top-k lengths").integers(1, 16 * k, 24))
    past = (33_000, *[k + 5] * 130)
    near = (k + 1, k + 3 * page + 7, 2 * k)
    return [
        score_case(definition, "one-token", "small", (1,)),
        score_case(definition, "short", "small", (3, 0, page + 1, k // 2 + 1)),
        score_case(definition, "around-k", "small", (k - 1, k, k + 1, k + page)),
        score_case(definition, "ties", "small", (k + k // 4, 3 * k), "tied"),
        score_case(definition, "near-ties", "small", near, "near"),
        score_case(definition, "shared", "small", (k + 5, k + 6, 2 * k), shared=2),
        score_case(definition, "ragged", "medium", ragged, shared=3),
        score_case(definition, "past-limits", LIMITS, past, base=_FAR),
        score_case(definition, "long", "large", long),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `score_inputs` for their shapes."""
    return score_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return places by sorting each row in float64: int64 [num_rows, k]."""
    k = definition.axes["k"]
    chosen = torch.full((len(inputs["lengths"]), k), PADDING)
    for row, one in enumerate(score_rows(definition, inputs, ())):
        best = one.scores.sort(descending=True, stable=True).indices[:k]
        chosen[row, : len(best)] = one.ids[best]
    return chosen


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between rows in another order, renamed pages, shifted rows."""
    return topk_relations(definition, POLICIES["indices"])


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the radix kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call the transform of flashinfer.topk that the definition is named after."""
    from flashinfer import topk

    k = definition.axes["k"]
    rows: torch.Tensor
    scores, lengths = inputs["input"], inputs["lengths"]
    if "offsets" in inputs:
        rows = topk.top_k_ragged_transform(scores, inputs["offsets"], lengths, k)
        return rows
    rows = topk.top_k_page_table_transform(
        scores,
        inputs["src_page_table"],
        lengths,
        k,
        row_to_batch=inputs["row_to_batch"],
        page_size=definition.constants["page_size"],
    )
    return rows


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's kernel, which it compiles for two values of k."""
    compiled = definition.axes["k"] in (512, 2048)
    rewrites = "outputs rewritten: the adapter makes places of the columns"
    return (Backend("jit", min_sm=80, rewrites=rewrites),) if compiled else ()


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return what SGLang's kernel selects, as places; it returns columns."""
    from sglang.kernels.ops.attention import fast_topk

    columns = fast_topk.fast_topk(
        inputs["input"], inputs["lengths"], definition.axes["k"]
    ).long()
    if "offsets" in inputs:
        places = columns + inputs["offsets"][:, None]
    else:
        size = definition.constants["page_size"]
        tables = inputs["src_page_table"][inputs["row_to_batch"].long()].long()
        pages = tables.gather(1, columns.clamp_min(0) // size)
        places = pages * size + columns % size
    places = places.masked_fill(columns < 0, PADDING)
    # its padding need not be last
    order = (columns < 0).int().argsort(dim=1, stable=True)
    rows: torch.Tensor = places.gather(1, order).int()
    return rows


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=relations,
    policies=POLICIES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_TOP_K_PAGE_TABLE_TRANSFORM = Interface(
    inputs={
        "input": "float32[num_rows, max_len]",
        "src_page_table": "int32[batch_size, max_pages_per_seq]",
        "lengths": "int32[num_rows]",
        "row_to_batch": "int32[num_rows]",
    },
    outputs={"indices": "int32[num_rows, k]"},
)
INTERFACE_TOP_K_RAGGED_TRANSFORM = Interface(
    inputs={
        "input": "float32[num_rows, max_len]",
        "offsets": "int32[num_rows]",
        "lengths": "int32[num_rows]",
    },
    outputs={"indices": "int32[num_rows, k]"},
)

# ---- the tests


class TopkTransformTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of topk_transform share."""

    op_type = "topk_transform"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# Reasons:
# (1) Ids [rows, k] are right where rounding explains that these were chosen
# (generator.ops.topk_policy).


# Chooses the 2048 highest of each row's first `lengths` scores, all where these are
# fewer, and returns their places: page * 1 + offset in the page, where the page is that
# of the row's sequence. -1 stands behind them. The order is free, and of scores that
# tie with the last any may be chosen.
# model:deepseek-v3.2, model:glm-5, fi_api:flashinfer.topk.top_k_page_table_transform
# Tolerances:
#   indices  every source  by  TopKSet    (1)
def reference_top_k_page_table_transform_k2048_ps1():
    import torch

    K = 2048
    PAGE_SIZE = 1


    @torch.no_grad()
    def run(
        input: torch.Tensor,
        src_page_table: torch.Tensor,
        lengths: torch.Tensor,
        row_to_batch: torch.Tensor,
    ) -> torch.Tensor:
        num_rows, max_len = input.shape
        indices = torch.full((num_rows, K), -1, dtype=torch.int32, device=input.device)
        place = torch.arange(max_len, device=input.device)
        scores = input.float().masked_fill(place >= lengths[:, None], float("-inf"))
        best = scores.topk(min(K, max_len), dim=1).indices
        pages = src_page_table[row_to_batch.long()].gather(1, best // PAGE_SIZE)
        slots = pages * PAGE_SIZE + best % PAGE_SIZE
        # of a row that is shorter than k, what stands behind its tokens is padding
        indices[:, : best.shape[1]] = slots.masked_fill(best >= lengths[:, None], -1)
        return indices

    return run


class TestTopKPageTableTransformK2048Ps1(TopkTransformTests):
    name = "top_k_page_table_transform_k2048_ps1"
    reference = staticmethod(reference_top_k_page_table_transform_k2048_ps1)
    interface = INTERFACE_TOP_K_PAGE_TABLE_TRANSFORM
    axes = {"k": 2048}
    constants = ("page_size",)
    PAGE_SIZE = 1  # "ps1" in the name
    sha256 = "cbc5a31b8230abdbea9b72d2d10c131716f5b6c6b882003ee0e9688a08a99a97"


# Chooses the 2048 highest of each row's first `lengths` scores, all where these are
# fewer, and returns their places: page * 64 + offset in the page, where the page is
# that of the row's sequence. -1 stands behind them. The order is free, and of scores
# that tie with the last any may be chosen.
# model:deepseek-v3.2, model:glm-5, fi_api:flashinfer.topk.top_k_page_table_transform
# Tolerances: those of reference_top_k_page_table_transform_k2048_ps1.
def reference_top_k_page_table_transform_k2048_ps64():
    import torch

    K = 2048
    PAGE_SIZE = 64


    @torch.no_grad()
    def run(
        input: torch.Tensor,
        src_page_table: torch.Tensor,
        lengths: torch.Tensor,
        row_to_batch: torch.Tensor,
    ) -> torch.Tensor:
        num_rows, max_len = input.shape
        indices = torch.full((num_rows, K), -1, dtype=torch.int32, device=input.device)
        place = torch.arange(max_len, device=input.device)
        scores = input.float().masked_fill(place >= lengths[:, None], float("-inf"))
        best = scores.topk(min(K, max_len), dim=1).indices
        pages = src_page_table[row_to_batch.long()].gather(1, best // PAGE_SIZE)
        slots = pages * PAGE_SIZE + best % PAGE_SIZE
        # of a row that is shorter than k, what stands behind its tokens is padding
        indices[:, : best.shape[1]] = slots.masked_fill(best >= lengths[:, None], -1)
        return indices

    return run


class TestTopKPageTableTransformK2048Ps64(TopkTransformTests):
    name = "top_k_page_table_transform_k2048_ps64"
    reference = staticmethod(reference_top_k_page_table_transform_k2048_ps64)
    interface = INTERFACE_TOP_K_PAGE_TABLE_TRANSFORM
    axes = {"k": 2048}
    constants = ("page_size",)
    PAGE_SIZE = 64  # "ps64" in the name
    sha256 = "09232d4348b04bc1aeed0ed83da8d345c2c526abb95368e843fd7bb2fe418520"


# Chooses the 512 highest of each row's first `lengths` scores, all where these are
# fewer, and returns their places: page * 1 + offset in the page, where the page is that
# of the row's sequence. -1 stands behind them. The order is free, and of scores that
# tie with the last any may be chosen.
# model:deepseek-v4-flash, fi_api:flashinfer.topk.top_k_page_table_transform
# Tolerances: those of reference_top_k_page_table_transform_k2048_ps1.
def reference_top_k_page_table_transform_k512_ps1():
    import torch

    K = 512
    PAGE_SIZE = 1


    @torch.no_grad()
    def run(
        input: torch.Tensor,
        src_page_table: torch.Tensor,
        lengths: torch.Tensor,
        row_to_batch: torch.Tensor,
    ) -> torch.Tensor:
        num_rows, max_len = input.shape
        indices = torch.full((num_rows, K), -1, dtype=torch.int32, device=input.device)
        place = torch.arange(max_len, device=input.device)
        scores = input.float().masked_fill(place >= lengths[:, None], float("-inf"))
        best = scores.topk(min(K, max_len), dim=1).indices
        pages = src_page_table[row_to_batch.long()].gather(1, best // PAGE_SIZE)
        slots = pages * PAGE_SIZE + best % PAGE_SIZE
        # of a row that is shorter than k, what stands behind its tokens is padding
        indices[:, : best.shape[1]] = slots.masked_fill(best >= lengths[:, None], -1)
        return indices

    return run


class TestTopKPageTableTransformK512Ps1(TopkTransformTests):
    name = "top_k_page_table_transform_k512_ps1"
    reference = staticmethod(reference_top_k_page_table_transform_k512_ps1)
    interface = INTERFACE_TOP_K_PAGE_TABLE_TRANSFORM
    axes = {"k": 512}
    constants = ("page_size",)
    PAGE_SIZE = 1  # "ps1" in the name
    sha256 = "1be75b28bb1aaf62020be3e7a3c976f4380d00caeae00c581f7e4d9cb841d1c6"


# Chooses the 512 highest of each row's first `lengths` scores, all where these are
# fewer, and returns their places: page * 64 + offset in the page, where the page is
# that of the row's sequence. -1 stands behind them. The order is free, and of scores
# that tie with the last any may be chosen.
# model:deepseek-v4-flash, fi_api:flashinfer.topk.top_k_page_table_transform
# Tolerances: those of reference_top_k_page_table_transform_k2048_ps1.
def reference_top_k_page_table_transform_k512_ps64():
    import torch

    K = 512
    PAGE_SIZE = 64


    @torch.no_grad()
    def run(
        input: torch.Tensor,
        src_page_table: torch.Tensor,
        lengths: torch.Tensor,
        row_to_batch: torch.Tensor,
    ) -> torch.Tensor:
        num_rows, max_len = input.shape
        indices = torch.full((num_rows, K), -1, dtype=torch.int32, device=input.device)
        place = torch.arange(max_len, device=input.device)
        scores = input.float().masked_fill(place >= lengths[:, None], float("-inf"))
        best = scores.topk(min(K, max_len), dim=1).indices
        pages = src_page_table[row_to_batch.long()].gather(1, best // PAGE_SIZE)
        slots = pages * PAGE_SIZE + best % PAGE_SIZE
        # of a row that is shorter than k, what stands behind its tokens is padding
        indices[:, : best.shape[1]] = slots.masked_fill(best >= lengths[:, None], -1)
        return indices

    return run


class TestTopKPageTableTransformK512Ps64(TopkTransformTests):
    name = "top_k_page_table_transform_k512_ps64"
    reference = staticmethod(reference_top_k_page_table_transform_k512_ps64)
    interface = INTERFACE_TOP_K_PAGE_TABLE_TRANSFORM
    axes = {"k": 512}
    constants = ("page_size",)
    PAGE_SIZE = 64  # "ps64" in the name
    sha256 = "71dfb2ba0afa649563ddac1a57fe282fec67f3bf235f976931c0b6a0c8ea7fd8"


# Chooses the 2048 highest of each row's first `lengths` scores, all where these are
# fewer, and returns their places: the row's offset + column. -1 stands behind them. The
# order is free, and of scores that tie with the last any may be chosen.
# model:deepseek-v3.2, model:glm-5, fi_api:flashinfer.topk.top_k_ragged_transform
# Tolerances: those of reference_top_k_page_table_transform_k2048_ps1.
def reference_top_k_ragged_transform_k2048():
    import torch

    K = 2048


    @torch.no_grad()
    def run(
        input: torch.Tensor, offsets: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        num_rows, max_len = input.shape
        indices = torch.full((num_rows, K), -1, dtype=torch.int32, device=input.device)
        place = torch.arange(max_len, device=input.device)
        scores = input.float().masked_fill(place >= lengths[:, None], float("-inf"))
        best = scores.topk(min(K, max_len), dim=1).indices
        tokens = (best + offsets[:, None]).to(torch.int32)
        # of a row that is shorter than k, what stands behind its tokens is padding
        indices[:, : best.shape[1]] = tokens.masked_fill(best >= lengths[:, None], -1)
        return indices

    return run


class TestTopKRaggedTransformK2048(TopkTransformTests):
    name = "top_k_ragged_transform_k2048"
    reference = staticmethod(reference_top_k_ragged_transform_k2048)
    interface = INTERFACE_TOP_K_RAGGED_TRANSFORM
    axes = {"k": 2048}
    sha256 = "395376b1c110a6df6ee9633addd0ebc55a0594028864e99e1281c3ffe9f83149"


# Chooses the 512 highest of each row's first `lengths` scores, all where these are
# fewer, and returns their places: the row's offset + column. -1 stands behind them. The
# order is free, and of scores that tie with the last any may be chosen.
# model:deepseek-v4-flash, fi_api:flashinfer.topk.top_k_ragged_transform
# Tolerances: those of reference_top_k_page_table_transform_k2048_ps1.
def reference_top_k_ragged_transform_k512():
    import torch

    K = 512


    @torch.no_grad()
    def run(
        input: torch.Tensor, offsets: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        num_rows, max_len = input.shape
        indices = torch.full((num_rows, K), -1, dtype=torch.int32, device=input.device)
        place = torch.arange(max_len, device=input.device)
        scores = input.float().masked_fill(place >= lengths[:, None], float("-inf"))
        best = scores.topk(min(K, max_len), dim=1).indices
        tokens = (best + offsets[:, None]).to(torch.int32)
        # of a row that is shorter than k, what stands behind its tokens is padding
        indices[:, : best.shape[1]] = tokens.masked_fill(best >= lengths[:, None], -1)
        return indices

    return run


class TestTopKRaggedTransformK512(TopkTransformTests):
    name = "top_k_ragged_transform_k512"
    reference = staticmethod(reference_top_k_ragged_transform_k512)
    interface = INTERFACE_TOP_K_RAGGED_TRANSFORM
    axes = {"k": 512}
    sha256 = "ae080e0053015cda387d99fedd0d018aec96a83e51f6c63809539f522995127e"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
