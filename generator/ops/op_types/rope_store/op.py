"""rope_store: heads turned by their token's position, keys and values put in a cache.

A row of cos_sin_cache is rotary_dim / 2 cosines of a position, then as many sines. NeoX
style rotates dimension i with i + rotary_dim / 2, GPT-J style 2i with 2i + 1; those from
rotary_dim on stay. Some models normalise each head before. Slots that no token has stay.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.head_norm_inputs import UNROUNDED, UNROUNDED_NORM, unrounded
from generator.ops.op_types.rope_store.relations import store_relations
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_ONE_ROUNDING = (
    "float32 operations and one rounding to bfloat16: half an ulp is 2^-8 at most; the "
    "two products may cancel from 2·2.5·6, of which 2^-23 is 4e-6; rows that no token has "
    "are copied"
)
_ROUNDED_ALIKE = (
    "both sides round nearly the same float32 value once, to neighbours at most: 2^-7, "
    "and that is rare"
)
_ROUNDED_NORM = (
    "FlashInfer's norm rounds to bfloat16 before the rotation: 2^-9 of either dimension "
    "of a pair, which are up to 6 in size; three roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, "
    "squared) are 7e-6 of the power"
)
_TURNED = ("q_out", "k_cache_out")
TOLERANCES = (
    Override("v_cache_out", EXACT, "bits are copied, none is computed"),
    *(
        Override(o, Tolerance(4e-3, 4e-6, 5e-6), _ONE_ROUNDING, source="oracle")
        for o in _TURNED
    ),
    *(
        Override(
            o,
            Tolerance(8e-3, 4e-6, 1e-6),
            f"FlashInfer's norm gives what bfloat16 holds; {_ROUNDED_ALIKE}",
            source="flashinfer",
            case=UNROUNDED_NORM,
        )
        for o in _TURNED
    ),
    *(
        Override(
            o,
            Tolerance(8e-3, 2.4e-2, 1e-5),
            _ROUNDED_NORM,
            source="flashinfer",
            constant="eps",
        )
        for o in _TURNED
    ),
    *(Override(o, Tolerance(8e-3, 4e-6, 1e-6), _ROUNDED_ALIKE) for o in _TURNED),
)
# tokens, slots, rows of the cache of cosines, and the size of each case
_CASES = {
    "one-token": ("small", 1, 16, 64),
    "some-tokens": ("small", 9, 24, 300),
    "full-cache": ("small", 16, 16, 20),
    "batch": ("medium", 67, 192, 4_096),
    "past-limits": (LIMITS, 2_061, 4_128, (1 << 17) + 28),
    "long-batch": ("large", 8_192, 32_768, 196_608),
}


def cases(definition: Definition) -> list[Case]:
    """Return one token, a full cache and batches; of normalised heads also small ones."""
    usual = [
        Case(name, size, _axes(*lengths)) for name, (size, *lengths) in _CASES.items()
    ]
    if "q_weight" in definition.interface.inputs:
        usual.append(Case("small-values", "small", _axes(3, 8, 50), {"std": 1e-3}))
        # all slots have a token: rows that are copied have no error
        usual.append(Case(UNROUNDED_NORM, "small", _axes(5, 5, 50), UNROUNDED))
    return usual


def _axes(tokens: int, slots: int, positions: int) -> dict[str, int]:
    return {"num_tokens": tokens, "max_seq_len": positions, "num_slots": slots}


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return heads, rational points of the circle, both ends of positions and slots.

    Heads and caches are bfloat16, cos_sin_cache float32 [max_seq_len, rotary_dim],
    positions and slots int64 [num_tokens], of which no slot occurs twice. With a
    `magnitude` heads are normalised without rounding (`unrounded`).
    """
    axes = {**definition.axes, **case.axes}
    tokens, rows, slots = (axes[n] for n in ("num_tokens", "max_seq_len", "num_slots"))
    size, std = axes["head_size"], case.params.get("std", 1.0)
    heads = {"q": "num_qo_heads", "k": "num_kv_heads", "v": "num_kv_heads"}
    inputs: dict[str, Any] = {
        name: stream.child(name).values(
            (tokens, axes[count], size), std, torch.bfloat16
        )
        for name, count in heads.items()
    }
    for name in ("q", "k"):
        weight = 0.5 + stream.child(f"{name}_weight").values((size,), 0.4)
        if "magnitude" in case.params:
            sizes, weight = unrounded(definition, case, weight)
            inputs[name] = sizes.to(torch.bfloat16).copysign(inputs[name])
        inputs[f"{name}_weight"] = weight.to(torch.bfloat16)
    for name in ("k_cache", "v_cache"):
        shape = (slots, axes["num_kv_heads"], size)
        inputs[name] = stream.child(name).values(shape, 1.0, torch.bfloat16)
    slope = stream.child("slope").values((rows, axes["rotary_dim"] // 2))
    square = slope * slope
    circle = torch.cat([1.0 - square, 2.0 * slope], 1)
    inputs["cos_sin_cache"] = circle / (1.0 + square).repeat(1, 2)
    positions = torch.tensor(stream.child("positions").integers(0, rows, tokens))
    positions[0] = rows - 1
    positions[1:2] = 0
    inputs["positions"] = positions
    order = stream.child("slots").permutation(slots)
    ends = torch.tensor([slots - 1, 0])
    order = torch.cat([ends, order[(order > 0) & (order < slots - 1)]])
    inputs["slot_mapping"] = order[:tokens].clone()
    return {name: inputs[name] for name in definition.interface.inputs}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return queries and both caches in float64: pairs as complex numbers."""
    cache = inputs["cos_sin_cache"].double()
    half = cache.shape[1] // 2
    turn = torch.complex(cache[:, :half], cache[:, half:])[inputs["positions"]]
    real = torch.arange(half, device=cache.device)
    imaginary = real + half
    if not definition.constants["is_neox"]:
        real, imaginary = 2 * real, 2 * real + 1

    def turned(name: str) -> torch.Tensor:
        out: torch.Tensor = inputs[name].double()
        if f"{name}_weight" in inputs:
            length = torch.linalg.vector_norm(out, dim=-1, keepdim=True)
            eps = definition.constants["eps"]
            root = torch.sqrt(length * length / out.shape[-1] + eps)
            offset = 1.0 if definition.constants["unit_offset"] else 0.0
            out = out / root * (inputs[f"{name}_weight"].double() + offset)
        pairs = torch.complex(out[..., real], out[..., imaginary]) * turn[:, None]
        out[..., real], out[..., imaginary] = pairs.real, pairs.imag
        return out

    row_of = {slot: row for row, slot in enumerate(inputs["slot_mapping"].tolist())}
    stored = []
    for name, rows in (("k_cache", turned("k")), ("v_cache", inputs["v"].double())):
        slots = enumerate(inputs[name].double())
        stored.append(
            torch.stack(
                [rows[row_of[s]] if s in row_of else cached for s, cached in slots]
            )
        )
    return turned("q"), stored[0], stored[1]


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return its kernels one after the other: norm, rotation and append."""
    return (Backend("in-steps"),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return queries and caches; to the append each slot is a page of one token."""
    import flashinfer

    constants, q, k = definition.constants, inputs["q"], inputs["k"]
    if "q_weight" in inputs:
        one_plus = constants["unit_offset"]
        norm = flashinfer.norm.gemma_rmsnorm if one_plus else flashinfer.norm.rmsnorm
        eps = constants["eps"]
        q = norm(q.flatten(0, 1), inputs["q_weight"], eps).view_as(q)
        k = norm(k.flatten(0, 1), inputs["k_weight"], eps).view_as(k)
    tokens, size = q.shape[0], definition.axes["head_size"]
    q_out, keys = flashinfer.apply_rope_with_cos_sin_cache(
        inputs["positions"],
        q.view(tokens, -1),
        k.view(tokens, -1),
        size,
        inputs["cos_sin_cache"],
        is_neox=constants["is_neox"],
    )
    caches = tuple(inputs[name].unsqueeze(1) for name in ("k_cache", "v_cache"))
    starts = torch.arange(tokens + 1, dtype=torch.int32, device=q.device)
    flashinfer.page.append_paged_kv_cache(
        keys.view_as(k),
        inputs["v"],
        starts[:-1],
        torch.zeros_like(starts[:-1]),
        caches,
        inputs["slot_mapping"].int(),
        starts,
        torch.ones_like(starts[:-1]),
    )
    return q_out.view_as(q), inputs["k_cache"], inputs["v_cache"]


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return its kernel of rotation and store; it has none that normalises as well."""
    if "q_weight" in definition.interface.inputs:
        return ()
    return (Backend("jit", needs=("tvm_ffi",)),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return queries and caches, which the kernel writes to."""
    from sglang.kernels.ops.attention.rope import apply_rope_inplace_with_kvcache

    caches = [inputs[name].flatten(1) for name in ("k_cache", "v_cache")]
    apply_rope_inplace_with_kvcache(
        *(inputs[name] for name in ("q", "k", "v")),
        *caches,
        inputs["cos_sin_cache"],
        inputs["positions"],
        inputs["slot_mapping"],
        is_neox=definition.constants["is_neox"],
    )
    return inputs["q"], inputs["k_cache"], inputs["v_cache"]


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=store_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)
