"""Smaller geometries of the large families, so that hundreds of mutants can be run.

What a defect does shows in few heads, experts' columns or tokens as well as in many:
the references read these lengths from their inputs. Lengths that a tolerance is derived
from, and constants of the interface, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Axes = Mapping[str, int]
_BLOCK = 128


def reduced(op_type: str, axes: Axes) -> dict[str, int]:
    """Return the axes of an op_type that are audited shorter than they are."""
    return _changed(_REDUCED.get(op_type), axes)


def tiny(op_type: str, axes: Axes) -> dict[str, int]:
    """Return the axes on which hundreds of random cases are run within seconds."""
    return _changed(_TINY.get(op_type, _REDUCED.get(op_type)), axes)


def _changed(shrink: Callable[[Axes], Axes] | None, axes: Axes) -> dict[str, int]:
    if shrink is None:
        return {}
    try:
        wanted = shrink(axes)
    except (KeyError, IndexError, ZeroDivisionError):
        # an interface of another shape: as it is
        return {}
    return {
        name: length
        for name, length in wanted.items()
        if name in axes and length < axes[name]
    }


def _moe(axes: Axes) -> Axes:
    # more than one block of 128 each, and not equally many
    return {**_experts(axes, 32), **_columns(3 * _BLOCK, 2 * _BLOCK)}


def _tiny_moe(axes: Axes) -> Axes:
    # where experts are elsewhere, no token needs top_k of those here
    elsewhere = axes.get("num_experts", 0) > axes.get("num_local_experts", 2**30)
    has_blocks = "num_hidden_blocks" in axes
    return {
        **_experts(axes, 4 if elsewhere else 12),
        **(_columns(2 * _BLOCK, _BLOCK) if has_blocks else _columns(_BLOCK, 64)),
    }


def _experts(axes: Axes, most: int) -> dict[str, int]:
    """Return fewer experts; where some are elsewhere, in the same proportion."""
    names = [n for n in ("num_experts", "num_local_experts") if n in axes]
    factor = max(axes[names[-1]] // most, 1)
    return {name: axes[name] // factor for name in names}


def _columns(hidden: int, intermediate: int) -> dict[str, int]:
    return {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "gemm1_out_size": 2 * intermediate,
        "num_hidden_blocks": hidden // _BLOCK,
        "num_intermediate_blocks": intermediate // _BLOCK,
        "num_gemm1_out_blocks": 2 * intermediate // _BLOCK,
    }


def _gemm(axes: Axes) -> Axes:
    # more columns than the references take at a time
    return {"N": 4160, "K": 320}


def _sampling(axes: Axes) -> Axes:
    # more tokens than the 256 that a reference looks at before it looks at all
    return {"vocab_size": 1100}


def _gdn(axes: Axes) -> Axes:
    ratio = axes["num_v_heads"] // axes["num_k_heads"]
    heads = {"num_q_heads": 2, "num_k_heads": 2, "num_v_heads": 2 * ratio}
    return {**heads, "head_size": 32}


def _mamba(axes: Axes) -> Axes:
    # as many heads a group as there are; a dstate of 128 is what the bounds are for
    ratio = axes["nheads"] // axes["ngroups"]
    return {"nheads": 2 * ratio, "ngroups": 2, "head_dim": 16}


def _attention(axes: Axes) -> Axes:
    ratio = axes["num_qo_heads"] // axes["num_kv_heads"]
    heads = min(axes["num_kv_heads"], 2)
    return {"num_qo_heads": heads * ratio, "num_kv_heads": heads, "head_dim": 32}


def _latent(axes: Axes) -> Axes:
    return {"num_qo_heads": 4, "head_dim_ckv": 64, "head_dim_kpe": 16}


def _mla_ragged(axes: Axes) -> Axes:
    return {"num_qo_heads": 3, "num_kv_heads": 3, "qk_dim": 48, "vo_dim": 32}


def _sparse(axes: Axes) -> Axes:
    if "index_head_dim" in axes:
        scale = axes["head_dim_with_scale"] - axes["index_head_dim"]
        length = {"index_head_dim": 32, "head_dim_with_scale": 32 + scale}
        return {"num_index_heads": 4, **length}
    heads = {"num_qo_heads": 3, "num_index_heads": 4}
    return {**heads, "head_dim_ckv": 64, "head_dim_kpe": 16}


def _norm(axes: Axes) -> Axes:
    return {"hidden_size": 160}


def _tiny_gemm(axes: Axes) -> Axes:
    return {"N": 4160, "K": 64}


def _tiny_sampling(axes: Axes) -> Axes:
    # more than the candidates of a first look; what asks for more than there are is
    # compared on the axes of the bench
    return {"vocab_size": 600}


def _tiny_mamba(axes: Axes) -> Axes:
    return {"nheads": 4, "ngroups": 2, "head_dim": 16, "dstate": 32}


_REDUCED: Mapping[str, Callable[[Axes], Axes]] = {
    "moe": _moe,
    "gemm": _gemm,
    "sampling": _sampling,
    "gdn": _gdn,
    "mamba_ssu": _mamba,
}
_TINY: Mapping[str, Callable[[Axes], Axes]] = {
    "gqa_paged": _attention,
    "gqa_ragged": _attention,
    "mla_paged": _latent,
    "mla_ragged": _mla_ragged,
    "dsa_paged": _sparse,
    "moe": _tiny_moe,
    "rmsnorm": _norm,
    "gemm": _tiny_gemm,
    "sampling": _tiny_sampling,
    "mamba_ssu": _tiny_mamba,
}
