"""dsa_paged: sparse latent attention over chosen tokens, and the indexer that chooses.

Sparse attention is multi-head latent attention of each query over its own list of
tokens, `sparse_indices`, where an index is page · page_size + offset and -1 is padding.
LSE is base 2. An index that stands twice in a list counts twice, as it does in the
kernels; the indexer never writes one. The indexer's outputs are judged as sets.
"""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import torch

from generator.support.attention import (
    FA2,
    FA3,
    FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    QK_NOPE_HEAD_DIM,
    TO_ORACLE,
    logit_params,
    lse_of_tensor_cores,
    oracle_attention,
    scale_of,
    workspace,
)
from generator.support.definition import Backend, Case, Definition
from generator.support.indexer import (
    exact_scores,
    indexer_cases,
    indexer_inputs,
    indexer_rows,
    unpacked,
    visible_ids,
)
from generator.support.paging import STALE
from generator.support.related_sparse import indexer_relations, sparse_relations
from generator.support.relation import Relation
from generator.support.sglang import Unavailable
from generator.support.stream import Stream
from generator.support.topk_policy import PADDING, TopKSet

TOLERANCES = (
    *TO_ORACLE,
    *FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    lse_of_tensor_cores(products=576, total=1105),
)
POLICIES = {"topk_indices": TopKSet(indexer_rows)}

# FlashInfer's name for its kernels for Blackwell, which take pages of 32 or 64 tokens
_TRTLLM_GEN = Backend("trtllm-gen", min_sm=100, max_sm=103)
_TRTLLM_PAGE = 64
# its float64 scores are rounded to float32, then FlashInfer chooses and looks up pages
_TOP_K = Backend("top-k", min_sm=80)
_SGLANG_FP32 = Backend("fp32", needs_cuda=False)
_SGLANG_BF16 = Backend("bf16", needs_cuda=False)
_DEEP_GEMM = Backend("deep_gemm", min_sm=90)


def _is_indexer(definition: Definition) -> bool:
    return "block_table" in definition.interface.inputs


