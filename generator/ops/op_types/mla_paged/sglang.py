"""SGLang's Triton kernel that verifies trees of drafts with latent attention."""

from __future__ import annotations

import math
from itertools import accumulate
from operator import mul
from typing import Any

import torch

from generator.ops.attention.variant import has_mask
from generator.ops.paging import indptr, input_table, query_starts, token_slots
from kernel_judge.definition import Backend, Definition
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip

_TO_BASE_2 = "outputs rewritten: the natural LSE is divided by ln 2"


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernel of extended sequences, for masks of the caller's alone."""
    if not has_mask(definition):
        return ()
    return (Backend("triton", min_sm=80, needs=("triton",), rewrites=_TO_BASE_2),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Call extend_attention_fwd; return output, as q_nope, and base-2 LSE float32.

    A sequence's last keys, as many as its queries, are handed over beside the cache:
    those of the tree. Skipped where there are fewer keys than queries.
    """
    from sglang.kernels.ops.attention.extend_attention import extend_attention_fwd

    q = torch.cat((inputs["q_nope"], inputs["q_pe"]), dim=2)
    latent = inputs["q_nope"].shape[2]
    keys = torch.cat((inputs["ckv_cache"], inputs["kpe_cache"]), dim=2)
    keys = keys.flatten(0, 1).unsqueeze(1)
    slots = token_slots(input_table(inputs), definition.axes["page_size"])
    q_lens = query_starts(inputs).diff().tolist()
    cuts = [len(places) - rows for places, rows in zip(slots, q_lens, strict=True)]
    if min(cuts) < 0:
        skip(Kind.NO_KERNEL, "sglang: a sequence has no more queries than keys")
    pairs = list(zip(slots, cuts, strict=True))
    tree = keys[torch.cat([places[cut:] for places, cut in pairs])].contiguous()
    sizes = map(mul, q_lens, map(len, slots))
    output = torch.empty_like(inputs["q_nope"])
    lse = torch.empty(output.shape[:2], dtype=torch.float32, device=q.device)
    extend_attention_fwd(
        q,
        tree,
        tree[..., :latent],
        output,
        keys,
        keys[..., :latent],
        inputs["qo_indptr"],
        indptr(cuts).to(q.device),
        torch.cat([places[:cut] for places, cut in pairs]).to(q.device),
        inputs["custom_mask"].view(torch.uint8),
        False,
        torch.tensor([0, *accumulate(sizes)], device=q.device),
        max(q_lens),
        1.0,
        1.0,
        sm_scale=inputs["sm_scale"],
        skip_prefix_custom_mask=False,
        lse_extend=lse,
    )
    return output, lse / math.log(2.0)
