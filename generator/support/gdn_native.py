"""The gated delta rule as SGLang's test suite has it: a loop over tokens and heads.

It normalises queries and keys and has a fixed scale. What it computes for other values,
of which every factor is known, is what the rule gives for these ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import torch

# what the loop adds to a square before its root
_EPS = 1e-6


def loop(
    tokens: Sequence[torch.Tensor],
    gates: Sequence[torch.Tensor],
    lengths: Sequence[int],
    states: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outputs [T, heads, values] and the sequences' last states: float32.

    tokens are q, k and v, [T, heads, length]; gates are A_log, a, dt_bias and b.
    """
    from sglang.test.kits.attention_unittest.attention_methods import gdn_attention

    q, k, v = (tensor.double() for tensor in tokens)
    A_log, a, dt_bias, b = gates
    heads, size = v.shape[1:]
    ratio = heads // k.shape[1]
    # with k' = k / r: beta v k^T and beta k k^T are those of r²·beta, v / r and k'
    roots = (k.square().sum(-1) + _EPS).sqrt().repeat_interleave(ratio, dim=1)
    share = b.double().sigmoid() * roots.square()
    assert bool((share < 1).all()), "no gate of this loop gives a share above 1"
    module = SimpleNamespace(
        split_qkv=lambda _: tuple(
            tensor[None].float() for tensor in (q, k, v / roots[..., None])
        ),
        A_log=A_log,
        dt_bias=dt_bias,
        head_k_dim=size,
        head_v_dim=size,
    )
    rows = torch.arange(len(lengths), device=v.device)
    pool = SimpleNamespace(get_mamba_indices=lambda _: rows)
    fixture = SimpleNamespace(
        reference_module=module,
        mixed_qkv=torch.zeros((), device=v.device),
        a=a,
        b=share.logit(),
        case=SimpleNamespace(
            num_input_tokens=len(v),
            num_v_heads=heads,
            num_k_heads=k.shape[1],
            input_lens=lengths,
            mis_delimiter_indices=(),
            conv_history_weight=0,
        ),
        forward_batch=SimpleNamespace(req_pool_indices=rows),
        runner=SimpleNamespace(device=v.device, req_to_token_pool=pool),
    )
    given = gdn_attention._pure_torch_gdn_reference(fixture, states)
    roots = (q.square().sum(-1) + _EPS).sqrt().repeat_interleave(ratio, dim=1)
    factor = scale * size**0.5 * roots[..., None]
    return (given.output[0] * factor).float(), given.final_states
