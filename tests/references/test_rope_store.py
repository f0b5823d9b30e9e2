"""Reference tests of op_type rope_store.

Rendered: don't edit. `gen-tests --op-type rope_store` renders this file anew.

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
from generator.ops.op_types.rope_store.relations import store_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# bounds: generator.ops.head_norm_inputs
# relations: generator.ops.op_types.rope_store.relations

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


# ---- the interfaces

INTERFACE_QK_RMSNORM_ROPE_STORE_EPS = Interface(
    inputs={
        "q": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k": "bfloat16[num_tokens, num_kv_heads, head_size]",
        "v": "bfloat16[num_tokens, num_kv_heads, head_size]",
        "q_weight": "bfloat16[head_size]",
        "k_weight": "bfloat16[head_size]",
        "cos_sin_cache": "float32[max_seq_len, rotary_dim]",
        "positions": "int64[num_tokens]",
        "k_cache": "bfloat16[num_slots, num_kv_heads, head_size]",
        "v_cache": "bfloat16[num_slots, num_kv_heads, head_size]",
        "slot_mapping": "int64[num_tokens]",
    },
    outputs={
        "q_out": "bfloat16[num_tokens, num_qo_heads, head_size]",
        "k_cache_out": "bfloat16[num_slots, num_kv_heads, head_size]",
        "v_cache_out": "bfloat16[num_slots, num_kv_heads, head_size]",
    },
)
INTERFACE_ROPE_STORE = INTERFACE_QK_RMSNORM_ROPE_STORE_EPS.but(
    without=("q_weight", "k_weight"),
)

# ---- the tests


class RopeStoreTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of rope_store share."""

    op_type = "rope_store"
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
# (1) float32 operations and one rounding to bfloat16.
# (2) FlashInfer's norm gives what bfloat16 holds.
# (3) FlashInfer's norm rounds to bfloat16 before the rotation.
# (4) both sides round nearly the same float32 value once, to neighbours at most.
# (5) bits are copied, none is computed.


