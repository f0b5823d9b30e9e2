"""head_layout: heads of fused rows, heads before tokens and back, keys of MLA.

Bits are copied. Production kernels are PyTorch's copies, and FlashInfer's for the keys of
128 heads.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.head_layout.relations import layout_relations
from kernel_judge.comparison.tolerance import EXACT, Override
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = tuple(
    Override(output, EXACT, "bits are copied, none is computed")
    for output in ("q", "k", "v", "output")
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, an odd number, as many as there are heads, and many."""
    heads = definition.axes.get("num_heads", 8)
    return [
        Case("one-token", "small", {"num_tokens": 1}),
        Case("odd-tokens", "small", {"num_tokens": 7}),
        Case("as-many-as-heads", "small", {"num_tokens": min(heads, 128)}),
        Case("batch", "medium", {"num_tokens": 67}),
        past_limits("num_tokens", 8_219),
        Case("long-batch", "large", {"num_tokens": 16_384}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return each input bfloat16, of the shape that the definition declares."""
    lengths = {**definition.axes, **case.axes}
    return {
        name: stream.child(name).values(shape_of(spec, lengths)).to(torch.bfloat16)
        for name, spec in definition.interface.input_specs.items()
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return the moved heads, float64, one head at a time."""
    if "qkv" in inputs:
        return _parts(definition, inputs["qkv"].double())
    if "k_nope" in inputs:
        nope, rope = inputs["k_nope"].double(), inputs["k_rope"].double()
        keys = nope.new_empty((*nope.shape[:2], nope.shape[2] + rope.shape[1]))
        for head in range(nope.shape[1]):
            keys[:, head, : nope.shape[2]] = nope[:, head]
            keys[:, head, nope.shape[2] :] = rope
        return keys
    x = inputs["x"].double()
    return torch.stack([x[:, place] for place in range(x.shape[1])])


def _parts(definition: Definition, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return q, k and v of float64 rows, by the first column of each head."""
    heads, kv_heads, dim = (
        definition.axes[axis] for axis in ("num_qo_heads", "num_kv_heads", "head_dim")
    )
    first = {"q": 0, "k": heads * dim, "v": (heads + kv_heads) * dim}
    counts = {"q": heads, "k": kv_heads, "v": kv_heads}
    return tuple(
        torch.stack(
            [rows[:, at + dim * n : at + dim * (n + 1)] for n in range(counts[name])], 1
        )
        for name, at in first.items()
    )


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernel for keys, which is compiled for 128 heads of 128 and 64."""
    if "k_nope" not in definition.interface.inputs:
        return ()
    sizes = [definition.axes[a] for a in ("num_heads", "nope_dim", "rope_dim")]
    limit = (
        "" if sizes == [128, 128, 64] else "it is compiled for 128 heads of 128 + 64"
    )
    return (Backend("", limit=limit),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the buffer that flashinfer.concat_ops.concat_mla_k fills."""
    from flashinfer import concat_ops

    nope, rope = inputs["k_nope"], inputs["k_rope"]
    keys = nope.new_empty((*nope.shape[:2], nope.shape[2] + rope.shape[1]))
    concat_ops.concat_mla_k(keys, nope, rope.unsqueeze(1))
    return keys


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's copies, which engines call."""
    name = "cat" if "k_nope" in definition.interface.inputs else "copy"
    return (Backend("split" if "qkv" in definition.interface.inputs else name),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return what PyTorch's split, transposed copy or concatenation gives."""
    if backend == "split":
        heads, kv_heads, dim = (
            definition.axes[a] for a in ("num_qo_heads", "num_kv_heads", "head_dim")
        )
        sizes = [heads * dim, kv_heads * dim, kv_heads * dim]
        split: Any = torch.split_with_sizes_copy
        parts = split(inputs["qkv"], sizes, dim=1)
        return tuple(part.unflatten(1, (-1, dim)) for part in parts)
    if backend == "cat":
        nope, rope = inputs["k_nope"], inputs["k_rope"]
        return torch.cat([nope, rope[:, None].expand(-1, nope.shape[1], -1)], dim=-1)
    return inputs["x"].transpose(0, 1).contiguous()


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=layout_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
    only_moves=True,
)
