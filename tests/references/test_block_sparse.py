"""Reference tests of op_type block_sparse.

Rendered: don't edit. `gen-tests --op-type block_sparse` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
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

from generator.ops.attention.cases import logit_params, with_far_factors
from generator.ops.attention.flashinfer import FA2, FA3, skip_unmasked, workspace
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.op_types.block_sparse.dense import (
    dense_attention,
    is_variable,
    visible,
)
from generator.ops.op_types.block_sparse.inputs import causal_blocks, sparse_inputs
from generator.ops.op_types.block_sparse.relations import sparse_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.block_sparse.dense
# bounds: generator.ops.attention.tolerances
# relations: generator.ops.op_types.block_sparse.relations

TOLERANCES = attention_tolerances(products=128, total=800)
# block columns, and how many of them each block row sees
_BLOCKS = {
    "one-block": ("small", 1, (1,)),
    "some-blocks": ("small", 4, (1, 3, 2)),
    "all-blocks": ("small", 3, (3, 3)),
    "empty-rows": ("small", 3, (0, 2, 0, 1)),
    "extreme-logits": ("small", 3, (2, 1)),
    "other-scale": ("small", 3, (1, 2)),
    "batch": ("medium", 9, (4, 1, 9, 0, 2)),
    "many-rows": (LIMITS, 9, (8,) * 1_034),
    "many-columns": (LIMITS, 1_034, (1_034, 5)),
    "long": ("large", 64, tuple(range(1, 33))),
}
# block columns, and the positions of the queries
_POSITIONS = {
    "first-token": ("small", 1, (0,)),
    "around-a-block": ("small", 3, (127, 128, 129, 255, 256, 300)),
    "extreme-logits": ("small", 2, (70, 200)),
    "other-scale": ("small", 2, (33, 255)),
    "more-blocks-than-chosen": ("medium", 20, (5, 2047, 2048, 2300, 2559)),
    "past-limits": (LIMITS, 131, tuple(range(100, 16_768, 127))),
    "long": ("large", 256, tuple(range(7, 32768, 331))),
}
# block rows and columns, queries and keys
_SIZES = {
    "one-block": ("small", 1, 1, 5, 7),
    "some-blocks": ("small", 3, 4, 33, 65),
    "many-small-blocks": ("small", 9, 17, 20, 40),
    "extreme-logits": ("small", 2, 3, 9, 70),
    "other-scale": ("small", 2, 2, 20, 33),
    "batch": ("medium", 5, 9, 200, 300),
    "long-block": (LIMITS, 1, 2, 8_300, 40),
    "many-keys": (LIMITS, 2, 1, 20, 8_300),
    "long": ("large", 32, 64, 1024, 4096),
}


def cases(definition: Definition) -> list[Case]:
    """Return few and many blocks, rows without a block, all blocks, far scales."""
    return with_far_factors(definition, _cases(definition))


def _cases(definition: Definition) -> list[Case]:
    if is_variable(definition):
        names = ("num_block_rows", "num_block_columns", "q_len", "kv_len")
        return [
            Case(name, size, dict(zip(names, lengths, strict=True)), logit_params(name))
            for name, (size, *lengths) in _SIZES.items()
        ]
    if "mask" in definition.interface.inputs:
        length = definition.axes["block_columns"]
        return [
            _case(name, size, len(p), columns, causal_blocks(p, length), positions=p)
            for name, (size, columns, p) in _POSITIONS.items()
        ]
    return [
        _case(name, size, len(counts), columns, sum(counts), counts=counts)
        for name, (size, columns, counts) in _BLOCKS.items()
    ]


def _case(
    name: str, size: str, rows: int, columns: int, blocks: int, **params: Any
) -> Case:
    axes = {
        "num_block_rows": rows,
        "num_block_columns": columns,
        "len_indptr": rows + 1,
        "num_blocks": blocks,
    }
    return Case(name, size, axes, {**params, **logit_params(name)})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `sparse_inputs` for their shapes."""
    return sparse_inputs(definition, case, stream)


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and LSE in float64: dense attention under the blocks' mask."""
    return dense_attention(definition, inputs, visible(definition, inputs))


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the block rows that see a block; where sizes vary all heads, all rows do."""
    if is_variable(definition):
        return torch.ones(len(inputs["q"]), dtype=torch.bool)
    rows: torch.Tensor = inputs["indptr"].diff() > 0
    return rows


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, which takes no mask; sizes that vary need einops."""
    if is_variable(definition):
        return tuple(
            Backend(b.name, b.min_sm, b.max_sm, needs=("einops",)) for b in (FA2, FA3)
        )
    return (FA2,) if "mask" in definition.interface.inputs else (FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's block-sparse wrappers."""
    from flashinfer import sparse

    skip_unmasked(definition, inputs, backend)
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    sizes = [
        definition.axes[axis] for axis in ("num_qo_heads", "num_kv_heads", "head_dim")
    ]
    options = {
        "sm_scale": inputs["sm_scale"],
        "q_data_type": q.dtype,
        "kv_data_type": k.dtype,
    }
    if is_variable(definition):
        variable = sparse.VariableBlockSparseAttentionWrapper(
            workspace(q.device), backend
        )
        blocks = [inputs[n] for n in ("block_mask", "block_row_sz", "block_col_sz")]
        variable.plan(*blocks, *sizes, **options)
        return variable.run(q, k, v, return_lse=True)
    wrapper = sparse.BlockSparseAttentionWrapper(workspace(q.device), backend)
    wrapper.plan(
        inputs["indptr"],
        inputs["indices"],
        q.shape[0] * q.shape[1],
        k.shape[0] * k.shape[1],
        q.shape[1],
        k.shape[1],
        *sizes,
        mask=inputs.get("mask"),
        o_data_type=q.dtype,
        **options,
    )
    flat = (value.flatten(0, 1) for value in (q, k, v))
    output, lse = wrapper.run(*flat, return_lse=True)
    return output.view(q.shape), lse.view(q.shape[:3])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=sparse_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)