# RMS norm of each head of queries and keys, x * rsqrt(mean(x^2) + 1e-06) * (1 +
# weight), then rotary embedding, in float32 and rounded once: dimension i of a head
# turns with dimension i + rotary_dim / 2; those from rotary_dim on pass through. Turned
# keys and the values, as they are, go to the slots of the cache that slot_mapping
# names; what is not written stays. In serving the caches are written in place.
# tp:1
# Tolerances:
#   output       source                          rtol   atol   NMSE   reason
#   q_out        oracle                          0.004  4e-06  5e-06  (1)
#   q_out        flashinfer in held-by-bfloat16  0.008  4e-06  1e-06  (2)
#   q_out        flashinfer                      0.008  0.024  1e-05  (3)
#   q_out        sglang                          0.008  4e-06  1e-06  (4)
#   k_cache_out  oracle                          0.004  4e-06  5e-06  (1)
#   k_cache_out  flashinfer in held-by-bfloat16  0.008  4e-06  1e-06  (2)
#   k_cache_out  flashinfer                      0.008  0.024  1e-05  (3)
#   k_cache_out  sglang                          0.008  4e-06  1e-06  (4)
#   v_cache_out  oracle, flashinfer, sglang      exact                (5)
def reference_gemma_qk_rmsnorm_rope_store_eps_1em6():
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
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        # The dimensions behind rotary_dim do not turn.
        return torch.cat((turned, x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        q_weight: torch.Tensor,
        k_weight: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        # The normalised heads stay in float32: they are rounded once.
        q_out = rotated(normalised(q, q_weight), cos, sin).to(q.dtype)
        keys = rotated(normalised(k, k_weight), cos, sin).to(k.dtype)
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[slot_mapping] = keys
        v_cache_out[slot_mapping] = v
        return q_out, k_cache_out, v_cache_out

    return run


class GemmaQkRmsnormRopeStoreEps1em6Base(RopeStoreTests):
    reference = staticmethod(reference_gemma_qk_rmsnorm_rope_store_eps_1em6)
    interface = INTERFACE_QK_RMSNORM_ROPE_STORE_EPS
    constants = ("unit_offset", "eps", "is_neox")
    UNIT_OFFSET = True  # "gemma" in the name
    EPS = 1e-06  # "1em6" in the name
    IS_NEOX = True  # the convention of rope_store

# model:qwen3-next-80b-a3b
class TestGemmaQkRmsnormRopeStoreEps1em6H16Kv2D256Rd64(
    GemmaQkRmsnormRopeStoreEps1em6Base
):
    name = "gemma_qk_rmsnorm_rope_store_eps_1em6_h16_kv2_d256_rd64"
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_size": 256, "rotary_dim": 64}
    sha256 = "080fd9f93f36b1537359a3280b8c21f202d2372e6b563e528c529766c912f749"

# model:gemma-3-27b
class TestGemmaQkRmsnormRopeStoreEps1em6H32Kv16D128Rd128(
    GemmaQkRmsnormRopeStoreEps1em6Base
):
    name = "gemma_qk_rmsnorm_rope_store_eps_1em6_h32_kv16_d128_rd128"
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_size": 128, "rotary_dim": 128}
    sha256 = "c357764405845794322cb01eb6c7d1b6adb24895c550ebd0ce0ab0d62b8dc3ee"


# RMS norm of each head of queries and keys, x * rsqrt(mean(x^2) + 1e-05) * weight, then
# rotary embedding, in float32 and rounded once: dimension i of a head turns with
# dimension i + rotary_dim / 2; those from rotary_dim on pass through. Turned keys and
# the values, as they are, go to the slots of the cache that slot_mapping names; what is
# not written stays. In serving the caches are written in place.
# Tolerances: those of reference_gemma_qk_rmsnorm_rope_store_eps_1em6.
def reference_qk_rmsnorm_rope_store_eps_1em5():
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
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        # The dimensions behind rotary_dim do not turn.
        return torch.cat((turned, x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        q_weight: torch.Tensor,
        k_weight: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        # The normalised heads stay in float32: they are rounded once.
        q_out = rotated(normalised(q, q_weight), cos, sin).to(q.dtype)
        keys = rotated(normalised(k, k_weight), cos, sin).to(k.dtype)
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[slot_mapping] = keys
        v_cache_out[slot_mapping] = v
        return q_out, k_cache_out, v_cache_out

    return run


class QkRmsnormRopeStoreEps1em5Base(RopeStoreTests):
    reference = staticmethod(reference_qk_rmsnorm_rope_store_eps_1em5)
    interface = INTERFACE_QK_RMSNORM_ROPE_STORE_EPS
    axes = {"rotary_dim": 64}
    constants = ("unit_offset", "eps", "is_neox")
    UNIT_OFFSET = False  # "rmsnorm" in the name
    EPS = 1e-05  # "1em5" in the name
    IS_NEOX = True  # the convention of rope_store

class TestQkRmsnormRopeStoreEps1em5H12Kv1D128Rd64(QkRmsnormRopeStoreEps1em5Base):
    name = "qk_rmsnorm_rope_store_eps_1em5_h12_kv1_d128_rd64"  # model:glm-4.6, tp:8
    axes = {"num_qo_heads": 12, "num_kv_heads": 1, "head_size": 128}
    sha256 = "f9784e911db3e879b2f5cf73803d3c54934298281752ede93495dd000ac5df63"

class TestQkRmsnormRopeStoreEps1em5H32Kv8D64Rd64(QkRmsnormRopeStoreEps1em5Base):
    name = "qk_rmsnorm_rope_store_eps_1em5_h32_kv8_d64_rd64"  # model:lfm2-8b-a1b, tp:1
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_size": 64}
    sha256 = "14f225a1251c60f561592fd034e9d7377f3b4809db22c4e603db6d72a6071beb"

class TestQkRmsnormRopeStoreEps1em5H96Kv8D128Rd64(QkRmsnormRopeStoreEps1em5Base):
    name = "qk_rmsnorm_rope_store_eps_1em5_h96_kv8_d128_rd64"  # model:glm-4.6, tp:1
    axes = {"num_qo_heads": 96, "num_kv_heads": 8, "head_size": 128}
    sha256 = "597164334b0695771324a886fc8c90843c23117ea60204e2b8d0c4e9c0d2a911"


# RMS norm of each head of queries and keys, x * rsqrt(mean(x^2) + 1e-06) * weight, then
# rotary embedding, in float32 and rounded once: dimension i of a head turns with
# dimension i + rotary_dim / 2; those from rotary_dim on pass through. Turned keys and
# the values, as they are, go to the slots of the cache that slot_mapping names; what is
# not written stays. In serving the caches are written in place.
# Tolerances: those of reference_gemma_qk_rmsnorm_rope_store_eps_1em6.
def reference_qk_rmsnorm_rope_store_eps_1em6():
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
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        # The dimensions behind rotary_dim do not turn.
        return torch.cat((turned, x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        q_weight: torch.Tensor,
        k_weight: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        # The normalised heads stay in float32: they are rounded once.
        q_out = rotated(normalised(q, q_weight), cos, sin).to(q.dtype)
        keys = rotated(normalised(k, k_weight), cos, sin).to(k.dtype)
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[slot_mapping] = keys
        v_cache_out[slot_mapping] = v
        return q_out, k_cache_out, v_cache_out

    return run


class QkRmsnormRopeStoreEps1em6Base(RopeStoreTests):
    reference = staticmethod(reference_qk_rmsnorm_rope_store_eps_1em6)
    interface = INTERFACE_QK_RMSNORM_ROPE_STORE_EPS
    axes = {"head_size": 128, "rotary_dim": 128}
    constants = ("unit_offset", "eps", "is_neox")
    UNIT_OFFSET = False  # "rmsnorm" in the name
    EPS = 1e-06  # "1em6" in the name
    IS_NEOX = True  # the convention of rope_store

# model:qwen3-235b-a22b, tp:4
class TestQkRmsnormRopeStoreEps1em6H16Kv1D128Rd128(QkRmsnormRopeStoreEps1em6Base):
    name = "qk_rmsnorm_rope_store_eps_1em6_h16_kv1_d128_rd128"
    axes = {"num_qo_heads": 16, "num_kv_heads": 1}
    sha256 = "505d364de38dc2beaa968dae30b0e943eca65a0a96b35d6b675358a3bc4fcad3"

# model:qwen3-30b-a3b, tp:1
class TestQkRmsnormRopeStoreEps1em6H32Kv4D128Rd128(QkRmsnormRopeStoreEps1em6Base):
    name = "qk_rmsnorm_rope_store_eps_1em6_h32_kv4_d128_rd128"
    axes = {"num_qo_heads": 32, "num_kv_heads": 4}
    sha256 = "9a1bed9917a8a6355db9b71b2708836bb0823f01cb9a316087d65c27d7e63de2"

class TestQkRmsnormRopeStoreEps1em6H32Kv8D128Rd128(QkRmsnormRopeStoreEps1em6Base):
    name = "qk_rmsnorm_rope_store_eps_1em6_h32_kv8_d128_rd128"  # model:qwen3-8b, tp:1
    axes = {"num_qo_heads": 32, "num_kv_heads": 8}
    sha256 = "43f91f648c6c6353dd2bd7eb5edf4f7e49b31ad97f36e74079bc43d6aee52240"

class TestQkRmsnormRopeStoreEps1em6H40Kv8D128Rd128(QkRmsnormRopeStoreEps1em6Base):
    name = "qk_rmsnorm_rope_store_eps_1em6_h40_kv8_d128_rd128"  # model:qwen3-14b, tp:1
    axes = {"num_qo_heads": 40, "num_kv_heads": 8}
    sha256 = "b199e40e2cbd7e8fd03c1203a31e1bfd189544848d37f6fe79581b78b312a06d"

# model:qwen3-235b-a22b, tp:1
class TestQkRmsnormRopeStoreEps1em6H64Kv4D128Rd128(QkRmsnormRopeStoreEps1em6Base):
    name = "qk_rmsnorm_rope_store_eps_1em6_h64_kv4_d128_rd128"
    axes = {"num_qo_heads": 64, "num_kv_heads": 4}
    sha256 = "2a44e5d6f41ec3ca2e2fcda5541b5ed6a17669a04f0bd2206467f09bedfbc5e3"

class TestQkRmsnormRopeStoreEps1em6H64Kv8D128Rd128(QkRmsnormRopeStoreEps1em6Base):
    name = "qk_rmsnorm_rope_store_eps_1em6_h64_kv8_d128_rd128"  # model:qwen3-32b, tp:1
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "efbde0d5e6aefd66ce9a897b93937ecdc43647b629d8e49edeab57a051876adc"


# Rotary embedding of queries and keys: dimension 2i of a head turns with dimension 2i +
# 1; those from rotary_dim on pass through. Turned keys and the values, as they are, go
# to the slots of the cache that slot_mapping names; what is not written stays. In
# serving the caches are written in place.
# model:llama-4-scout, model:llama-4-maverick, tp:1
# Tolerances:
#   output       source                          rtol   atol   NMSE   reason
#   q_out        oracle                          0.004  4e-06  5e-06  (1)
#   q_out        flashinfer in held-by-bfloat16  0.008  4e-06  1e-06  (2)
#   q_out        flashinfer, sglang              0.008  4e-06  1e-06  (4)
#   k_cache_out  oracle                          0.004  4e-06  5e-06  (1)
#   k_cache_out  flashinfer in held-by-bfloat16  0.008  4e-06  1e-06  (2)
#   k_cache_out  flashinfer, sglang              0.008  4e-06  1e-06  (4)
#   v_cache_out  oracle, flashinfer, sglang      exact                (5)
def reference_rope_store_gptj():
    import torch


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rotary_dim = 2 * cos.shape[-1]
        # Dimension 2i turns with its neighbour 2i + 1.
        first, second = x[..., :rotary_dim:2], x[..., 1:rotary_dim:2]
        turned = torch.stack(
            (first * cos - second * sin, second * cos + first * sin), dim=-1
        ).flatten(-2)
        # The dimensions behind rotary_dim do not turn.
        return torch.cat((turned, x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        q_out = rotated(q.float(), cos, sin).to(q.dtype)
        keys = rotated(k.float(), cos, sin).to(k.dtype)
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[slot_mapping] = keys
        v_cache_out[slot_mapping] = v
        return q_out, k_cache_out, v_cache_out

    return run


class TestRopeStoreGptjH40Kv8D128Rd128(RopeStoreTests):
    name = "rope_store_gptj_h40_kv8_d128_rd128"
    reference = staticmethod(reference_rope_store_gptj)
    interface = INTERFACE_ROPE_STORE
    axes = {"num_qo_heads": 40, "num_kv_heads": 8, "head_size": 128, "rotary_dim": 128}
    constants = ("is_neox",)
    IS_NEOX = False  # "gptj" in the name
    sha256 = "71adb45badbed804066f806dddb96992746f1043691980141a12fb0a7e75da46"


# Rotary embedding of queries and keys: dimension i of a head turns with dimension i +
# rotary_dim / 2; those from rotary_dim on pass through. Turned keys and the values, as
# they are, go to the slots of the cache that slot_mapping names; what is not written
# stays. In serving the caches are written in place.
# Tolerances: those of reference_rope_store_gptj.
def reference_rope_store_neox():
    import torch


    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rotary_dim = 2 * cos.shape[-1]
        # Dimension i turns with dimension i + rotary_dim // 2, not with its neighbour.
        first, second = x[..., :rotary_dim].chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        # The dimensions behind rotary_dim do not turn.
        return torch.cat((turned, x[..., rotary_dim:]), dim=-1)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cos_sin_cache: torch.Tensor,
        positions: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # All heads of a token turn alike: [num_tokens, 1, rotary_dim // 2].
        cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
        q_out = rotated(q.float(), cos, sin).to(q.dtype)
        keys = rotated(k.float(), cos, sin).to(k.dtype)
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[slot_mapping] = keys
        v_cache_out[slot_mapping] = v
        return q_out, k_cache_out, v_cache_out

    return run


class RopeStoreNeoxBase(RopeStoreTests):
    reference = staticmethod(reference_rope_store_neox)
    interface = INTERFACE_ROPE_STORE
    constants = ("is_neox",)
    IS_NEOX = True  # the convention of rope_store

class TestRopeStoreNeoxH28Kv4D128Rd128(RopeStoreNeoxBase):
    name = "rope_store_neox_h28_kv4_d128_rd128"  # model:qwen2.5-7b, tp:1
    axes = {"num_qo_heads": 28, "num_kv_heads": 4, "head_size": 128, "rotary_dim": 128}
    sha256 = "0a75d1ea99e67aab5f45e86565acddfa8a78c4165bd2afff5b4fa17a3f39cd39"

# model:llama-3.1-8b, model:mistral-7b-v0.1, tp:1
class TestRopeStoreNeoxH32Kv8D128Rd128(RopeStoreNeoxBase):
    name = "rope_store_neox_h32_kv8_d128_rd128"
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_size": 128, "rotary_dim": 128}
    sha256 = "a39b7327489fa0f1d1da8dcddb5822e610db3f8ad81985a8b3cd7843e0c021c3"

class TestRopeStoreNeoxH48Kv8D128Rd128(RopeStoreNeoxBase):
    name = "rope_store_neox_h48_kv8_d128_rd128"  # model:mixtral-8x22b, tp:1
    axes = {"num_qo_heads": 48, "num_kv_heads": 8, "head_size": 128, "rotary_dim": 128}
    sha256 = "5dca8c8152279442b50b454bae3a83d7ce79bee10adde2336066803fda850899"

# model:gpt-oss-120b, model:gpt-oss-20b, tp:1
class TestRopeStoreNeoxH64Kv8D64Rd64(RopeStoreNeoxBase):
    name = "rope_store_neox_h64_kv8_d64_rd64"
    axes = {"num_qo_heads": 64, "num_kv_heads": 8, "head_size": 64, "rotary_dim": 64}
    sha256 = "d5e3e500215707b172768865149b5780c09df1c1d8b1e56214258cb4096af844"

# model:llama-3.1-70b, model:llama-3.3-70b, tp:8
class TestRopeStoreNeoxH8Kv1D128Rd128(RopeStoreNeoxBase):
    name = "rope_store_neox_h8_kv1_d128_rd128"
    axes = {"num_qo_heads": 8, "num_kv_heads": 1, "head_size": 128, "rotary_dim": 128}
    sha256 = "614feb188647838467da4630d79712ac805259ced9179c108b1dbc211e097db9"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
