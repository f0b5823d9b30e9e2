"""rope: rotary position embedding of queries and keys.

How far a token turns is in its row of a cache, of rotary_dim / 2 cosines and as many
sines; or in the rows of three positions, each of which turns some of the pairs; or it
follows from its position and the model's frequencies. NeoX style rotates dimension i with
dimension i + rotary_dim / 2, GPT-J style dimension 2i with 2i + 1. The dimensions from
rotary_dim on stay unchanged. Some models normalise each head before.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.head_norm_inputs import UNROUNDED, UNROUNDED_NORM, unrounded
from generator.ops.op_types.rope.angles import scaling_of, turns
from generator.ops.op_types.rope.relations import rope_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