def cases(definition: Definition) -> list[Case]:
    """Return lists of every fill, padded anywhere; for the indexer its lengths."""
    if _is_indexer(definition):
        return indexer_cases(definition)
    k = definition.axes["topk"]
    page = definition.axes["page_size"]
    ragged = tuple(Stream("sparse counts").integers(1, k, 13))
    many = tuple(Stream("many sparse counts").integers(k // 2, k + 1, 96))
    found: dict[str, tuple[str, tuple[int, ...]]] = {
        "one-chosen": ("small", (1,)),
        "few-chosen": ("small", tuple(min(n, k) for n in (2, 31, 63, 64, 65, 129))),
        "nothing-chosen": ("small", (17, 0, 5, 0)),
        "scattered-padding": ("small", (5, k // 8, k // 2)),
        "pool-ends": ("small", (1, 2, 9, 40)),
        "extreme-logits": ("small", (min(70, k), 3, min(200, k))),
        "other-scale": ("small", tuple(min(n, k) for n in (3, 33, 64))),
        "whole-list": ("medium", (k, k - 1, *ragged)),
        "batch": ("large", (k, *many)),
    }
    sizes = {"batch": 32 * k, "one-chosen": 40}
    return [
        _case(name, size, counts, sizes.get(name, k + k // 8), page)
        for name, (size, counts) in found.items()
    ]


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
    """Return bfloat16 queries and latents, loud where no query has chosen a token."""
    if _is_indexer(definition):
        return indexer_inputs(definition, case, stream)
    axes = {**definition.axes, **case.axes}
    slots = axes["num_pages"] * axes["page_size"]
    indices = _indices(case, slots, axes["topk"], stream)
    made: dict[str, Any] = {
        "sparse_indices": indices,
        "sm_scale": scale_of(case, QK_NOPE_HEAD_DIM + axes["head_dim_kpe"]),
    }
    # 576 products a logit and a scale made for 192: less spread gives the same logits
    std = case.params["q_std"] / math.sqrt(3.0)
    for part, axis in (("nope", "head_dim_ckv"), ("pe", "head_dim_kpe")):
        shape = (axes["num_tokens"], axes["num_qo_heads"], axes[axis])
        made[f"q_{part}"] = stream.child(part).values(shape, std, torch.bfloat16)
    stale = torch.ones(slots, dtype=torch.bool)
    stale[indices[indices != PADDING].long()] = False
    for name in ("ckv", "kpe"):
        values = stream.child(name).values((slots, axes[f"head_dim_{name}"]))
        values[stale] *= STALE
        shape = (axes["num_pages"], axes["page_size"], axes[f"head_dim_{name}"])
        made[f"{name}_cache"] = values.view(shape).to(torch.bfloat16)
    return {name: made[name] for name in definition.interface.inputs}


def _indices(case: Case, slots: int, topk: int, stream: Stream) -> torch.Tensor:
    """Return every query's tokens in random order, then -1: int32 [num_tokens, topk].

    Scattered padding stands between the tokens as well.
    """
    counts = case.params["counts"]
    indices = torch.full((len(counts), topk), PADDING, dtype=torch.int32)
    for row, count in enumerate(counts):
        drawn = stream.child(f"tokens {row}").permutation(slots)
        if case.params["ends"]:
            # the pool's last token and its first one before all others
            inner = drawn[(drawn != 0) & (drawn != slots - 1)]
            drawn = torch.cat([torch.tensor([slots - 1, 0]), inner])
        where = torch.arange(topk)
        if case.params["scattered"]:
            where = stream.child(f"places {row}").permutation(topk)
        indices[row, where[:count]] = drawn[:count].to(torch.int32)
    return indices


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return attention and LSE in float64, or the ids of the k best exact scores."""
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
    """Return the ids of the highest float64 scores, -1 behind: int64 [batch, k]."""
    k = definition.axes["topk"]
    rows = []
    for row in range(len(inputs["seq_lens"])):
        order = exact_scores(inputs, row).argsort(descending=True, stable=True)
        ids = visible_ids(inputs, row)[order[:k]]
        rows.append(torch.nn.functional.pad(ids, (0, k - len(ids)), value=PADDING))
    return torch.stack(rows)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries with a token; the indexer's rows are all defined: bool."""
    if _is_indexer(definition):
        return torch.ones(len(inputs["seq_lens"]), dtype=torch.bool)
    rows: torch.Tensor = (inputs["sparse_indices"] != PADDING).any(dim=1)
    return rows


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between calls on related tokens."""
    if _is_indexer(definition):
        return indexer_relations(definition, POLICIES["topk_indices"])
    return sparse_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the MLA kernels, the one for sparse lists, or the choice of the top k."""
    return (_TOP_K,) if _is_indexer(definition) else (FA2, FA3, _TRTLLM_GEN)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer: dense MLA over the chosen tokens, its sparse MLA, its top k."""
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
    # a page of one token: an index of the list is a page of the flattened cache
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
    """Return a paged cache as [tokens, dim], in the order that indices count."""
    return cache.flatten(0, 1)


def _flashinfer_sparse(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Call the kernel that takes the lists as they are, with padding behind."""
    from flashinfer.decode import trtllm_batch_decode_with_kv_cache_mla

    axes, indices = definition.axes, inputs["sparse_indices"]
    # tokens before padding; a list of none is undefined and reads token 0
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
    """Let FlashInfer choose by the exact scores and translate through the pages."""
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
    """Return the indexer's logits in PyTorch, and DeepGEMM's where it is installed."""
    if not _is_indexer(definition):
        return ()
    installed = importlib.util.find_spec("deep_gemm") is not None
    return (_SGLANG_FP32, _SGLANG_BF16, *((_DEEP_GEMM,) if installed else ()))


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Take SGLang's logits and its choice of the top k, then look up the pages."""
    from sglang.srt.layers.attention.dsa.dsa_topk_backend import _topk_unfused

    logits = {
        _SGLANG_FP32.name: _logits_fp32,
        _SGLANG_BF16.name: _logits_bf16,
        _DEEP_GEMM.name: _logits_deep_gemm,
    }[backend](inputs)
    k, page_size = definition.axes["topk"], definition.axes["page_size"]
    local = _topk_unfused(logits, inputs["seq_lens"], k).long()
    page = inputs["block_table"].long().gather(1, local.clamp_min(0) // page_size)
    ids = page * page_size + local % page_size
    return torch.where(local < 0, PADDING, ids).to(torch.int32)


def _width(inputs: dict[str, Any]) -> int:
    """Return how many tokens the block table has room for."""
    return int(inputs["block_table"].shape[1]) * int(
        inputs["k_index_cache_fp8"].shape[1]
    )


def _logits_fp32(inputs: dict[str, Any]) -> torch.Tensor:
    """Call the reference of SGLang's kernel tests; SGLang's packer proves the layout."""
    from sglang.srt.layers.attention.dsa.utils import fp8_mqa_logits_make_fused_kv
    from sglang.test.kernels.paged_mqa import ref_fp8_paged_mqa_logits

    cache, q = inputs["k_index_cache_fp8"], inputs["q_index_fp8"]
    num_pages, page_size = cache.shape[:2]
    every = torch.arange(num_pages * page_size, device=cache.device)
    keys, scales = unpacked(inputs, every)
    keys = keys.to(q.dtype).view(num_pages, page_size, -1)
    scales = scales.float().view(num_pages, page_size)
    fused = fp8_mqa_logits_make_fused_kv(keys, scales, page_size, q.shape[-1])
    assert torch.equal(fused.view(torch.int8), cache), "SGLang packs pages otherwise"
    logits: torch.Tensor = ref_fp8_paged_mqa_logits(
        q[:, None],
        keys,
        scales,
        inputs["weights"],
        inputs["seq_lens"],
        inputs["block_table"],
        _width(inputs),
        page_size,
    )
    return logits


def _logits_bf16(inputs: dict[str, Any]) -> torch.Tensor:
    """Call SGLang's fallback where DeepGEMM is missing; dot products are bfloat16."""
    from sglang.srt.layers.attention.dsv4.indexer import fp8_paged_mqa_logits_torch

    logits: torch.Tensor = fp8_paged_mqa_logits_torch(
        inputs["q_index_fp8"][:, None],
        inputs["k_index_cache_fp8"].view(torch.uint8),
        inputs["weights"],
        inputs["seq_lens"],
        inputs["block_table"],
        None,
        _width(inputs),
        clean_logits=False,
    )
    return logits


def _logits_deep_gemm(inputs: dict[str, Any]) -> torch.Tensor:
    """Call the kernel that SGLang serves with; never run by this project."""
    try:
        import deep_gemm
    except (ImportError, OSError, RuntimeError) as error:
        # its wheels are built for one version of PyTorch
        raise Unavailable(f"deep_gemm: import failed: {error}") from error

    page_size = inputs["k_index_cache_fp8"].shape[1]
    lens = inputs["seq_lens"].view(-1, 1)
    schedule = deep_gemm.get_paged_mqa_logits_metadata(
        lens, page_size, deep_gemm.get_num_sms()
    )
    logits: torch.Tensor = deep_gemm.fp8_paged_mqa_logits(
        inputs["q_index_fp8"][:, None],
        inputs["k_index_cache_fp8"].view(torch.uint8),
        inputs["weights"],
        lens,
        inputs["block_table"],
        schedule,
        _width(inputs),
        clean_logits=False,
    )
    return logits
