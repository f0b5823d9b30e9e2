"""Rotary embedding and scaling to e4m3: of grouped queries and keys, and of latents."""

from __future__ import annotations

from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.rope_quantize import workloads
from generator.ops.reference_text import reference_text

ROPE_DIM = 64
PAGE_SIZE = 64


@dataclass(frozen=True)
class RotatedLayer:
    """The constants of one definition.

    Latent attention has no num_kv_heads: all query heads share one key. `append` says
    whether keys, and values, are written to a paged cache.
    """

    num_qo_heads: int
    num_kv_heads: int
    nope_dim: int
    models: tuple[str, ...]
    tp: int = 1
    append: bool = False


_DEEPSEEK = ("deepseek-v3", "deepseek-r1")
LAYERS = (
    RotatedLayer(48, 8, 64, ("minimax-m2",)),
    RotatedLayer(96, 8, 64, ("glm-4.6",)),
    RotatedLayer(48, 8, 64, ("minimax-m2",), append=True),
    RotatedLayer(16, 0, 512, _DEEPSEEK, tp=8),
    RotatedLayer(16, 0, 512, _DEEPSEEK, tp=8, append=True),
)
_SCALED = (
    "Then all are multiplied by the scale, cut off at 448, and rounded to e4m3 once: the"
    " turned dimensions stay in float32 before."
)
_STYLE = {
    "neox": "Dimension i of the rotary part turns with dimension i + rope_dim / 2.",
    "gptj": "Dimension 2i of the rotary part turns with dimension 2i + 1.",
}
_WHERE = (
    " Row i belongs at token positions[i] of sequence batch_indices[i], which is slot"
    " position % page_size of page kv_indices[kv_indptr[b] + position // page_size]. The"
    " outputs are the whole caches: slots that no row is for keep what they hold."
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(layer_spec(layer) for layer in LAYERS)


def layer_spec(layer: RotatedLayer) -> Spec:
    """Return the definition for one set of constants."""
    mla = not layer.num_kv_heads
    style = "gptj" if mla else "neox"
    module = f"{'mla_' if mla else ''}rope_quantize_fp8"
    module += "_append_paged_kv_cache" if layer.append else ""
    heads = f"h{layer.num_qo_heads}" + ("" if mla else f"_kv{layer.num_kv_heads}")
    dims = f"rope{ROPE_DIM}_nope{layer.nope_dim}"
    return Spec(
        name=f"{module}_{style}_{heads}_{dims}"
        + (f"_ps{PAGE_SIZE}" if layer.append else ""),
        description=_description(layer, style),
        op_type="rope_quantize",
        tags=(
            *(f"model:{model}" for model in layer.models),
            f"fi_api:flashinfer.rope.{module.removeprefix('mla_')}"
            if layer.append
            else f"fi_api:flashinfer.rope.{module}",
            f"tp:{layer.tp}",
        ),
        axes=_axes(layer),
        inputs=_inputs(layer),
        outputs=_outputs(layer),
        constraints=_constraints(layer),
        reference=reference_text(
            "rope_quantize",
            "rope_quantize_fp8",
            (*("mla",) * mla, *("append",) * layer.append),
        ),
        captured_from=(
            "gqa_paged_prefill_causal_h32_kv8_d128_ps1"
            if layer.append
            else "gemm_n2048_k4096"
        ),
        captured_op_type="gqa_paged" if layer.append else "gemm",
        structure=workloads.appended_rows if layer.append else workloads.rows,
        fits=workloads.appended_fit if layer.append else workloads.rows_fit,
    )


def _description(layer: RotatedLayer, style: str) -> str:
    mla = not layer.num_kv_heads
    of = "latent attention" if mla else "queries and keys"
    text = f"Rotary embedding of {of}, scaled to 8 bits. {_STYLE[style]} {_SCALED}"
    if not layer.append:
        return text
    where = "Keys go to the caches of latents and of rotary parts."
    if not mla:
        where = (
            "Keys and values go to a cache of layout NHD; a key is its rotary part, then"
            " the part without position."
        )
    return f"{text} {where}{_WHERE}"


def _axes(layer: RotatedLayer) -> dict[str, Axis]:
    mla = not layer.num_kv_heads
    axes = {
        "num_tokens": Axis("Number of tokens."),
        "num_qo_heads": Axis("Query heads.", layer.num_qo_heads),
        "num_kv_heads": Axis("Key and value heads.", layer.num_kv_heads),
        "rope_dim": Axis("Dimensions that turn.", ROPE_DIM),
        "nope_dim": Axis("Dimensions without position.", layer.nope_dim),
        "max_seq_len": Axis("Positions of the cache of cosines and sines."),
    }
    if mla:
        del axes["num_kv_heads"]
    if layer.append:
        if not mla:
            whole = ROPE_DIM + layer.nope_dim
            axes["head_dim"] = Axis("Length of a head: both parts.", whole)
        axes |= {
            "page_size": Axis("Tokens a page holds.", PAGE_SIZE),
            "num_pages": Axis("Pages of the cache, used or not."),
            "len_indptr": Axis("Length of kv_indptr: one more than sequences."),
            "num_kv_indices": Axis("Pages of all sequences."),
        }
    return axes


def _key(layer: RotatedLayer, dim: str) -> tuple[str, ...]:
    return ("num_tokens", *(("num_kv_heads",) if layer.num_kv_heads else ()), dim)


def _caches(layer: RotatedLayer) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return the shape and the content of both paged caches."""
    pages = ("num_pages", "page_size")
    if not layer.num_kv_heads:
        return {
            "ckv_cache": ((*pages, "nope_dim"), "Latents, in pages."),
            "kpe_cache": ((*pages, "rope_dim"), "Rotary parts, in pages."),
        }
    shape = (*pages, "num_kv_heads", "head_dim")
    return {"k_cache": (shape, "Keys, in pages."), "v_cache": (shape, "Values.")}


def _inputs(layer: RotatedLayer) -> dict[str, Tensor]:
    query = ("num_tokens", "num_qo_heads")
    inputs = {
        "q_rope": Tensor((*query, "rope_dim"), "bfloat16", "Rotary part of queries."),
        "k_rope": Tensor(_key(layer, "rope_dim"), "bfloat16", "Rotary part of keys."),
        "q_nope": Tensor((*query, "nope_dim"), "bfloat16", "Other part of queries."),
        "k_nope": Tensor(_key(layer, "nope_dim"), "bfloat16", "Other part of keys."),
    }
    if layer.append and layer.num_kv_heads:
        inputs["v"] = Tensor(_key(layer, "head_dim"), "bfloat16", "Values.")
    inputs["cos_sin_cache"] = Tensor(
        ("max_seq_len", "rope_dim"),
        "float32",
        "rope_dim / 2 cosines of each position, then as many sines.",
    )
    inputs["pos_ids"] = Tensor(
        ("num_tokens",), "int32", "Each token's row of cos_sin_cache."
    )
    if layer.append:
        for name, (shape, what) in _caches(layer).items():
            inputs[name] = Tensor(shape, "float8_e4m3fn", what)
        inputs |= {
            "kv_indices": Tensor(
                ("num_kv_indices",),
                "int32",
                "Page numbers, in the order of the tokens.",
            ),
            "kv_indptr": Tensor(
                ("len_indptr",),
                "int32",
                "Sequence b's part of kv_indices: [b]:[b + 1].",
            ),
            "batch_indices": Tensor(("num_tokens",), "int32", "Each row's sequence."),
            "positions": Tensor(
                ("num_tokens",), "int32", "Each row's token in its sequence."
            ),
        }
    for side, what in (("q", "queries"), ("kv", "keys and values")):
        inputs[f"quant_scale_{side}"] = Tensor(
            None, "float32", f"Factor of {what} before rounding; positive."
        )
    return inputs


def _outputs(layer: RotatedLayer) -> dict[str, Tensor]:
    tensors = _inputs(layer)
    names = ["q_rope", "k_rope", "q_nope", "k_nope"]
    if layer.append:
        names = ["q_rope", "q_nope", *_caches(layer)]
    return {
        f"{name}_out": Tensor(tensors[name].shape, "float8_e4m3fn", "In 8 bits.")
        for name in names
    }


def _constraints(layer: RotatedLayer) -> tuple[str, ...]:
    positive = ("quant_scale_q > 0", "quant_scale_kv > 0")
    if not layer.append:
        return positive
    whole = ("head_dim == rope_dim + nope_dim",) if layer.num_kv_heads else ()
    return (
        *whole,
        "num_kv_indices == kv_indptr[-1].item()",
        "min(batch_indices.tolist()) >= 0",
        "max(batch_indices.tolist()) < len_indptr - 1",
        "min(positions.tolist()) >= 0",
        *positive,
    )
