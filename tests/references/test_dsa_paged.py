"""Reference tests of op_type dsa_paged.

Rendered: don't edit. `gen-tests --op-type dsa_paged` renders this file anew.

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

import importlib.util
import math
import sys
from typing import Any

import torch

from generator.ops.attention.cases import (
    QK_NOPE_HEAD_DIM,
    latent_queries,
    logit_params,
    scale_of,
    with_far_factors,
)
from generator.ops.attention.flashinfer import FA2, FA3, workspace
from generator.ops.attention.oracle import oracle_attention
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.op_types.dsa_paged.indexer import (
    exact_scores,
    indexer_cases,
    indexer_inputs,
    indexer_rows,
    visible_ids,
)
from generator.ops.op_types.dsa_paged.relations import (
    indexer_relations,
    sparse_relations,
)
from generator.ops.op_types.dsa_paged.sglang_logits import (
    logits_bf16,
    logits_deep_gemm,
    logits_fp32,
)
from generator.ops.paging import STALE
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
# oracle: generator.ops.attention.oracle, generator.ops.op_types.dsa_paged.indexer,
# generator.ops.topk_policy
# bounds: generator.ops.attention.tolerances
# policies: generator.ops.op_types.dsa_paged.indexer, generator.ops.topk_policy
# relations: generator.ops.op_types.dsa_paged.indexer,
# generator.ops.op_types.dsa_paged.relations, generator.ops.topk_policy

TOLERANCES = attention_tolerances(products=576, total=1105)
POLICIES = {"topk_indices": TopKSet(indexer_rows)}

# FlashInfer's kernels for Blackwell; they take pages of 32 or 64 tokens
_TRTLLM_GEN = Backend("trtllm-gen", min_sm=100, max_sm=103)
_TRTLLM_PAGE = 64
# selects from exact scores, rounded to float32, and looks up the pages
_SCORES = "inputs rewritten: the adapter computes the scores that are selected from"
_TOP_K = Backend("top-k", min_sm=80, rewrites=_SCORES)
_PLACES = "outputs rewritten: the adapter makes ids of the places that are selected"
_SGLANG_FP32 = Backend("fp32", needs_cuda=False, rewrites=_PLACES)
_SGLANG_BF16 = Backend("bf16", needs_cuda=False, rewrites=_PLACES)
_DEEP_GEMM = Backend("deep_gemm", min_sm=90, rewrites=_PLACES)


def _is_indexer(definition: Definition) -> bool:
    return "block_table" in definition.interface.inputs


def cases(definition: Definition) -> list[Case]:
    """Return the cases: lists of tokens of every length, or the indexer's cases."""
    if _is_indexer(definition):
        return indexer_cases(definition)
    k = definition.axes["topk"]
    page = definition.axes["page_size"]
    ragged = tuple(Stream("sparse counts").integers(1, k, 13))
    many = tuple(Stream("many sparse counts").integers(k // 2, k + 1, 96))
    lengths: dict[str, tuple[str, tuple[int, ...]]] = {
        "one-chosen": ("small", (1,)),
        "few-chosen": ("small", tuple(min(n, k) for n in (2, 31, 63, 64, 65, 129))),
        "nothing-chosen": ("small", (17, 0, 5, 0)),
        "scattered-padding": ("small", (5, k // 8, k // 2)),
        "pool-ends": ("small", (1, 2, 9, 40)),
        "extreme-logits": ("small", (min(70, k), 3, min(200, k))),
        "other-scale": ("small", tuple(min(n, k) for n in (3, 33, 64))),
        "whole-list": ("medium", (k, k - 1, *ragged)),
        "past-limits": (LIMITS, (40,) * 33),
        "batch": ("large", (k, *many)),
    }
    sizes = {"batch": 32 * k, "one-chosen": 40, "past-limits": 530_000}
    cases = [
        _case(name, size, counts, sizes.get(name, k + k // 8), page)
        for name, (size, counts) in lengths.items()
    ]
    return with_far_factors(definition, cases)


def _case(
    name: str, size: str, counts: tuple[int, ...], pool: int, page_size: int
) -> Case:
    axes = {"num_tokens": len(counts), "num_pages": -(-pool // page_size)}
    params = {
        "counts": counts,
        "scattered": name == "scattered-padding",
        "ends": name == "pool-ends",
        **logit_params(name),
    }
    return Case(name, size, axes, params)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; slots in no list hold values STALE times larger.

    q_nope and q_pe bfloat16 [num_tokens, num_qo_heads, d], ckv_cache and kpe_cache
    bfloat16 [num_pages, page_size, d], d being head_dim_ckv or head_dim_kpe;
    sparse_indices int32 [num_tokens, topk]. For the indexer see `indexer_inputs`.
    """
    if _is_indexer(definition):
        return indexer_inputs(definition, case, stream)
    axes = {**definition.axes, **case.axes}
    slots = axes["num_pages"] * axes["page_size"]
    indices = _indices(case, slots, axes["topk"], stream)
    inputs: dict[str, Any] = {
        "sparse_indices": indices,
        "sm_scale": scale_of(case, QK_NOPE_HEAD_DIM + axes["head_dim_kpe"]),
    }
    inputs |= latent_queries(axes, case, axes["num_tokens"], stream)
    stale = torch.ones(slots, dtype=torch.bool)
    stale[indices[indices != PADDING].long()] = False
    for name in ("ckv", "kpe"):
        values = stream.child(name).values((slots, axes[f"head_dim_{name}"]))
        values[stale] *= STALE
        shape = (axes["num_pages"], axes["page_size"], axes[f"head_dim_{name}"])
        inputs[f"{name}_cache"] = values.view(shape).to(torch.bfloat16)
    return {name: inputs[name] for name in definition.interface.inputs}


def _indices(case: Case, slots: int, topk: int, stream: Stream) -> torch.Tensor:
    """Return each query's tokens in random order: int32 [num_tokens, topk].

    Padding follows the tokens; in scattered cases it is also between them.
    """
    counts = case.params["counts"]
    indices = torch.full((len(counts), topk), PADDING, dtype=torch.int32)
    for row, count in enumerate(counts):
        drawn = stream.child(f"tokens {row}").permutation(slots)
        if case.params["ends"]:
            # the last and the first token of the pool come first
            inner = drawn[(drawn != 0) & (drawn != slots - 1)]
            drawn = torch.cat([torch.tensor([slots - 1, 0]), inner])
        where = torch.arange(topk)
        if case.params["scattered"]:
            where = stream.child(f"places {row}").permutation(topk)
        indices[row, where[:count]] = drawn[:count].to(torch.int32)
    return indices


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return the outputs from float64 arithmetic.

    Attention: output [num_tokens, num_qo_heads, head_dim_ckv] and LSE [num_tokens,
    num_qo_heads], float64. Indexer: the ids of the k best scores, int64 [batch_size, k].
    """
    if _is_indexer(definition):
        return _best(definition, inputs)
    q = torch.cat([inputs["q_nope"], inputs["q_pe"]], dim=2)
    values = inputs["ckv_cache"].flatten(0, 1)[:, None]
    keys = torch.cat([values, inputs["kpe_cache"].flatten(0, 1)[:, None]], dim=2)
    parts = []
    for row, indices in enumerate(inputs["sparse_indices"]):
        chosen = indices[indices != PADDING].long()
        one = q[row : row + 1]
        parts.append(
            oracle_attention(one, keys[chosen], values[chosen], inputs["sm_scale"])
        )
    return torch.cat([output for output, _ in parts]), torch.cat([e for _, e in parts])


def _best(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the ids of the k best exact scores, then -1: int64 [batch_size, k]."""
    k = definition.axes["topk"]
    rows = []
    for row in range(len(inputs["seq_lens"])):
        order = exact_scores(inputs, row).argsort(descending=True, stable=True)
        ids = visible_ids(inputs, row)[order[:k]]
        rows.append(torch.nn.functional.pad(ids, (0, k - len(ids)), value=PADDING))
    return torch.stack(rows)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries with a token, for the indexer all rows: bool [rows]."""
    if _is_indexer(definition):
        return torch.ones(len(inputs["seq_lens"]), dtype=torch.bool)
    rows: torch.Tensor = (inputs["sparse_indices"] != PADDING).any(dim=1)
    return rows


def relations(definition: Definition) -> list[Relation]:
    """Return the relations of sparse attention, or of the indexer."""
    if _is_indexer(definition):
        return indexer_relations(definition, POLICIES["topk_indices"])
    return sparse_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the dense and sparse MLA kernels, for the indexer the top-k kernel."""
    return (_TOP_K,) if _is_indexer(definition) else (FA2, FA3, _TRTLLM_GEN)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's dense MLA over the listed tokens, sparse MLA, or top k.

    Returns bfloat16 output and float32 LSE, or the ids, int32 [batch_size, topk].
    """
    if backend == _TOP_K.name:
        return _flashinfer_top_k(definition, inputs)
    if backend == _TRTLLM_GEN.name:
        return _flashinfer_sparse(definition, inputs)
    import flashinfer

    q, chosen = inputs["q_nope"], inputs["sparse_indices"] != PADDING
    counts = chosen.sum(dim=1, dtype=torch.int32)
    starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(
        workspace(q.device), backend=backend
    )
    # with pages of one token, indices are pages of the flattened cache
    wrapper.plan(
        torch.arange(len(counts) + 1, dtype=torch.int32, device=q.device),
        starts,
        inputs["sparse_indices"][chosen].contiguous(),
        counts,
        definition.axes["num_qo_heads"],
        definition.axes["head_dim_ckv"],
        definition.axes["head_dim_kpe"],
        1,
        False,
        inputs["sm_scale"],
        q.dtype,
        inputs["ckv_cache"].dtype,
    )
    ckv, kpe = (_tokens(inputs[name])[:, None] for name in ("ckv_cache", "kpe_cache"))
    return wrapper.run(q, inputs["q_pe"], ckv, kpe, return_lse=True)


def _tokens(cache: torch.Tensor) -> torch.Tensor:
    """Return a paged cache [num_pages, page_size, d] as [tokens, d]."""
    return cache.flatten(0, 1)


def _flashinfer_sparse(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Call the sparse kernel, with the padding of each list moved to its end."""
    from flashinfer.decode import trtllm_batch_decode_with_kv_cache_mla

    axes, indices = definition.axes, inputs["sparse_indices"]
    # an empty list is undefined; let it read token 0
    counts = (indices != PADDING).sum(dim=1, dtype=torch.int32).clamp_min(1)
    packed = indices.gather(1, (indices == PADDING).int().argsort(dim=1, stable=True))
    packed[:, 0].clamp_min_(0)
    tokens = torch.cat(
        [_tokens(inputs["ckv_cache"]), _tokens(inputs["kpe_cache"])], dim=1
    )
    tokens = torch.nn.functional.pad(tokens, (0, 0, 0, -len(tokens) % _TRTLLM_PAGE))
    query = torch.cat([inputs["q_nope"], inputs["q_pe"]], dim=2)
    output, lse = trtllm_batch_decode_with_kv_cache_mla(
        query[:, None],
        tokens.view(-1, _TRTLLM_PAGE, tokens.shape[1]),
        workspace(query.device),
        QK_NOPE_HEAD_DIM,
        axes["head_dim_ckv"],
        axes["head_dim_kpe"],
        packed[:, None].contiguous(),
        counts,
        axes["topk"],
        sparse_mla_top_k=axes["topk"],
        bmm1_scale=inputs["sm_scale"],
        bmm2_scale=1.0,
        backend=_TRTLLM_GEN.name,
        return_lse=True,
    )
    return output[:, 0], lse


def _flashinfer_top_k(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Select the top k of the exact scores and look up their pages with FlashInfer."""
    from flashinfer import top_k_page_table_transform

    table = inputs["block_table"]
    page_size = definition.axes["page_size"]
    shape = (len(table), table.shape[1] * page_size)
    scores = torch.full(shape, -math.inf, device=table.device)
    for row in range(len(table)):
        exact = exact_scores(inputs, row)
        scores[row, : len(exact)] = exact.float()
    ids: torch.Tensor = top_k_page_table_transform(
        scores,
        table,
        inputs["seq_lens"],
        definition.axes["topk"],
        deterministic=True,
        page_size=page_size,
    )
    return ids


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch logits for the indexer, and DeepGEMM's if installed."""
    if not _is_indexer(definition):
        return ()
    installed = importlib.util.find_spec("deep_gemm") is not None
    return (_SGLANG_FP32, _SGLANG_BF16, *((_DEEP_GEMM,) if installed else ()))


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the ids of SGLang's top k of its logits: int32 [batch_size, topk]."""
    from sglang.srt.layers.attention.dsa.dsa_topk_backend import _topk_unfused

    logits = {
        _SGLANG_FP32.name: logits_fp32,
        _SGLANG_BF16.name: logits_bf16,
        _DEEP_GEMM.name: logits_deep_gemm,
    }[backend](inputs)
    k, page_size = definition.axes["topk"], definition.axes["page_size"]
    local = _topk_unfused(logits, inputs["seq_lens"], k).long()
    page = inputs["block_table"].long().gather(1, local.clamp_min(0) // page_size)
    ids = page * page_size + local % page_size
    return torch.where(local < 0, PADDING, ids).to(torch.int32)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=relations,
    tolerances=TOLERANCES,
    policies=POLICIES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_DSA_SPARSE_ATTENTION = Interface(
    inputs={
        "q_nope": "bfloat16[num_tokens, num_qo_heads, head_dim_ckv]",
        "q_pe": "bfloat16[num_tokens, num_qo_heads, head_dim_kpe]",
        "ckv_cache": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "sparse_indices": "int32[num_tokens, topk]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[num_tokens, num_qo_heads, head_dim_ckv]",
        "lse": "float32[num_tokens, num_qo_heads]",
    },
    constraints=(
        "sparse_indices.shape[0] == num_tokens",
        "sparse_indices.shape[-1] == topk",
        "ckv_cache.shape[1] == page_size",
    ),
)
INTERFACE_DSA_TOPK_INDEXER_FP8 = Interface(
    inputs={
        "q_index_fp8": "float8_e4m3fn[batch_size, num_index_heads, index_head_dim]",
        "k_index_cache_fp8": "int8[num_pages, page_size, kv_cache_num_heads, head_dim_with_scale]",
        "weights": "float32[batch_size, num_index_heads]",
        "seq_lens": "int32[batch_size]",
        "block_table": "int32[batch_size, max_num_pages]",
    },
    outputs={"topk_indices": "int32[batch_size, topk]"},
    constraints=("topk <= max_num_pages * page_size",),
)

# ---- the tests


class DsaPagedTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of dsa_paged share."""

    op_type = "dsa_paged"
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
# (8) the 576 products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = 1105, and tensor
# cores add them in float32 by truncation.
# (9) Ids [rows, k] are right where rounding explains that these were chosen
# (generator.ops.topk_policy).


# Sparse multi-head latent attention, projections absorbed: each query attends to the
# tokens that its row of sparse_indices lists, whatever their order. An index is page *
# page_size + offset; -1 is padding and may stand anywhere; an index listed twice counts
# twice. Logits are q_nope . ckv + q_pe . kpe, the values are ckv, num_qo_heads query
# heads share one cache. A query without tokens gives output 0 and lse -inf. lse is base
# 2.
# model:deepseek-v3.2, sparse:topk,
# fi_api:flashinfer.decode.trtllm_batch_decode_with_kv_cache_mla
# Tolerances:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer, sglang                0.01      0.008    2e-05  default
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (4)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (5)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (5)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (6) (7)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00026  1e-07  (8)
#   lse     flashinfer, sglang                1e-05     1e-05    1e-07  default
def reference_dsa_sparse_attention():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        sparse_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_tokens, num_qo_heads, _ = q_nope.shape

        # An index counts tokens: page * page_size + offset.
        ckv_tokens = ckv_cache.flatten(0, 1)
        kpe_tokens = kpe_cache.flatten(0, 1)

        # What a query returns for which no token was chosen.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (num_tokens, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
        )

        for t in range(num_tokens):
            # -1 is padding, wherever it stands.
            chosen = sparse_indices[t][sparse_indices[t] >= 0].long()
            if len(chosen) == 0:
                continue
            ckv = ckv_tokens[chosen].float()
            kpe = kpe_tokens[chosen].float()

            # All heads share the compressed KV, which is both key and value.
            logits = (q_nope[t].float() @ ckv.T + q_pe[t].float() @ kpe.T) * sm_scale
            output[t] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[t] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


class DsaSparseAttentionBase(DsaPagedTests):
    reference = staticmethod(reference_dsa_sparse_attention)
    interface = INTERFACE_DSA_SPARSE_ATTENTION
    axes = {"head_dim_ckv": 512, "head_dim_kpe": 64, "topk": 2048}

class TestDsaSparseAttentionH128Ckv512Kpe64Topk2048Ps64(DsaSparseAttentionBase):
    name = "dsa_sparse_attention_h128_ckv512_kpe64_topk2048_ps64"  # tp:1
    axes = {"num_qo_heads": 128, "page_size": 64}
    sha256 = "4a9980d2470344de9c3dff5fc734250dc0c969367071f8337f445e83a0a65dd1"

class TestDsaSparseAttentionH16Ckv512Kpe64Topk2048Ps1(DsaSparseAttentionBase):
    name = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps1"  # tp:8
    axes = {"num_qo_heads": 16, "page_size": 1}
    sha256 = "6e67e27caf2687bd53a65eddaf32d716af5c6aef3755fe92a705690cefc56ceb"

class TestDsaSparseAttentionH16Ckv512Kpe64Topk2048Ps64(DsaSparseAttentionBase):
    name = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"  # tp:8
    axes = {"num_qo_heads": 16, "page_size": 64}
    sha256 = "968686ec962bfb557708c4c33f60e7d1ee55a30b23fc5370e27ffa4db94bc3cf"


# Indexer of sparse attention: a token scores the sum over the heads of weight * relu(q
# . k), times the scale of its key, and a query keeps the 2048 best tokens of its
# sequence, all where there are fewer. An index is page * page_size + offset, as sparse
# attention takes it; -1 fills the row. The order of the indices and the choice among
# equal scores are free. A page of the cache is a run of bytes: the fp8 keys of its 64
# tokens, 128 bytes each, then their 64 float32 scales; the last axis counts a token's
# bytes and locates none.
# stage:indexer, model:deepseek-v3.2, sparse:topk, quant:fp8
# Tolerances:
#   topk_indices  every source  by  TopKSet    (9)
def reference_dsa_topk_indexer_fp8():
    import torch

    TOPK = 2048


    @torch.no_grad()
    def run(
        q_index_fp8: torch.Tensor,
        k_index_cache_fp8: torch.Tensor,
        weights: torch.Tensor,
        seq_lens: torch.Tensor,
        block_table: torch.Tensor,
    ) -> torch.Tensor:
        batch_size, _, head_dim = q_index_fp8.shape
        num_pages, page_size = k_index_cache_fp8.shape[:2]

        # A page is one run of bytes: the fp8 keys of all its tokens, then their scales. The
        # last two axes of the cache only say how many bytes a token takes.
        pages = k_index_cache_fp8.reshape(num_pages, -1)
        key_bytes = page_size * head_dim

        topk_indices = torch.full(
            (batch_size, TOPK), -1, dtype=torch.int32, device=q_index_fp8.device
        )
        for b, seq_len in enumerate(seq_lens.tolist()):
            used = block_table[b, : (seq_len + page_size - 1) // page_size].long()
            own = pages[used]
            keys = own[:, :key_bytes].contiguous().view(torch.float8_e4m3fn)
            scales = own[:, key_bytes:].contiguous().view(torch.float32)
            k = keys.reshape(-1, head_dim)[:seq_len].float()
            k_scale = scales.flatten()[:seq_len]

            # The scale of q is part of the weights; that of k is positive.
            dots = q_index_fp8[b].float() @ k.T  # [num_index_heads, seq_len]
            scores = (weights[b].unsqueeze(1) * dots.relu()).sum(dim=0) * k_scale

            best = scores.topk(min(TOPK, seq_len)).indices
            # From the position in the sequence to the slot in the cache.
            slots = used[best // page_size] * page_size + best % page_size
            topk_indices[b, : len(slots)] = slots.int()
        return topk_indices

    return run


class TestDsaTopkIndexerFp8H64D128Topk2048Ps64(DsaPagedTests):
    name = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
    reference = staticmethod(reference_dsa_topk_indexer_fp8)
    interface = INTERFACE_DSA_TOPK_INDEXER_FP8
    axes = {
        "num_index_heads": 64,
        "index_head_dim": 128,
        "page_size": 64,
        "topk": 2048,
        "kv_cache_num_heads": 1,
        "head_dim_with_scale": 132,
    }
    sha256 = "9f706d74881ba1a4bba951a572ebf16b3a9134af2066fecd8cda69878abb77ed"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
