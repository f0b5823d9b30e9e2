"""FlashInfer's attention wrappers: backends, workspace, and the ragged prefill."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from generator.testing.definition import Backend, Definition

FA2, FA3 = Backend("fa2", min_sm=80), Backend("fa3", min_sm=90, max_sm=90)
WORKSPACE_BYTES = 256 * 2**20


@cache
def workspace(device: torch.device) -> torch.Tensor:
    """Return the wrappers' scratch buffer: zeros, uint8 [WORKSPACE_BYTES].

    FlashInfer requires zeros before the first call. All calls on a device share it.
    """
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=device)


def ragged_prefill(
    definition: Definition,
    inputs: Mapping[str, Any],
    backend: str,
    qk_dim: int,
    vo_dim: int,
) -> Any:
    """Call FlashInfer's batch wrapper for causal prefill over contiguous keys.

    Returns bfloat16 [total_q, num_qo_heads, vo_dim] and the base-2 LSE, float32
    [total_q, num_qo_heads].
    """
    import flashinfer

    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        workspace(q.device), "NHD", backend=backend
    )
    wrapper.plan(
        inputs["qo_indptr"],
        inputs["kv_indptr"],
        definition.axes["num_qo_heads"],
        definition.axes["num_kv_heads"],
        qk_dim,
        head_dim_vo=vo_dim,
        causal=True,
        sm_scale=inputs["sm_scale"],
        q_data_type=q.dtype,
        kv_data_type=k.dtype,
    )
    return wrapper.run(q, k, v, return_lse=True)