# ---- the interfaces

INTERFACE_BLOCK_SPARSE_RUN_MASK = Interface(
    inputs={
        "q": "bfloat16[num_block_rows, block_rows, num_qo_heads, head_dim]",
        "k": "bfloat16[num_block_columns, block_columns, num_kv_heads, head_dim]",
        "v": "bfloat16[num_block_columns, block_columns, num_kv_heads, head_dim]",
        "indptr": "int32[len_indptr]",
        "indices": "int32[num_blocks]",
        "mask": "bool[num_blocks, block_rows, block_columns]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[num_block_rows, block_rows, num_qo_heads, head_dim]",
        "lse": "float32[num_block_rows, block_rows, num_qo_heads]",
    },
    constraints=("len_indptr == num_block_rows + 1", "num_blocks == indptr[-1].item()"),
)
INTERFACE_BLOCK_SPARSE_RUN = INTERFACE_BLOCK_SPARSE_RUN_MASK.but(
    without=("mask",),
)
INTERFACE_VARIABLE_BLOCK_SPARSE_RUN = Interface(
    inputs={
        "q": "bfloat16[num_qo_heads, q_len, head_dim]",
        "k": "bfloat16[num_kv_heads, kv_len, head_dim]",
        "v": "bfloat16[num_kv_heads, kv_len, head_dim]",
        "block_mask": "bool[num_kv_heads, num_block_rows, num_block_columns]",
        "block_row_sz": "int32[num_kv_heads, num_block_rows]",
        "block_col_sz": "int32[num_kv_heads, num_block_columns]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[num_qo_heads, q_len, head_dim]",
        "lse": "float32[num_qo_heads, q_len]",
    },
)

# ---- the tests


class BlockSparseTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of block_sparse share."""

    op_type = "block_sparse"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) one rounding to bfloat16.
# (2) the kernel multiplies weights in bfloat16.
# (3) the plain kernel's output, of weights in bfloat16, is rounded, multiplied by the
# share that the sinks leave and rounded again, and run() rounds once.
# (4) the float32 sum of a logit's 576 products is off by sqrt(576/2)·0.4·2^-24 of their
# deviation of 2, 8.1e-7 root mean square and 4.9e-6 at most, which is 6 times that,
# 7e-6 in base 2.
# (5) a CPU and a GPU add the products of a logit in different orders, as a GPU does for
# rows that are views.
# (6) fa2 sums the probabilities after rounding them to bfloat16, whose unit roundoff is
# 2^-8.
# (7) a factor or an offset of 7.6e-06 is allowed.
# (8) the 128 products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = 800, and tensor
# cores add them in float32 by truncation.


# Grouped-query attention over blocks: num_qo_heads query heads share num_kv_heads KV
# heads. Queries come in rows of 1, keys in columns of 128. The queries of block row i
# see the keys of the block columns indices[indptr[i]:indptr[i + 1]], in any order and
# none twice, each as far as its block of mask is true; every query sees a key. A row
# without a block gives output 0 and lse -inf. There is no causal mask. lse is base 2.
# stage:prefill, fi_api:flashinfer.sparse.BlockSparseAttentionWrapper, sparse:block
# Tolerances:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer                        0.01      0.008    2e-05  default
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (4)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (5)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (5)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (6) (7)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019  1e-07  (8)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
def reference_block_sparse_run_mask():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        mask: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_block_rows, block_rows, num_qo_heads, head_dim = q.shape
        num_kv_heads = k.shape[2]
        group_size = num_qo_heads // num_kv_heads

        # What the queries of a row without a block return.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:3], -math.inf, dtype=torch.float32, device=q.device)

        bounds = indptr.tolist()
        for row in range(num_block_rows):
            if bounds[row] == bounds[row + 1]:
                continue
            columns = indices[bounds[row] : bounds[row + 1]]
            keys = k[columns].flatten(0, 1).float()  # [keys, num_kv_heads, head_dim]
            values = v[columns].flatten(0, 1).float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[row].float()
            queries = queries.reshape(block_rows, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            # The blocks' masks lie beside each other as their keys do.
            seen = mask[bounds[row] : bounds[row + 1]].transpose(0, 1).flatten(1, 2)
            logits.masked_fill_(~seen, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[row] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[row] = logits.logsumexp(dim=-1).flatten(0, 1).T / math.log(2)
        return output, lse

    return run


class BlockSparseRunMaskBase(BlockSparseTests):
    reference = staticmethod(reference_block_sparse_run_mask)
    interface = INTERFACE_BLOCK_SPARSE_RUN_MASK
    axes = {"block_rows": 1, "block_columns": 128, "head_dim": 128}

class TestBlockSparseRunMaskR1C128H16Kv1D128(BlockSparseRunMaskBase):
    name = "block_sparse_run_mask_r1_c128_h16_kv1_d128"  # tp:4
    axes = {"num_qo_heads": 16, "num_kv_heads": 1}
    sha256 = "75ceaf990b8fb7de0d172e704859acfecd4455d8a384f5051e5d8c600626f2af"

class TestBlockSparseRunMaskR1C128H64Kv4D128(BlockSparseRunMaskBase):
    name = "block_sparse_run_mask_r1_c128_h64_kv4_d128"  # tp:1
    axes = {"num_qo_heads": 64, "num_kv_heads": 4}
    sha256 = "3d01a46184ffcf8a61839109f0d94a1c883610fedf8f85dd60599dec37c34594"


# Grouped-query attention over blocks: num_qo_heads query heads share num_kv_heads KV
# heads. Queries come in rows of 64, keys in columns of 64. The queries of block row i
# see the keys of the block columns indices[indptr[i]:indptr[i + 1]], in any order and
# none twice. A row without a block gives output 0 and lse -inf. There is no causal
# mask. lse is base 2.
# stage:prefill, fi_api:flashinfer.sparse.BlockSparseAttentionWrapper, sparse:block,
# tp:1
# Tolerances: those of reference_block_sparse_run_mask.
def reference_block_sparse_run():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        indptr: torch.Tensor,
        indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_block_rows, block_rows, num_qo_heads, head_dim = q.shape
        num_kv_heads = k.shape[2]
        group_size = num_qo_heads // num_kv_heads

        # What the queries of a row without a block return.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:3], -math.inf, dtype=torch.float32, device=q.device)

        bounds = indptr.tolist()
        for row in range(num_block_rows):
            if bounds[row] == bounds[row + 1]:
                continue
            columns = indices[bounds[row] : bounds[row + 1]]
            keys = k[columns].flatten(0, 1).float()  # [keys, num_kv_heads, head_dim]
            values = v[columns].flatten(0, 1).float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[row].float()
            queries = queries.reshape(block_rows, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[row] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[row] = logits.logsumexp(dim=-1).flatten(0, 1).T / math.log(2)
        return output, lse

    return run


class BlockSparseRunBase(BlockSparseTests):
    reference = staticmethod(reference_block_sparse_run)
    interface = INTERFACE_BLOCK_SPARSE_RUN
    axes = {"block_rows": 64, "block_columns": 64, "head_dim": 128}

class TestBlockSparseRunR64C64H12Kv12D128(BlockSparseRunBase):
    name = "block_sparse_run_r64_c64_h12_kv12_d128"  # model:wan2.1-t2v-1.3b
    axes = {"num_qo_heads": 12, "num_kv_heads": 12}
    sha256 = "19160592573d2925c79f7abee796174e7cf3db6308a9f58a5bfe3f5c49de89f9"

class TestBlockSparseRunR64C64H40Kv40D128(BlockSparseRunBase):
    name = "block_sparse_run_r64_c64_h40_kv40_d128"  # model:wan2.1-t2v-14b
    axes = {"num_qo_heads": 40, "num_kv_heads": 40}
    sha256 = "b257c98eb6a6012ca8e01f8e17d4bffce39ae162bcf91f3314168c8b0184d480"


# Grouped-query attention over blocks: num_qo_heads query heads share num_kv_heads KV
# heads, which have blocks of their own. KV head h cuts its queries into rows of
# block_row_sz[h] and its keys into columns of block_col_sz[h]; row i sees column j
# where block_mask[h, i, j]. Every row sees a column. There is no causal mask. lse is
# base 2.
# stage:prefill, fi_api:flashinfer.sparse.VariableBlockSparseAttentionWrapper,
# sparse:block, tp:1
# Tolerances: those of reference_block_sparse_run_mask.
def reference_variable_block_sparse_run():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        block_mask: torch.Tensor,
        block_row_sz: torch.Tensor,
        block_col_sz: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_qo_heads, q_len, head_dim = q.shape
        num_kv_heads = k.shape[0]

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        group_size = num_qo_heads // num_kv_heads
        queries = q.float().reshape(num_kv_heads, group_size, q_len, head_dim)
        output = torch.zeros_like(queries)
        lse = torch.zeros_like(queries[..., 0])
        for head in range(num_kv_heads):
            # Each block stands for as many queries, and keys, as its sizes say.
            seen = block_mask[head].repeat_interleave(block_row_sz[head], dim=0)
            seen = seen.repeat_interleave(block_col_sz[head], dim=1)  # [q_len, kv_len]
            logits = queries[head] @ k[head].float().T * sm_scale
            logits.masked_fill_(~seen, -math.inf)
            output[head] = logits.softmax(dim=-1) @ v[head].float()
            # Base 2: log2 of the sum of exponentials.
            lse[head] = logits.logsumexp(dim=-1) / math.log(2)
        return output.flatten(0, 1).to(q.dtype), lse.flatten(0, 1)

    return run


class VariableBlockSparseRunBase(BlockSparseTests):
    reference = staticmethod(reference_variable_block_sparse_run)
    interface = INTERFACE_VARIABLE_BLOCK_SPARSE_RUN
    axes = {"head_dim": 128}

class TestVariableBlockSparseRunH12Kv12D128(VariableBlockSparseRunBase):
    name = "variable_block_sparse_run_h12_kv12_d128"  # model:wan2.1-t2v-1.3b
    axes = {"num_qo_heads": 12, "num_kv_heads": 12}
    sha256 = "45d010f47a23005324cebaeed1d7af07b600bf38d15ea028bd35dbfe821e10d5"

class TestVariableBlockSparseRunH40Kv40D128(VariableBlockSparseRunBase):
    name = "variable_block_sparse_run_h40_kv40_d128"  # model:wan2.1-t2v-14b
    axes = {"num_qo_heads": 40, "num_kv_heads": 40}
    sha256 = "1a687693ebfe16a456528228a84707ff038d54a5e5ccfb54525ad35667a84227"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
