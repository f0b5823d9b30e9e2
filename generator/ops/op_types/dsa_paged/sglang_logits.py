"""The indexer's logits as SGLang computes them: float32 [batch_size, tokens of a row].

Each takes the indexer's inputs as `run()` does.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.dsa_paged.indexer import unpacked
from kernel_judge.obstacle import Unavailable


def _width(inputs: dict[str, Any]) -> int:
    """Return the number of tokens in a row of the block table."""
    return int(inputs["block_table"].shape[1]) * int(
        inputs["k_index_cache_fp8"].shape[1]
    )


def logits_fp32(inputs: dict[str, Any]) -> torch.Tensor:
    """Call the reference of SGLang's kernel tests; its packer checks the layout."""
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


def logits_bf16(inputs: dict[str, Any]) -> torch.Tensor:
    """Call SGLang's fallback for DeepGEMM, whose dot products are bfloat16."""
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


def logits_deep_gemm(inputs: dict[str, Any]) -> torch.Tensor:
    """Call DeepGEMM, the kernel that SGLang serves with; untested by this project."""
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
