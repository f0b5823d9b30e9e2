"""Reference tests of op_type rope.

Rendered: don't edit. `gen-tests --op-type rope` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.head_norm_inputs import UNROUNDED, UNROUNDED_NORM, unrounded
from generator.ops.op_types.rope.angles import scaling_of, turns
from generator.ops.op_types.rope.relations import rope_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.rope.angles
# bounds: generator.ops.head_norm_inputs
# relations: generator.ops.op_types.rope.relations

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
_TO_FAST_ANGLES = Tolerance(rtol=8e-3, atol=1.2e-2, nmse=1e-5)
_FAST_ANGLES = (
    "kernels have angles in float32: up to 4095 they are off by 4095·2^-24, as much again "
    "by the reduction to one turn, and 4095·0.04·2.4e-6 by the power: 9e-4 of pairs up to "
    "2·5.5, with YaRN's factor of 1.37; rounding to neighbours adds 2^-7"
)
_TO_ROUNDED_NORM = Tolerance(rtol=8e-3, atol=2.4e-2, nmse=1e-5)
_ROUNDED_NORM = (
    "FlashInfer's norm rounds to bfloat16 before the rotation: 2^-9 of either dimension "
    "of a pair, which are up to 6 in size; three roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, "
    "squared) are 7e-6 of the power"
)
_OUTPUTS = ("q_out", "k_out")
_EQUAL = "equal-magnitudes"
TOLERANCES = (
    *(Override(o, _TO_ORACLE, _ONE_ROUNDING, source="oracle") for o in _OUTPUTS),
    *(
        Override(
            o,
            Tolerance(rtol=8e-3, atol=2e-4, nmse=1e-6),
            f"{_FAST_ANGLES}; here angles are up to 57, and off by a 70th of that",
            case="restarts",
            constant="rope_theta",
        )
        for o in _OUTPUTS
    ),
    *(
        Override(o, _TO_FAST_ANGLES, _FAST_ANGLES, constant="rope_theta")
        for o in _OUTPUTS
    ),
    *(
        Override(
            o,
            _TO_KERNEL,
            f"FlashInfer's norm gives what bfloat16 holds; {_ROUNDED_ALIKE}",
            source="flashinfer",
            case=case,
        )
        for o in _OUTPUTS
        for case in (_EQUAL, UNROUNDED_NORM)
    ),
    *(
        Override(
            o, _TO_ROUNDED_NORM, _ROUNDED_NORM, source="flashinfer", constant="eps"
        )
        for o in _OUTPUTS
    ),
    *(Override(o, _TO_KERNEL, _ROUNDED_ALIKE) for o in _OUTPUTS),
)
# positions of definitions without a cache: what float32 angles resolve
_POSITIONS = 4096


def cases(definition: Definition) -> list[Case]:
    """Return the cases: single tokens, ends of the cache, restarts, batches."""
    names = definition.interface.inputs
    cases = [
        _case("one-token", "small", 48, 8, 64, [37]),
        _case("position-zero", "small", 6, 1, 1, [0]),
        _case("ends-of-the-cache", "small", 6, 1, 1023, [1022, 0, 1021, 1]),
        _case("restarts", "small", 12, 2, 100, [0, 1, 2, 0, 1, 55, 56, 57, 0, 2]),
        _case("one-head-each", "small", 1, 1, 300, [299, 7, 7, 150]),
        Case("batch", "medium", _axes(67, 48, 8, 4096)),
        _past_limits(_POSITIONS if "pos_ids" in names else (1 << 17) + 28),
        _many_tokens(),
        Case("long-batch", "large", _axes(8192, 48, 8, 196_608)),
    ]
    if "q_weight" in names:
        axes = _axes(3, 6, 1, 50)
        cases.append(Case("small-values", "small", axes, {"std": 1e-3}))
        cases.append(Case(_EQUAL, "small", axes, {"magnitude": 16.0}))
        cases.append(Case(UNROUNDED_NORM, "small", axes, UNROUNDED))
    if "pos_ids" not in names:
        return cases
    return [
        Case(c.name, c.size, {"num_tokens": c.axes["num_tokens"]}, c.params)
        for c in cases
    ]


def _past_limits(rows: int) -> Case:
    """Return the case of many heads and positions, the last one first."""
    positions = tuple((rows - 1 - 251 * token) % rows for token in range(523))
    return Case(
        "past-limits", LIMITS, _axes(523, 66, 9, rows), {"positions": positions}
    )


def _many_tokens() -> Case:
    """Return the case of more than 2,048 tokens, of few heads."""
    rows, tokens = _POSITIONS, 2_059
    positions = [(rows - 1 - 251 * token) % rows for token in range(tokens)]
    return _case("many-tokens", LIMITS, 3, 2, rows, positions)


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
    int64 [num_tokens], or [3, num_tokens] of three axes that differ, or pos_ids int32
    [num_tokens]; weights bfloat16 [head_size]. With a `magnitude` all elements of q and
    k have it, and weights are multiples of 1/64: heads are normalised without rounding.
    """
    axes = {**definition.axes, **case.axes}
    names = definition.interface.inputs
    tokens, size = axes["num_tokens"], axes["head_size"]
    rows = axes.get("max_seq_len", _POSITIONS)
    std = case.params.get("std", 1.0)
    inputs: dict[str, Any] = {}
    for name, heads in (("q", "num_qo_heads"), ("k", "num_kv_heads")):
        shape = (tokens, axes[heads], size)
        inputs[name] = stream.child(name).values(shape, std, torch.bfloat16)
        if f"{name}_weight" in names:
            weight = 0.5 + stream.child(f"{name}_weight").values((size,), 0.4)
            if "magnitude" in case.params:
                sizes, weight = unrounded(definition, case, weight)
                inputs[name] = sizes.to(torch.bfloat16).copysign(inputs[name])
            inputs[f"{name}_weight"] = weight.to(torch.bfloat16)
    if "cos_sin_cache" in names:
        # rational points of the circle: cosines would differ between libraries
        slope = stream.child("slope").values((rows, axes["rotary_dim"] // 2))
        square = slope * slope
        circle = torch.cat([1.0 - square, 2.0 * slope], 1)
        inputs["cos_sin_cache"] = circle / (1.0 + square).repeat(1, 2)
    drawn = case.params.get("positions")
    if drawn is None:
        drawn = stream.child("positions").integers(0, rows, tokens)
    positions = torch.tensor(drawn, dtype=torch.int64)
    if "pos_ids" in names:
        inputs["pos_ids"] = positions.to(torch.int32)
    elif "num_axes" in definition.axes:
        later = [(positions + 17 * axis) % rows for axis in range(axes["num_axes"])]
        inputs["positions"] = torch.stack(later)
    else:
        inputs["positions"] = positions
    return {name: inputs[name] for name in names}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rotated queries and keys, shaped as q and k, in float64."""
    turn = turns(definition.constants, inputs)
    half = turn.shape[1]
    real = torch.arange(half, device=turn.device)
    imaginary = real + half
    if not definition.constants["is_neox"]:
        real, imaginary = 2 * real, 2 * real + 1

    def turned(name: str) -> torch.Tensor:
        out: torch.Tensor = inputs[name].double()
        if f"{name}_weight" in inputs:
            out = _normalised(definition, out, inputs[f"{name}_weight"])
        numbers = torch.complex(out[..., real], out[..., imaginary]) * turn[:, None]
        out[..., real], out[..., imaginary] = numbers.real, numbers.imag
        return out

    return turned("q"), turned("k")


def _normalised(
    definition: Definition, heads: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """Return heads of a mean square of 1, times the weight, by their lengths."""
    length = torch.linalg.vector_norm(heads, dim=-1, keepdim=True)
    eps = definition.constants["eps"]
    root = torch.sqrt(length * length / heads.shape[-1] + eps)
    offset = 1.0 if definition.constants["unit_offset"] else 0.0
    return heads / root * (weight.double() + offset)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel; none makes YaRN's frequencies itself."""
    has_kernel = scaling_of(definition.constants) in ("", "llama31")
    return (Backend(""),) if has_kernel else ()


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return FlashInfer's bfloat16 q and k; it takes all heads of a token as one row."""
    import flashinfer

    q, k, is_neox = inputs["q"], inputs["k"], definition.constants["is_neox"]
    if "pos_ids" in inputs:
        theta = definition.constants["rope_theta"]
        arguments = (q, k, inputs["pos_ids"], q.shape[-1], not is_neox)
        if "rope_scale" not in definition.constants:
            return flashinfer.apply_rope_pos_ids(*arguments, 1.0, theta)
        scale = definition.constants["rope_scale"]
        return flashinfer.apply_llama31_rope_pos_ids(
            *arguments, scale, theta, 1, 4, 8192
        )
    if "q_weight" in inputs:
        one_plus = definition.constants["unit_offset"]
        norm = flashinfer.norm.gemma_rmsnorm if one_plus else flashinfer.norm.rmsnorm
        eps = definition.constants["eps"]
        q = norm(q.flatten(0, 1), inputs["q_weight"], eps).view_as(q)
        k = norm(k.flatten(0, 1), inputs["k_weight"], eps).view_as(k)
    cache, positions = inputs["cos_sin_cache"], inputs["positions"]
    if positions.dim() == 2:
        # each token has a row of its own then
        cache = _rows_of_three(definition, cache[positions].unflatten(-1, (2, -1)))
        positions = torch.arange(len(cache), device=cache.device)
    tokens, head_size = q.shape[0], definition.axes["head_size"]
    q_out, k_out = flashinfer.apply_rope_with_cos_sin_cache(
        positions,
        q.view(tokens, -1),
        k.view(tokens, -1),
        head_size,
        cache,
        is_neox=is_neox,
    )
    return q_out.view_as(q), k_out.view_as(k)


def _rows_of_three(definition: Definition, rows: torch.Tensor) -> torch.Tensor:
    """Return one row a token of three: float32 [3, num_tokens, 2, rotary_dim / 2]."""
    height, width = definition.constants["height"], definition.constants["width"]
    if definition.constants["axes_interleaved"]:
        turns = rows[0].clone()
        turns[..., 1 : 3 * height : 3] = rows[1, ..., 1 : 3 * height : 3]
        turns[..., 2 : 3 * width : 3] = rows[2, ..., 2 : 3 * width : 3]
    else:
        first, second, third = rows
        parts = (
            first[..., : -height - width],
            second[..., -height - width : -width],
            third[..., -width:],
        )
        turns = torch.cat(parts, dim=-1)
    return turns.flatten(1)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, which also runs on a CPU."""
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the native layer's float32 result, rounded once to bfloat16 as by kernels.

    On bfloat16 inputs it would round the cosines, each product and their sum.
    """
    from sglang.srt.layers.layernorm import GemmaRMSNorm, RMSNorm

    constants, heads = definition.constants, [inputs["q"], inputs["k"]]
    turned = [x.float() for x in heads]
    if "q_weight" in inputs:
        layer = GemmaRMSNorm if constants["unit_offset"] else RMSNorm
        norm = layer(heads[0].shape[-1], eps=constants["eps"])
        for place, name in enumerate(("q_weight", "k_weight")):
            norm.weight = torch.nn.Parameter(inputs[name], requires_grad=False)
            turned[place] = norm.forward_native(turned[place])
    positions = inputs.get("positions", inputs.get("pos_ids"))
    q_out, k_out = _sglang_rope(definition, inputs).forward_native(positions, *turned)
    return q_out.to(heads[0].dtype), k_out.to(heads[1].dtype)


def _sglang_rope(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return SGLang's layer of a definition; where there is a cache, with that cache."""
    from sglang.srt.layers.rotary_embedding import base, mrope, rope_variant, yarn

    constants, size = definition.constants, definition.axes["head_size"]
    scaling, scale = scaling_of(constants), constants.get("rope_scale")
    options: dict[str, Any] = {
        "head_size": size,
        "rotary_dim": definition.axes.get("rotary_dim", size),
        # of YaRN the context before it, which is as long
        "max_position_embeddings": _POSITIONS if "pos_ids" in inputs else 1,
        "base": constants.get("rope_theta", 10_000),
        "is_neox_style": constants["is_neox"],
        "dtype": torch.float32,
    }
    kind: Any = base.RotaryEmbedding
    if "axes_interleaved" in constants:
        kind = mrope.MRotaryEmbedding
        options["mrope_section"] = [
            constants[a] for a in ("temporal", "height", "width")
        ]
        options["mrope_interleaved"] = constants["axes_interleaved"]
    elif scaling == "llama31":
        kind = rope_variant.Llama3RotaryEmbedding
        options |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
        options |= {"scaling_factor": scale, "orig_max_position": 8192}
    elif scaling == "yarn":
        kind = yarn.YaRNScalingRotaryEmbedding
        options |= {"scaling_factor": scale, "truncate": False}
    elif scaling == "deepseek":
        kind = rope_variant.DeepseekScalingRotaryEmbedding
        options |= {"scaling_factor": scale, "mscale_all_dim": 1.0, "device": "cpu"}
    rope = kind(**options)
    cache = rope.cos_sin_cache.to(inputs["q"].device)
    rope.cos_sin_cache = inputs.get("cos_sin_cache", cache)
    return rope


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=rope_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_ROPE_POS_IDS = Interface(
    inputs={
        "q": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k": "bfloat16[num_tokens, num_kv_heads, head_size]",
        "pos_ids": "int32[num_tokens]",
    },
    outputs={
        "q_out": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k_out": "bfloat16[num_tokens, num_kv_heads, head_size]",
    },
)
INTERFACE_QK_RMSNORM_ROPE_EPS = Interface(
    inputs={
        "q": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k": "bfloat16[num_tokens, num_kv_heads, head_size]",
        "q_weight": "bfloat16[head_size]",
        "k_weight": "bfloat16[head_size]",
        "cos_sin_cache": "float32[max_seq_len, rotary_dim]",
        "positions": "int64[num_tokens]",
    },
    outputs={
        "q_out": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k_out": "bfloat16[num_tokens, num_kv_heads, head_size]",
    },
)
INTERFACE_MROPE = Interface(
    inputs={
        "q": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k": "bfloat16[num_tokens, num_kv_heads, head_size]",
        "cos_sin_cache": "float32[max_seq_len, rotary_dim]",
        "positions": "int64[num_axes, num_tokens]",
    },
    outputs={
        "q_out": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k_out": "bfloat16[num_tokens, num_kv_heads, head_size]",
    },
    constraints=("num_axes == 3",),
)
INTERFACE_ROPE_WITH_COS_SIN_CACHE = INTERFACE_MROPE.but(
    inputs={"positions": "int64[num_tokens]"},
    constraints=(),
)

# ---- the tests


class RopeTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of rope share."""

    op_type = "rope"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) three float32 operations and one rounding to bfloat16.
# (2) kernels have angles in float32.
# (3) FlashInfer's norm gives what bfloat16 holds.
# (4) FlashInfer's norm rounds to bfloat16 before the rotation.
# (5) both sides round nearly the same float32 value once, to neighbours at most.


# Rotary position embedding, GPT-J style: dimension 2i of a head turns with dimension 2i
# + 1. Pair i turns by f = theta ** (-2i / head_size) radians a position, theta 10000,
# mixed by YaRN with f / 40: between the pairs that turn 32 times, rounded down, and
# once, rounded up, in 4096 positions the mix is linear in i. YaRN's factor is part of
# the softmax scale.
# model:deepseek-v3, model:deepseek-r1, tp:1
# Tolerances:
#   output  source                          rtol   atol    NMSE   reason
#   q_out   oracle                          0.004  4e-06   5e-06  (1)
#   q_out   flashinfer, sglang in restarts  0.008  0.0002  1e-06  (2)
#   q_out   flashinfer, sglang              0.008  0.012   1e-05  (2)
#   k_out   oracle                          0.004  4e-06   5e-06  (1)
#   k_out   flashinfer, sglang in restarts  0.008  0.0002  1e-06  (2)
#   k_out   flashinfer, sglang              0.008  0.012   1e-05  (2)
def reference_deepseek_rope_pos_ids_gptj():
    import math

    import torch

    ROPE_THETA = 10000
    ROPE_SCALE = 40
    BETA_FAST = 32
    BETA_SLOW = 1
    OLD_CONTEXT = 4096


    def frequencies(head_size: int) -> torch.Tensor:
        steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
        plain = ROPE_THETA**-steps
        # The pair that turns a number of times in the old context.
        fast, slow = (
            head_size * math.log(OLD_CONTEXT / (turns * 2.0 * math.pi)) / 2.0
            for turns in (BETA_FAST, BETA_SLOW)
        )
        # Both ends are whole pairs.
        first, last = (
            math.floor(fast / math.log(ROPE_THETA)),
            math.ceil(slow / math.log(ROPE_THETA)),
        )
        pairs = torch.arange(head_size // 2, dtype=torch.float64)
        slowed = ((pairs - first) / (last - first)).clamp(0.0, 1.0)
        return (1.0 - slowed) * plain + slowed * plain / ROPE_SCALE


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension 2i turns with dimension 2i + 1, not with the one half a head away.
        even, odd = x[..., 0::2].float(), x[..., 1::2].float()
        turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
        return turned.flatten(-2).to(x.dtype)


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # float64: at position 100,000 an angle in float32 is off by 4e-3.
        angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
        # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
        angles = angles[:, None]
        # YaRN's factor is part of the softmax scale, not of cosines and sines.
        cos, sin = angles.cos().float(), angles.sin().float()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class TestDeepseekRopePosIdsGptjTheta10000Scale40H128Kv1D64(RopeTests):
    name = "deepseek_rope_pos_ids_gptj_theta10000_scale40_h128_kv1_d64"
    reference = staticmethod(reference_deepseek_rope_pos_ids_gptj)
    interface = INTERFACE_ROPE_POS_IDS
    axes = {"num_qo_heads": 128, "num_kv_heads": 1, "head_size": 64}
    constants = ("deepseek", "rope_theta", "rope_scale", "is_neox")
    DEEPSEEK = True  # "deepseek" in the name
    ROPE_THETA = 10000  # "theta10000" in the name
    ROPE_SCALE = 40  # "scale40" in the name
    IS_NEOX = False  # "gptj" in the name
    sha256 = "0cc3b899642bf4b9fbb8a518f899e8f01071b3e78209e1cc8420a5286be8b061"


# RMS norm of each head, x * rsqrt(mean(x^2) + 1e-06) * (1 + weight), then rotary
# embedding, in float32 and rounded once. Rotary position embedding, NeoX style:
# dimension i of a head turns with dimension i + rotary_dim / 2; those from rotary_dim
# on pass through. A row of the cache is the cosines of a position, then its sines.
# fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
# Tolerances:
#   output  source                          rtol   atol   NMSE   reason
#   q_out   oracle                          0.004  4e-06  5e-06  (1)
#   q_out   flashinfer in equal-magnitudes  0.008  4e-06  1e-06  (3)
#   q_out   flashinfer in held-by-bfloat16  0.008  4e-06  1e-06  (3)
#   q_out   flashinfer                      0.008  0.024  1e-05  (4)
#   q_out   sglang                          0.008  4e-06  1e-06  (5)
#   k_out   oracle                          0.004  4e-06  5e-06  (1)
#   k_out   flashinfer in equal-magnitudes  0.008  4e-06  1e-06  (3)
#   k_out   flashinfer in held-by-bfloat16  0.008  4e-06  1e-06  (3)
#   k_out   flashinfer                      0.008  0.024  1e-05  (4)
#   k_out   sglang                          0.008  4e-06  1e-06  (5)
def reference_gemma_qk_rmsnorm_rope_eps_1em6():
    import torch

    EPS = 1e-06


    def normalised(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = x.float()
        inverse = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        return x * inverse * (1.0 + weight.float())


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rotary_dim = 2 * cos.shape[-1]
        # Dimension i turns with dimension i + rotary_dim // 2, not with its neighbour.
        first, second = x[..., :rotary_dim].chunk(2, dim=-1)
        turned = (first * cos - second * sin, second * cos + first * sin)
        # The dimensions behind rotary_dim do not turn.
        return torch.cat((*turned, x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        q_weight: torch.Tensor,
        k_weight: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        # The normalised heads stay in float32: they are rounded once.
        q_out = rotated(normalised(q, q_weight), cos, sin)
        k_out = rotated(normalised(k, k_weight), cos, sin)
        return q_out.to(q.dtype), k_out.to(k.dtype)

    return run


class GemmaQkRmsnormRopeEps1em6Base(RopeTests):
    reference = staticmethod(reference_gemma_qk_rmsnorm_rope_eps_1em6)
    interface = INTERFACE_QK_RMSNORM_ROPE_EPS
    constants = ("unit_offset", "eps", "is_neox")
    UNIT_OFFSET = True  # "gemma" in the name
    EPS = 1e-06  # "1em6" in the name
    IS_NEOX = True  # the convention of rope

class TestGemmaQkRmsnormRopeEps1em6D128Rd128(GemmaQkRmsnormRopeEps1em6Base):
    name = "gemma_qk_rmsnorm_rope_eps_1em6_d128_rd128"  # model:gemma-3-27b
    axes = {"head_size": 128, "rotary_dim": 128}
    sha256 = "d4ef0c5be5d1a2ab3a2094a0b00cd58d5a8d25a50e7903a7057cfa2179cc9387"

class TestGemmaQkRmsnormRopeEps1em6D256Rd64(GemmaQkRmsnormRopeEps1em6Base):
    name = "gemma_qk_rmsnorm_rope_eps_1em6_d256_rd64"  # model:qwen3-next-80b-a3b
    axes = {"head_size": 256, "rotary_dim": 64}
    sha256 = "d36a3127628b01597c90937e08725378c67c3a51b2dde135ab1e0f97c43fa1d3"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# head_size / 2. Pair i turns by f = theta ** (-2i / head_size) radians a position,
# theta 500000, as in Llama 3.1: by f / 32 where it turns less than once in 8192
# positions, by f where it turns 4 times and more, and by a mix that is linear in the
# number of turns between.
# model:llama-3.2-3b, fi_api:flashinfer.rope.apply_llama31_rope_pos_ids, tp:1
# Tolerances: those of reference_deepseek_rope_pos_ids_gptj.
def reference_apply_llama31_rope_pos_ids_scale32_h24():
    import math

    import torch

    ROPE_THETA = 500000
    ROPE_SCALE = 32
    LOW_FREQ = 1
    HIGH_FREQ = 4
    OLD_CONTEXT = 8192


    def frequencies(head_size: int) -> torch.Tensor:
        steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
        plain = ROPE_THETA**-steps
        # What turns less than once in the old context is slowed down, what turns four times
        # and more is not, and what lies between is mixed of both.
        turns = OLD_CONTEXT * plain / (2.0 * math.pi)
        kept = ((turns - LOW_FREQ) / (HIGH_FREQ - LOW_FREQ)).clamp(0.0, 1.0)
        return kept * plain + (1.0 - kept) * plain / ROPE_SCALE


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension i turns with dimension i + head_size // 2, not with its neighbour.
        first, second = x.float().chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return turned.to(x.dtype)


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # float64: at position 100,000 an angle in float32 is off by 4e-3.
        angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
        # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
        angles = angles[:, None]
        cos, sin = angles.cos().float(), angles.sin().float()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class TestLlama31RopePosIdsTheta500000Scale32H24Kv8D128(RopeTests):
    name = "llama31_rope_pos_ids_theta500000_scale32_h24_kv8_d128"
    reference = staticmethod(reference_apply_llama31_rope_pos_ids_scale32_h24)
    interface = INTERFACE_ROPE_POS_IDS
    axes = {"num_qo_heads": 24, "num_kv_heads": 8, "head_size": 128}
    constants = ("llama31", "rope_theta", "rope_scale", "is_neox")
    LLAMA31 = True  # "llama31" in the name
    ROPE_THETA = 500000  # "theta500000" in the name
    ROPE_SCALE = 32  # "scale32" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "b1cbac3532b62102138b666e4938c5c88d7bab94bb5ce1df312ec95329fb346f"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# head_size / 2. Pair i turns by f = theta ** (-2i / head_size) radians a position,
# theta 500000, as in Llama 3.1: by f / 8 where it turns less than once in 8192
# positions, by f where it turns 4 times and more, and by a mix that is linear in the
# number of turns between.
# fi_api:flashinfer.rope.apply_llama31_rope_pos_ids, tp:1
# Tolerances: those of reference_deepseek_rope_pos_ids_gptj.
def reference_apply_llama31_rope_pos_ids_scale8():
    import math

    import torch

    ROPE_THETA = 500000
    ROPE_SCALE = 8
    LOW_FREQ = 1
    HIGH_FREQ = 4
    OLD_CONTEXT = 8192


    def frequencies(head_size: int) -> torch.Tensor:
        steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
        plain = ROPE_THETA**-steps
        # What turns less than once in the old context is slowed down, what turns four times
        # and more is not, and what lies between is mixed of both.
        turns = OLD_CONTEXT * plain / (2.0 * math.pi)
        kept = ((turns - LOW_FREQ) / (HIGH_FREQ - LOW_FREQ)).clamp(0.0, 1.0)
        return kept * plain + (1.0 - kept) * plain / ROPE_SCALE


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension i turns with dimension i + head_size // 2, not with its neighbour.
        first, second = x.float().chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return turned.to(x.dtype)


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # float64: at position 100,000 an angle in float32 is off by 4e-3.
        angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
        # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
        angles = angles[:, None]
        cos, sin = angles.cos().float(), angles.sin().float()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class ApplyLlama31RopePosIdsScale8Base(RopeTests):
    reference = staticmethod(reference_apply_llama31_rope_pos_ids_scale8)
    interface = INTERFACE_ROPE_POS_IDS
    axes = {"num_kv_heads": 8, "head_size": 128}
    constants = ("llama31", "rope_theta", "rope_scale", "is_neox")
    LLAMA31 = True  # "llama31" in the name
    ROPE_THETA = 500000  # "theta500000" in the name
    ROPE_SCALE = 8  # "scale8" in the name
    IS_NEOX = True  # the convention of rope

class TestLlama31RopePosIdsTheta500000Scale8H32Kv8D128(
    ApplyLlama31RopePosIdsScale8Base
):
    name = "llama31_rope_pos_ids_theta500000_scale8_h32_kv8_d128"  # model:llama-3.1-8b
    axes = {"num_qo_heads": 32}
    sha256 = "8c0bf5a14efbcda9ed238f152712100588b404c5bb3ea982cd1bdeab828c5ae8"

class TestLlama31RopePosIdsTheta500000Scale8H64Kv8D128(
    ApplyLlama31RopePosIdsScale8Base
):
    name = "llama31_rope_pos_ids_theta500000_scale8_h64_kv8_d128"  # model:llama-3.1-70b
    axes = {"num_qo_heads": 64}
    sha256 = "b1a1557afa73011efc2063b11d8a5d911ca06270ae4af85d444d2168c1c31046"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# rotary_dim / 2; those from rotary_dim on pass through. A token has three positions, in
# time, down and across an image: position 1 turns pairs 1, 4, 7 ..., 11 of them,
# position 2 pairs 2, 5, 8 ..., 10 of them, position 0 the other 11. A row of the cache
# is the cosines of a position, then its sines.
# model:qwen3.5-35b-a3b, fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
# Tolerances:
#   output  source                          rtol   atol   NMSE   reason
#   q_out   oracle                          0.004  4e-06  5e-06  (1)
#   q_out   flashinfer in equal-magnitudes  0.008  4e-06  1e-06  (3)
#   q_out   flashinfer in held-by-bfloat16  0.008  4e-06  1e-06  (3)
#   q_out   flashinfer, sglang              0.008  4e-06  1e-06  (5)
#   k_out   oracle                          0.004  4e-06  5e-06  (1)
#   k_out   flashinfer in equal-magnitudes  0.008  4e-06  1e-06  (3)
#   k_out   flashinfer in held-by-bfloat16  0.008  4e-06  1e-06  (3)
#   k_out   flashinfer, sglang              0.008  4e-06  1e-06  (5)
def reference_mrope_interleaved_t11_y11_x10_d256_rd64():
    import torch

    HEIGHT = 11
    WIDTH = 10


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
        # [2, num_axes, num_tokens, 1, rotary_dim // 2]: all heads of a token turn alike.
        rows = torch.stack(cos_sin_cache[positions].unsqueeze(2).chunk(2, dim=-1))
        own = rows[:, 0].clone()
        # Every third frequency turns by height, and every third by width, as long as they
        # last; all others turn by the temporal position.
        own[..., 1 : 3 * HEIGHT : 3] = rows[:, 1, ..., 1 : 3 * HEIGHT : 3]
        own[..., 2 : 3 * WIDTH : 3] = rows[:, 2, ..., 2 : 3 * WIDTH : 3]
        cos, sin = own.unbind()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class TestMropeInterleavedT11Y11X10D256Rd64(RopeTests):
    name = "mrope_interleaved_t11_y11_x10_d256_rd64"
    reference = staticmethod(reference_mrope_interleaved_t11_y11_x10_d256_rd64)
    interface = INTERFACE_MROPE
    axes = {"head_size": 256, "rotary_dim": 64, "num_axes": 3}
    constants = ("axes_interleaved", "temporal", "height", "width", "is_neox")
    AXES_INTERLEAVED = True  # "interleaved" in the name
    TEMPORAL = 11  # "t11" in the name
    HEIGHT = 11  # "y11" in the name
    WIDTH = 10  # "x10" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "d631bdcf96af203186c9bd3cc40e7f3fa43040949f79abf1824c4d60b38949a4"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# rotary_dim / 2; those from rotary_dim on pass through. A token has three positions, in
# time, down and across an image: position 1 turns pairs 1, 4, 7 ..., 20 of them,
# position 2 pairs 2, 5, 8 ..., 20 of them, position 0 the other 24. A row of the cache
# is the cosines of a position, then its sines.
# model:qwen3-vl-8b, fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
# Tolerances: those of reference_mrope_interleaved_t11_y11_x10_d256_rd64.
def reference_mrope_interleaved_t24_y20_x20_d128_rd128():
    import torch

    HEIGHT = 20
    WIDTH = 20


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
        # [2, num_axes, num_tokens, 1, rotary_dim // 2]: all heads of a token turn alike.
        rows = torch.stack(cos_sin_cache[positions].unsqueeze(2).chunk(2, dim=-1))
        own = rows[:, 0].clone()
        # Every third frequency turns by height, and every third by width, as long as they
        # last; all others turn by the temporal position.
        own[..., 1 : 3 * HEIGHT : 3] = rows[:, 1, ..., 1 : 3 * HEIGHT : 3]
        own[..., 2 : 3 * WIDTH : 3] = rows[:, 2, ..., 2 : 3 * WIDTH : 3]
        cos, sin = own.unbind()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class TestMropeInterleavedT24Y20X20D128Rd128(RopeTests):
    name = "mrope_interleaved_t24_y20_x20_d128_rd128"
    reference = staticmethod(reference_mrope_interleaved_t24_y20_x20_d128_rd128)
    interface = INTERFACE_MROPE
    axes = {"head_size": 128, "rotary_dim": 128, "num_axes": 3}
    constants = ("axes_interleaved", "temporal", "height", "width", "is_neox")
    AXES_INTERLEAVED = True  # "interleaved" in the name
    TEMPORAL = 24  # "t24" in the name
    HEIGHT = 20  # "y20" in the name
    WIDTH = 20  # "x20" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "a80504343b34527b28d08a7aac5efc23e6f8c9c69cd188d9c98df700de953b5a"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# rotary_dim / 2; those from rotary_dim on pass through. A token has three positions, in
# time, down and across an image: position 0 turns the first 16 pairs, position 1 the
# next 24, position 2 the last 24. A row of the cache is the cosines of a position, then
# its sines.
# model:qwen2-vl-7b, fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
# Tolerances: those of reference_mrope_interleaved_t11_y11_x10_d256_rd64.
def reference_mrope_sectioned():
    import torch

    TEMPORAL = 16
    HEIGHT = 24
    WIDTH = 24


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
        # [2, num_axes, num_tokens, 1, rotary_dim // 2]: all heads of a token turn alike.
        rows = torch.stack(cos_sin_cache[positions].unsqueeze(2).chunk(2, dim=-1))
        # The axis a turns the section a.
        sections = torch.split(rows, [TEMPORAL, HEIGHT, WIDTH], dim=-1)
        own = [section[:, axis] for axis, section in enumerate(sections)]
        cos, sin = torch.cat(own, dim=-1).unbind()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class TestMropeSectionedT16Y24X24D128Rd128(RopeTests):
    name = "mrope_sectioned_t16_y24_x24_d128_rd128"
    reference = staticmethod(reference_mrope_sectioned)
    interface = INTERFACE_MROPE
    axes = {"head_size": 128, "rotary_dim": 128, "num_axes": 3}
    constants = ("axes_interleaved", "temporal", "height", "width", "is_neox")
    AXES_INTERLEAVED = False  # "sectioned" in the name
    TEMPORAL = 16  # "t16" in the name
    HEIGHT = 24  # "y24" in the name
    WIDTH = 24  # "x24" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "962369c43ca41c35153a4083af27c52691e91be6bf04c2a81371b09865c0d261"


# RMS norm of each head, x * rsqrt(mean(x^2) + 1e-05) * weight, then rotary embedding,
# in float32 and rounded once. Rotary position embedding, NeoX style: dimension i of a
# head turns with dimension i + rotary_dim / 2; those from rotary_dim on pass through. A
# row of the cache is the cosines of a position, then its sines.
# model:glm-4.6, fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
# Tolerances: those of reference_gemma_qk_rmsnorm_rope_eps_1em6.
def reference_qk_rmsnorm_rope_eps_1em5():
    import torch

    EPS = 1e-05


    def normalised(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = x.float()
        inverse = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        return x * inverse * weight.float()


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rotary_dim = 2 * cos.shape[-1]
        # Dimension i turns with dimension i + rotary_dim // 2, not with its neighbour.
        first, second = x[..., :rotary_dim].chunk(2, dim=-1)
        turned = (first * cos - second * sin, second * cos + first * sin)
        # The dimensions behind rotary_dim do not turn.
        return torch.cat((*turned, x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        q_weight: torch.Tensor,
        k_weight: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        # The normalised heads stay in float32: they are rounded once.
        q_out = rotated(normalised(q, q_weight), cos, sin)
        k_out = rotated(normalised(k, k_weight), cos, sin)
        return q_out.to(q.dtype), k_out.to(k.dtype)

    return run


class TestQkRmsnormRopeEps1em5D128Rd64(RopeTests):
    name = "qk_rmsnorm_rope_eps_1em5_d128_rd64"
    reference = staticmethod(reference_qk_rmsnorm_rope_eps_1em5)
    interface = INTERFACE_QK_RMSNORM_ROPE_EPS
    axes = {"head_size": 128, "rotary_dim": 64}
    constants = ("unit_offset", "eps", "is_neox")
    UNIT_OFFSET = False  # "rmsnorm" in the name
    EPS = 1e-05  # "1em5" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "67341e40fd1850bad07256684bb146c424f665dbbffc4fe432d8e380d909846e"


# RMS norm of each head, x * rsqrt(mean(x^2) + 1e-06) * weight, then rotary embedding,
# in float32 and rounded once. Rotary position embedding, NeoX style: dimension i of a
# head turns with dimension i + rotary_dim / 2; those from rotary_dim on pass through. A
# row of the cache is the cosines of a position, then its sines.
# model:qwen3-8b, model:qwen3-14b, model:qwen3-32b, model:qwen3-30b-a3b,
# model:qwen3-235b-a22b, fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
# Tolerances: those of reference_gemma_qk_rmsnorm_rope_eps_1em6.
def reference_qk_rmsnorm_rope_eps_1em6():
    import torch

    EPS = 1e-06


    def normalised(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = x.float()
        inverse = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
        return x * inverse * weight.float()


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rotary_dim = 2 * cos.shape[-1]
        # Dimension i turns with dimension i + rotary_dim // 2, not with its neighbour.
        first, second = x[..., :rotary_dim].chunk(2, dim=-1)
        turned = (first * cos - second * sin, second * cos + first * sin)
        # The dimensions behind rotary_dim do not turn.
        return torch.cat((*turned, x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        q_weight: torch.Tensor,
        k_weight: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        # The normalised heads stay in float32: they are rounded once.
        q_out = rotated(normalised(q, q_weight), cos, sin)
        k_out = rotated(normalised(k, k_weight), cos, sin)
        return q_out.to(q.dtype), k_out.to(k.dtype)

    return run


class TestQkRmsnormRopeEps1em6D128Rd128(RopeTests):
    name = "qk_rmsnorm_rope_eps_1em6_d128_rd128"
    reference = staticmethod(reference_qk_rmsnorm_rope_eps_1em6)
    interface = INTERFACE_QK_RMSNORM_ROPE_EPS
    axes = {"head_size": 128, "rotary_dim": 128}
    constants = ("unit_offset", "eps", "is_neox")
    UNIT_OFFSET = False  # "rmsnorm" in the name
    EPS = 1e-06  # "1em6" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "25ee7f05589e233b4dc7c02e1faf8057a2f96b3d318a3ca6c5c62f1f89c5e97e"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# head_size / 2. Pair i turns by theta ** (-2i / head_size) radians a position, theta
# 1000000.
# model:qwen3-8b, fi_api:flashinfer.rope.apply_rope_pos_ids, tp:1
# Tolerances: those of reference_deepseek_rope_pos_ids_gptj.
def reference_apply_rope_pos_ids_theta1000000():
    import torch

    ROPE_THETA = 1000000


    def frequencies(head_size: int) -> torch.Tensor:
        steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
        return ROPE_THETA**-steps


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension i turns with dimension i + head_size // 2, not with its neighbour.
        first, second = x.float().chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return turned.to(x.dtype)


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # float64: at position 100,000 an angle in float32 is off by 4e-3.
        angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
        # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
        angles = angles[:, None]
        cos, sin = angles.cos().float(), angles.sin().float()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class TestRopePosIdsTheta1000000H32Kv8D128(RopeTests):
    name = "rope_pos_ids_theta1000000_h32_kv8_d128"
    reference = staticmethod(reference_apply_rope_pos_ids_theta1000000)
    interface = INTERFACE_ROPE_POS_IDS
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_size": 128}
    constants = ("rope_theta", "is_neox")
    ROPE_THETA = 1000000  # "theta1000000" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "efabab4d1e9682d2ff7fa8f2b3cd22cce62ff6c4ab0a189e89dc64312d43d92c"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# head_size / 2. Pair i turns by theta ** (-2i / head_size) radians a position, theta
# 10000.
# model:mistral-7b-v0.1, fi_api:flashinfer.rope.apply_rope_pos_ids, tp:1
# Tolerances: those of reference_deepseek_rope_pos_ids_gptj.
def reference_apply_rope_pos_ids_theta10000():
    import torch

    ROPE_THETA = 10000


    def frequencies(head_size: int) -> torch.Tensor:
        steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
        return ROPE_THETA**-steps


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension i turns with dimension i + head_size // 2, not with its neighbour.
        first, second = x.float().chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return turned.to(x.dtype)


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # float64: at position 100,000 an angle in float32 is off by 4e-3.
        angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
        # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
        angles = angles[:, None]
        cos, sin = angles.cos().float(), angles.sin().float()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class TestRopePosIdsTheta10000H32Kv8D128(RopeTests):
    name = "rope_pos_ids_theta10000_h32_kv8_d128"
    reference = staticmethod(reference_apply_rope_pos_ids_theta10000)
    interface = INTERFACE_ROPE_POS_IDS
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_size": 128}
    constants = ("rope_theta", "is_neox")
    ROPE_THETA = 10000  # "theta10000" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "4277e467f6665cf501ddb8a64244626f252c65e8cf2e952ee02c7320270117ae"


# Rotary position embedding, GPT-J style: dimension 2i of a head turns with dimension 2i
# + 1; those from rotary_dim on pass through. A row of the cache is the cosines of a
# position, then its sines.
# fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
# Tolerances: those of reference_mrope_interleaved_t11_y11_x10_d256_rd64.
def reference_rope_with_cos_sin_cache_gptj_style():
    import torch


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rotary_dim = 2 * cos.shape[-1]
        # Dimension 2i turns with dimension 2i + 1, not with the one half a head away.
        even, odd = x[..., 0:rotary_dim:2].float(), x[..., 1:rotary_dim:2].float()
        turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
        # The dimensions behind rotary_dim pass through.
        return torch.cat((turned.flatten(-2).to(x.dtype), x[..., rotary_dim:]), dim=-1)


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


class RopeWithCosSinCacheGptjStyleBase(RopeTests):
    reference = staticmethod(reference_rope_with_cos_sin_cache_gptj_style)
    interface = INTERFACE_ROPE_WITH_COS_SIN_CACHE
    constants = ("is_neox",)
    IS_NEOX = False  # "gptj" in the name

# model:llama-4-scout, model:llama-4-maverick
class TestRopeWithCosSinCacheGptjStyleD128Rd128(RopeWithCosSinCacheGptjStyleBase):
    name = "rope_with_cos_sin_cache_gptj_style_d128_rd128"
    axes = {"head_size": 128, "rotary_dim": 128}
    sha256 = "6f0249c25a63e71eeefb9ed729eeeaa5da58420ebb36bdc66ef21a4ce9d1c1a0"

# model:deepseek-v3, model:deepseek-r1, model:kimi-k2
class TestRopeWithCosSinCacheGptjStyleD64Rd64(RopeWithCosSinCacheGptjStyleBase):
    name = "rope_with_cos_sin_cache_gptj_style_d64_rd64"
    axes = {"head_size": 64, "rotary_dim": 64}
    sha256 = "ca47219d99d456f1eeb84e42a12aa593bbe06eacaa78dc791a6b66c34333cd76"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# rotary_dim / 2; those from rotary_dim on pass through. A row of the cache is the
# cosines of a position, then its sines.
# fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
# Tolerances: those of reference_mrope_interleaved_t11_y11_x10_d256_rd64.
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


class RopeWithCosSinCacheNeoxStyleBase(RopeTests):
    reference = staticmethod(reference_rope_with_cos_sin_cache_neox_style)
    interface = INTERFACE_ROPE_WITH_COS_SIN_CACHE
    constants = ("is_neox",)
    IS_NEOX = True  # "neox" in the name

# model:llama-3.1-8b, model:llama-3.1-70b, model:mistral-7b-v0.1, model:qwen3-8b,
# model:qwen3-32b
class TestRopeWithCosSinCacheNeoxStyleD128Rd128(RopeWithCosSinCacheNeoxStyleBase):
    name = "rope_with_cos_sin_cache_neox_style_d128_rd128"
    axes = {"head_size": 128, "rotary_dim": 128}
    sha256 = "97eaf31e47391216792e48702f30a2737ccadf0cd02b8503b226ff3027f4c54b"

class TestRopeWithCosSinCacheNeoxStyleD128Rd64(RopeWithCosSinCacheNeoxStyleBase):
    name = "rope_with_cos_sin_cache_neox_style_d128_rd64"  # model:minimax-m2
    axes = {"head_size": 128, "rotary_dim": 64}
    sha256 = "23be21cd28c37376dfd3a2cb1ded09e8ea570c6964661d23672b433ad986779e"

class TestRopeWithCosSinCacheNeoxStyleD256Rd256(RopeWithCosSinCacheNeoxStyleBase):
    name = "rope_with_cos_sin_cache_neox_style_d256_rd256"  # model:gemma-2-9b
    axes = {"head_size": 256, "rotary_dim": 256}
    sha256 = "8793f257064e6be81ba16c282cb468ee93cef794e8c11ca34509ed456e2358bc"

class TestRopeWithCosSinCacheNeoxStyleD256Rd64(RopeWithCosSinCacheNeoxStyleBase):
    name = "rope_with_cos_sin_cache_neox_style_d256_rd64"  # model:qwen3-next-80b-a3b
    axes = {"head_size": 256, "rotary_dim": 64}
    sha256 = "fe2aa1bac1746cb54ac3af88be8c10e202dbb15d90bb516251fd8c3b917496cf"

# model:llama-3.2-1b, model:gpt-oss-120b, model:gpt-oss-20b
class TestRopeWithCosSinCacheNeoxStyleD64Rd64(RopeWithCosSinCacheNeoxStyleBase):
    name = "rope_with_cos_sin_cache_neox_style_d64_rd64"
    axes = {"head_size": 64, "rotary_dim": 64}
    sha256 = "e4a98a74ffd29a90b965a494ccebb56a1aec78662a1115a3e904ca814dba885b"


# Rotary position embedding, NeoX style: dimension i of a head turns with dimension i +
# head_size / 2. Pair i turns by f = theta ** (-2i / head_size) radians a position,
# theta 150000, mixed by YaRN with f / 32: between the pairs that turn 32 times, and
# once, in 4096 positions the mix is linear in i; both ends are fractions. Cosines and
# sines are times 0.1 * ln(32) + 1.
# model:gpt-oss-120b, model:gpt-oss-20b, tp:1
# Tolerances: those of reference_deepseek_rope_pos_ids_gptj.
def reference_yarn_rope_pos_ids():
    import math

    import torch

    ROPE_THETA = 150000
    ROPE_SCALE = 32
    BETA_FAST = 32
    BETA_SLOW = 1
    OLD_CONTEXT = 4096


    def frequencies(head_size: int) -> torch.Tensor:
        steps = torch.arange(0, head_size, 2, dtype=torch.float64) / head_size
        plain = ROPE_THETA**-steps
        # The pair that turns a number of times in the old context; it need not be whole.
        fast, slow = (
            head_size * math.log(OLD_CONTEXT / (turns * 2.0 * math.pi)) / 2.0
            for turns in (BETA_FAST, BETA_SLOW)
        )
        first, last = fast / math.log(ROPE_THETA), slow / math.log(ROPE_THETA)
        pairs = torch.arange(head_size // 2, dtype=torch.float64)
        slowed = ((pairs - first) / (last - first)).clamp(0.0, 1.0)
        return (1.0 - slowed) * plain + slowed * plain / ROPE_SCALE


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        # Dimension i turns with dimension i + head_size // 2, not with its neighbour.
        first, second = x.float().chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return turned.to(x.dtype)


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, pos_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # float64: at position 100,000 an angle in float32 is off by 4e-3.
        angles = pos_ids.double()[:, None] * frequencies(q.shape[-1]).to(q.device)
        # All heads of a token turn alike: [num_tokens, 1, head_size // 2].
        angles = angles[:, None]
        # YaRN also makes all logits larger: a factor of cosines and sines.
        factor = 0.1 * math.log(ROPE_SCALE) + 1.0
        cos, sin = (factor * angles.cos()).float(), (factor * angles.sin()).float()
        return rotated(q, cos, sin), rotated(k, cos, sin)

    return run


class TestYarnRopePosIdsTheta150000Scale32H64Kv8D64(RopeTests):
    name = "yarn_rope_pos_ids_theta150000_scale32_h64_kv8_d64"
    reference = staticmethod(reference_yarn_rope_pos_ids)
    interface = INTERFACE_ROPE_POS_IDS
    axes = {"num_qo_heads": 64, "num_kv_heads": 8, "head_size": 64}
    constants = ("yarn", "rope_theta", "rope_scale", "is_neox")
    YARN = True  # "yarn" in the name
    ROPE_THETA = 150000  # "theta150000" in the name
    ROPE_SCALE = 32  # "scale32" in the name
    IS_NEOX = True  # the convention of rope
    sha256 = "8da1b9afc818db17a3eb93bb358fd37f08848ef586abf484cd34d8f23f1b690d"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
