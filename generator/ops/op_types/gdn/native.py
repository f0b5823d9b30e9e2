"""The gated delta rule of SGLang's test suite: a loop over tokens and heads.

The loop normalises queries and keys and has a fixed scale. Where the definition does not
normalise, inputs are rescaled by known factors, so that its result equals the rule on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from generator.ops.op_types.gdn.delta_rule import states_before
from generator.ops.op_types.gdn.stage import is_normalised, scale_of
from kernel_judge.definition import Definition

# added by the loop under the square root
_EPS = 1e-6


def loop(
    inputs: Mapping[str, Any],
    states: torch.Tensor,
    scale: float,
    l2norm: bool,
    until: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the outputs, bfloat16 shaped as v, and the last states, as `states`.

    `states` is float32 [sequences, heads, values, keys]. In a batch without cu_seqlens,
    `until` limits the tokens of each sequence.
    """
    from sglang.test.kits.attention_unittest.attention_methods import gdn_attention

    rows = {name: inputs[name] for name in ("q", "k", "v", "a", "b")}
    if "cu_seqlens" in inputs:
        lengths = inputs["cu_seqlens"].diff().tolist()
    else:
        rows = {name: tensor[:, :until] for name, tensor in rows.items()}
        lengths = [rows["v"].shape[1]] * len(rows["v"])
    shape = rows["v"].shape
    if "cu_seqlens" not in inputs:
        rows = {name: tensor.flatten(0, 1) for name, tensor in rows.items()}
    q, k, v = (rows[name].double() for name in ("q", "k", "v"))
    heads, size = v.shape[1:]
    ratio = heads // k.shape[1]
    # with k' = k / r: beta v k^T and beta k k^T are those of r²·beta, v / r and k'
    roots = (k.square().sum(-1) + _EPS).sqrt().repeat_interleave(ratio, dim=1)
    if l2norm:
        roots = torch.ones_like(roots)
    share = rows["b"].double().sigmoid() * roots.square()
    assert bool((share < 1).all()), "no gate of this loop gives a share above 1"
    module = SimpleNamespace(
        split_qkv=lambda _: tuple(
            tensor[None].float() for tensor in (q, k, v / roots[..., None])
        ),
        A_log=inputs["A_log"],
        dt_bias=inputs["dt_bias"],
        head_k_dim=size,
        head_v_dim=size,
    )
    slots = torch.arange(len(lengths), device=v.device)
    pool = SimpleNamespace(get_mamba_indices=lambda _: slots)
    fixture = SimpleNamespace(
        reference_module=module,
        mixed_qkv=torch.zeros((), device=v.device),
        a=rows["a"],
        b=rows["b"] if l2norm else share.logit(),
        case=SimpleNamespace(
            num_input_tokens=len(v),
            num_v_heads=heads,
            num_k_heads=k.shape[1],
            input_lens=lengths,
            mis_delimiter_indices=(),
            conv_history_weight=0,
        ),
        forward_batch=SimpleNamespace(req_pool_indices=slots),
        runner=SimpleNamespace(device=v.device, req_to_token_pool=pool),
    )
    answer = gdn_attention._pure_torch_gdn_reference(fixture, states)
    roots = (q.square().sum(-1) + _EPS).sqrt().repeat_interleave(ratio, dim=1)
    if l2norm:
        roots = torch.ones_like(roots)
    factor = scale * size**0.5 * roots[..., None]
    output = (answer.output[0] * factor).to(torch.bfloat16).reshape(shape)
    return output, answer.final_states


def native_outputs(
    definition: Definition, inputs: dict[str, Any], buffers: Sequence[str]
) -> tuple[torch.Tensor, ...]:
    """Return the outputs of the loop, and `buffers`; mtp calls it once for each prefix."""
    states, scale = states_before(inputs), scale_of(definition, inputs)
    call = partial(loop, inputs, states, scale, is_normalised(definition))
    output, after = call()
    if "initial_state" not in inputs:
        return output, after
    for name in buffers:
        for t in range(output.shape[1]):
            _, inputs[name][: len(output), t] = call(t + 1)
    return (output, inputs["initial_state"], *(inputs[name] for name in buffers))
