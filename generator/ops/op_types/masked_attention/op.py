"""masked_attention: attention whose logits have a mask or a bias added.

The oracle computes head by head in float64, and finds T5's buckets by comparing squares
of whole numbers. PyTorch's attention is called with the mask as it is, bool or of the
queries' dtype, as its documentation demands; T5's bias is made of its table first.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.op_types.masked_attention.relations import attention_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_UNIT = 2.0**-8
_FLASH = (
    "kernels round weights to bfloat16 before the product, by 2^-8/sqrt(3) root mean "
    "square, of which an element that happens to be small is off by as much as its row's "
    "others: 7.5 deviations; both outputs are rounded, and three roundings make 7.5e-6 of "
    "the power; logits of 30 are off by 2^-24 of themselves"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=2e-5, nmse=1.6e-5),
        "float32 sums and one rounding to bfloat16: half an ulp is 2^-8 of a value at "
        "most; logits of 30 are off by 4e-6, and so are weights, relatively",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(
            rtol=3 * _UNIT,
            atol=2e-5,
            nmse=2e-5,
            of_row=round(7.5 * _UNIT / math.sqrt(3.0), 4),
        ),
        _FLASH,
    ),
)


def _axes(
    definition: Definition, sequences: int, rows: int, keys: int
) -> dict[str, int]:
    if "relative_bias" in definition.interface.inputs:
        return {"batch_size": sequences, "seq_len": max(rows, keys)}
    return {"batch_size": sequences, "q_len": rows, "kv_len": keys}


def cases(definition: Definition) -> list[Case]:
    """Return one key, lengths around a block, high logits, far distances."""
    shapes = {
        "one-key": ("small", 1, 1, 1, 1.0),
        "short": ("small", 2, 5, 9, 1.0),
        "around-a-block": ("small", 3, 33, 65, 1.0),
        "high-logits": ("small", 2, 7, 31, 4.0),
        "far-keys": ("medium", 1, 9, 300, 1.0),
        "past-limits": (LIMITS, 3, 1_043, 523, 1.0),
        "image": ("large", 2, 4_096, 300, 1.0),
    }
    return [
        Case(name, size, _axes(definition, *sizes), {"q_std": std})
        for name, (size, *sizes, std) in shapes.items()
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return q, k and v bfloat16, and a bfloat16 or bool mask, or a table of biases.

    The first sequence has all keys but the last, the second every other one from the
    first on, the third its first key alone.
    """
    lengths = {**definition.axes, **case.axes}
    is_scaled = "relative_bias" not in definition.interface.inputs
    deviation = case.params.get("q_std", 1.0)
    deviation *= 1.0 if is_scaled else lengths["head_dim"] ** -0.5
    inputs: dict[str, Any] = {}
    for name, spec in definition.interface.input_specs.items():
        shape, drawn = shape_of(spec, lengths), stream.child(name)
        if name == "relative_bias":
            inputs[name] = drawn.values(shape, 2.0).to(torch.bfloat16)
        elif name != "mask":
            values = drawn.values(shape, deviation if name == "q" else 1.0)
            inputs[name] = values.to(torch.bfloat16)
        else:
            seen = _seen(lengths["batch_size"], lengths["kv_len"])
            inputs[name] = seen
            if spec.dtype != "bool":
                added = drawn.values(shape, 1.5).to(torch.bfloat16)
                inputs[name] = added.masked_fill(~seen[:, None], -torch.inf)
    return inputs


def _seen(sequences: int, keys: int) -> torch.Tensor:
    """Return which keys a sequence may see, bool [batch_size, kv_len]: one at least."""
    places = torch.arange(keys)
    kinds = (places < max(keys - 1, 1), places % 2 == 0, places == 0)
    return torch.stack([kinds[row % 3] for row in range(sequences)])


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the output, float64 [batch_size, rows, num_heads, head_dim], head by head."""
    q, k, v = (inputs[name].double().movedim(2, 1) for name in ("q", "k", "v"))
    added = _added(definition, inputs)
    scale = 1.0 if "relative_bias" in inputs else q.shape[-1] ** -0.5
    heads = []
    for head in range(q.shape[1]):
        logits = scale * torch.bmm(q[:, head], k[:, head].mT) + added[head]
        top = logits.amax(dim=2, keepdim=True)
        shares = torch.exp(logits - torch.where(top.isneginf(), 0.0, top))
        total = shares.sum(dim=2, keepdim=True)
        heads.append(torch.bmm(shares, v[:, head]) / torch.where(total > 0, total, 1.0))
    return torch.stack(heads, dim=2)


def _added(definition: Definition, inputs: dict[str, Any]) -> list[torch.Tensor]:
    """Return what is added to each head's logits: float64, as [batch_size, rows, keys]."""
    heads = definition.axes["num_heads"]
    if "relative_bias" in inputs:
        buckets = _buckets(inputs["q"].shape[1]).to(inputs["q"].device)
        table = inputs["relative_bias"].double()
        return [table[:, head][buckets] for head in range(heads)]
    mask = inputs["mask"]
    if mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, -torch.inf)[:, None]
    return [mask.double()] * heads


def _buckets(length: int) -> torch.Tensor:
    """Return T5's buckets, int64 [queries, keys]: 8 · 2^(j / 2) and more are beyond 8 + j."""
    places = torch.arange(length)
    behind = places[None] - places[:, None]
    square = behind * behind
    far = sum((square >= 64 * 2**j).long() for j in range(1, 8))
    near = behind.abs()
    return torch.where(near < 8, near, 8 + far) + 16 * (behind > 0)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's attention with a mask."""
    if "relative_bias" not in definition.interface.inputs:
        return (Backend("sdpa"),)
    looked_up = (
        "inputs rewritten: the bias of each pair is looked up in T5's table before"
    )
    return (Backend("sdpa", rewrites=looked_up),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return torch.nn.functional.scaled_dot_product_attention of heads first."""
    q, k, v = (inputs[name].transpose(1, 2) for name in ("q", "k", "v"))
    attention = torch.nn.functional.scaled_dot_product_attention
    if "relative_bias" in inputs:
        buckets = _buckets(q.shape[2]).to(q.device)
        bias = inputs["relative_bias"][buckets].permute(2, 0, 1)[None]
        return attention(q, k, v, attn_mask=bias, scale=1.0).transpose(1, 2)
    mask = inputs["mask"]
    mask = mask[:, None, None] if mask.dtype == torch.bool else mask[:, None]
    return attention(q, k, v, attn_mask=mask).transpose(1, 2)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)
