"""Reference tests of op_type rope.

Rendered: don't edit. `gen-tests --op-type rope` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else generator/testing/tolerance.py by dtype.

SHA-256 of the definitions:
d7575ffe691648f4185445ec7591afc25643b586c8a3c5f98d202e1027a329b6  rope_with_cos_sin_cache_neox_style_d128_rd64
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.op_types.rope.relations import rope_relations
from generator.testing.definition import Backend, Case, Definition, Interface
from generator.testing.harness import (
    GroundTruthsAgree,
    MatchesFlashInfer,
    MatchesSGLang,
    main,
)
from generator.testing.metamorphic import Metamorphic
from generator.testing.relation import Relation
from generator.testing.replay import MatchesRecorded
from generator.testing.seeded_inputs import Stream
from generator.testing.tolerance import Override, Tolerance

# ---- the op: cases, inputs, float64 oracle, production kernels

_TO_ORACLE = Tolerance(rtol=4e-3, atol=4e-6, nmse=5e-6)
_TO_KERNEL = Tolerance(rtol=8e-3, atol=4e-6, nmse=1e-6)
_ONE_ROUNDING = (
    "three float32 operations and one rounding to bfloat16: half an ulp is 2^-8 at most; "
    "the two products may cancel from 2·2.5·6, of which 2^-23 is 4e-6"
)
_ROUNDED_ALIKE = (
    "both sides round nearly the same float32 value once, to neighbours at most: 2^-7; "
    "that is rare, so the root of NMSE stays within the 1e-3 of rotations in bfloat16"
)
TOLERANCES = (
    Override("q_out", _TO_ORACLE, _ONE_ROUNDING, source="oracle"),
    Override("k_out", _TO_ORACLE, _ONE_ROUNDING, source="oracle"),
    Override("q_out", _TO_KERNEL, _ROUNDED_ALIKE),
    Override("k_out", _TO_KERNEL, _ROUNDED_ALIKE),
)


def cases(definition: Definition) -> list[Case]:
    """Return the cases: single tokens, ends of the cache, restarts, batches."""
    return [
        _case("one-token", "small", 48, 8, 64, [37]),
        _case("position-zero", "small", 6, 1, 1, [0]),
        _case("ends-of-the-cache", "small", 6, 1, 1023, [1022, 0, 1021, 1]),
        _case("restarts", "small", 12, 2, 100, [0, 1, 2, 0, 1, 55, 56, 57, 0, 2]),
        _case("one-head-each", "small", 1, 1, 300, [299, 7, 7, 150]),
        Case("batch", "medium", _axes(67, 48, 8, 4096)),
        Case("long-batch", "large", _axes(8192, 48, 8, 196_608)),
    ]


def _axes(tokens: int, qo_heads: int, kv_heads: int, positions: int) -> dict[str, int]:
    return {
        "num_tokens": tokens,
        "num_qo_heads": qo_heads,
        "num_kv_heads": kv_heads,
        "max_seq_len": positions,
    }


def _case(
    name: str, size: str, qo_heads: int, kv_heads: int, rows: int, positions: list[int]
) -> Case:
    axes = _axes(len(positions), qo_heads, kv_heads, rows)
    return Case(name, size, axes, {"positions": positions})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return queries, keys, a cache of unit vectors, and the case's or random positions.

    q bfloat16 [num_tokens, num_qo_heads, head_size], k bfloat16 [num_tokens,
    num_kv_heads, head_size], cos_sin_cache float32 [max_seq_len, rotary_dim], positions
    int64 [num_tokens].
    """
    axes = {**definition.axes, **case.axes}
    tokens, size, rows = axes["num_tokens"], axes["head_size"], axes["max_seq_len"]
    q_shape = (tokens, axes["num_qo_heads"], size)
    k_shape = (tokens, axes["num_kv_heads"], size)
    # rational points of the circle: cosines would differ between libraries
    slope = stream.child("slope").values((rows, axes["rotary_dim"] // 2))
    square = slope * slope
    cache = torch.cat([1.0 - square, 2.0 * slope], 1) / (1.0 + square).repeat(1, 2)
    drawn = case.params.get("positions")
    if drawn is None:
        drawn = stream.child("positions").integers(0, rows, tokens)
    return {
        "q": stream.child("q").values(q_shape, 1.0, torch.bfloat16),
        "k": stream.child("k").values(k_shape, 1.0, torch.bfloat16),
        "cos_sin_cache": cache,
        "positions": torch.tensor(drawn, dtype=torch.int64),
    }


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rotated queries and keys, shaped as q and k, in float64."""
    half = inputs["cos_sin_cache"].shape[1] // 2
    row = inputs["cos_sin_cache"].double().index_select(0, inputs["positions"])
    turn = torch.complex(row[:, :half], row[:, half:])
    real = torch.arange(half, device=row.device)
    imaginary = real + half
    if not definition.constants["is_neox"]:
        real, imaginary = 2 * real, 2 * real + 1

    def turned(heads: torch.Tensor) -> torch.Tensor:
        out = heads.double()
        numbers = torch.complex(out[..., real], out[..., imaginary]) * turn[:, None]
        out[..., real], out[..., imaginary] = numbers.real, numbers.imag
        return out

    return turned(inputs["q"]), turned(inputs["k"])


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between rotations."""
    return rope_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return FlashInfer's bfloat16 q and k; it takes all heads of a token as one row."""
    import flashinfer

    q, k = inputs["q"], inputs["k"]
    tokens, head_size = q.shape[0], definition.axes["head_size"]
    q_out, k_out = flashinfer.apply_rope_with_cos_sin_cache(
        inputs["positions"],
        q.view(tokens, -1),
        k.view(tokens, -1),
        head_size,
        inputs["cos_sin_cache"],
        is_neox=definition.constants["is_neox"],
    )
    return q_out.view_as(q), k_out.view_as(k)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, which also runs on a CPU."""
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the native layer's float32 result, rounded once to bfloat16 as by kernels.

    On bfloat16 inputs it would round the cosines, each product and their sum.
    """
    from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding

    q, k, cache = inputs["q"], inputs["k"], inputs["cos_sin_cache"]
    rope = RotaryEmbedding(
        head_size=definition.axes["head_size"],
        rotary_dim=cache.shape[1],
        max_position_embeddings=1,
        base=10_000,
        is_neox_style=definition.constants["is_neox"],
        dtype=torch.float32,
    )
    rope.cos_sin_cache = cache
    q_out, k_out = rope.forward_native(inputs["positions"], q.float(), k.float())
    return q_out.to(q.dtype), k_out.to(k.dtype)


# ---- the interfaces

INTERFACE_ROPE_WITH_COS_SIN_CACHE_NEOX_STYLE = Interface(
    inputs={
        "q": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k": "bfloat16[num_tokens, num_kv_heads, head_size]",
        "cos_sin_cache": "float32[max_seq_len, rotary_dim]",
        "positions": "int64[num_tokens]",
    },
    outputs={
        "q_out": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k_out": "bfloat16[num_tokens, num_kv_heads, head_size]",
    },
)

# ---- the references, as the definitions have them


# fmt: off
# of rope_with_cos_sin_cache_neox_style_d128_rd64
def reference_rope_with_cos_sin_cache_neox_style():
    import torch


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rotary_dim = 2 * cos.shape[-1]
        # Dimension i turns with dimension i + rotary_dim // 2, not with its neighbour.
        first, second = x[..., :rotary_dim].float().chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        # The dimensions behind rotary_dim pass through.
        return torch.cat((turned.to(x.dtype), x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # A row of the cache is rotary_dim // 2 cosines, then as many sines. All heads of a
        # token share its row: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


# fmt: on
# ---- the tests


class RopeTests(
    GroundTruthsAgree, MatchesFlashInfer, MatchesSGLang, MatchesRecorded, Metamorphic
):
    """What the tests of rope share."""

    op_type = "rope"
    sizes = ("small", "medium")
    interface = INTERFACE_ROPE_WITH_COS_SIN_CACHE_NEOX_STYLE
    reference = staticmethod(reference_rope_with_cos_sin_cache_neox_style)
    constants = ("is_neox",)
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)
    sglang_backends = staticmethod(sglang_backends)
    sglang_ground_truth = staticmethod(sglang_ground_truth)


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# rotary_dim / 2; those from rotary_dim on pass through. A row of the cache is the
# cosines of a position, then its sines.
# model:minimax-m2, fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
class TestRopeWithCosSinCacheNeoxStyleD128Rd64(RopeTests):
    name = "rope_with_cos_sin_cache_neox_style_d128_rd64"
    HEAD_SIZE = 128
    ROTARY_DIM = 64
    IS_NEOX = True  # "neox" in the name


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
