"""SGLang's Triton MoE without a running server.

`fused_experts_impl` reads the process group, flags and tuned block sizes from the running
server, and calls the compiled kernel wheel to sort the tokens. On one GPU without a
server these do not exist, so this module replaces them for the call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

_FOLDER = "sglang.srt.layers.moe.moe_runner.triton_utils"
_ABSENT = object()


@contextmanager
def triton_moe(
    block_shape: Sequence[int] | None = None, config: Mapping[str, int] | None = None
) -> Iterator[Callable[..., Any]]:
    """Patch SGLang's modules and yield a callable `fused_experts_impl`.

    `block_shape` is the shape of fp8 block scales; `config` overrides the block sizes of
    the kernel.
    """
    kernel = importlib.import_module(f"{_FOLDER}.fused_moe")
    # the package's attribute of this name is the function
    align = importlib.import_module(f"{_FOLDER}.moe_align_block_size")
    chosen = dict(config if config is not None else block_sizes(block_shape))
    with ExitStack() as stack:
        for name, value in _replacements(chosen).items():
            if hasattr(kernel, name):  # versions of SGLang differ in these
                stack.enter_context(_replaced(kernel, name, value))
        if not hasattr(align, "sgl_moe_align_block_size"):
            stack.enter_context(
                _replaced(align, "sgl_moe_align_block_size", align_blocks)
            )
        if getattr(kernel, "_is_cuda", True):
            yield kernel.fused_experts_impl
        else:
            yield partial(_of_two_or_more, kernel.fused_experts_impl)


def _of_two_or_more(
    fused_experts_impl: Callable[..., Any],
    hidden_states: torch.Tensor,
    w1: torch.Tensor,
    w2: torch.Tensor,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    **keywords: Any,
) -> Any:
    """Call SGLang's function with at least two experts a token, padded with -1.

    Imported without CUDA, SGLang sums a token's experts even if there is one, although
    the kernel has then written to the output and left the summands uninitialised. An
    expert of -1 adds zeros.
    """
    if topk_ids.shape[1] == 1:
        topk_ids = torch.cat([topk_ids, torch.full_like(topk_ids, -1)], 1)
        topk_weights = torch.cat([topk_weights, torch.zeros_like(topk_weights)], 1)
    return fused_experts_impl(hidden_states, w1, w2, topk_weights, topk_ids, **keywords)


def block_sizes(block_shape: Sequence[int] | None) -> dict[str, int]:
    """Return untuned block sizes of the kernel that fit every shape."""
    rows, columns, depth, group = 64, 64, 32, 8
    if block_shape is not None:
        # a step along K must stay within one block scale
        columns, depth, group = block_shape[0], block_shape[1], 32
    return {
        "BLOCK_SIZE_M": rows,
        "BLOCK_SIZE_N": columns,
        "BLOCK_SIZE_K": depth,
        "GROUP_SIZE_M": group,
        "num_warps": 4,
        "num_stages": 3,
    }


def _replacements(config: Mapping[str, int]) -> dict[str, Any]:
    """Return replacements, by name, for what the kernel reads from a server."""
    flags = SimpleNamespace(enable_fused_moe_sum_all_reduce=False)

    def best_config(*args: Any, return_down_config: bool = False, **kwargs: Any) -> Any:
        copied = dict(config)  # the caller removes keys
        return (copied, (None, None)) if return_down_config else copied

    return {
        "get_exec": lambda: SimpleNamespace(moe=flags),
        "get_parallel": lambda: SimpleNamespace(tp_group=None),
        "is_allocation_symmetric": lambda: False,
        "use_symmetric_memory": lambda *args, **kwargs: nullcontext(),
        "try_get_optimal_moe_config": best_config,
    }


@contextmanager
def _replaced(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name, _ABSENT)
    setattr(module, name, value)
    try:
        yield
    finally:
        if before is _ABSENT:
            delattr(module, name)
        else:
            setattr(module, name, before)


def align_blocks(
    topk_ids: torch.Tensor,
    buckets: int,
    block: int,
    sorted_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    padded_total: torch.Tensor,
    bounds: torch.Tensor,
    pad_sorted_ids: bool = True,
    ignore_invalid_experts: bool = False,
) -> None:
    """Sort (token, expert) pairs by expert, in whole blocks.

    Replaces sgl_kernel.moe_align_block_size. topk_ids is int32 [tokens, top_k]. Bucket 0
    holds the pairs of expert -1, bucket e + 1 those of expert e; each is padded to a
    multiple of `block` with the number of pairs. Writes the pairs to `sorted_ids` int32
    [n], each block's expert to `expert_ids` int32 [blocks], the padded length to
    `padded_total` int32 [1], the buckets' ends to `bounds` int32 [buckets + 1].
    """
    bucket = topk_ids.reshape(-1).long() + 1
    pairs = bucket.numel()
    counts = torch.bincount(bucket, minlength=buckets)
    blocks = (counts + block - 1) // block
    ends = torch.cumsum(blocks * block, 0)
    bounds[0] = 0
    bounds[1 : buckets + 1] = ends
    padded_total[0] = ends[-1]

    order = torch.argsort(bucket, stable=True)
    ordered = bucket[order]
    # a pair's place is the start of its padded bucket plus its rank in the bucket
    starts, firsts = ends - blocks * block, torch.cumsum(counts, 0) - counts
    rank = torch.arange(pairs, device=bucket.device) - firsts[ordered]
    sorted_ids.fill_(pairs)
    sorted_ids[starts[ordered] + rank] = order.to(sorted_ids.dtype)

    experts = torch.arange(-1, buckets - 1, device=bucket.device)
    of_blocks = torch.repeat_interleave(experts, blocks)
    expert_ids.fill_(-1)
    expert_ids[: of_blocks.numel()] = of_blocks.to(expert_ids.dtype)
