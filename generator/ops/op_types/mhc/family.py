"""Manifold-constrained hyper-connections of DeepSeek V4, before and behind a layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.mhc import workloads
from generator.ops.reference_text import reference_text

# hidden size, model
MODELS = ((4096, "deepseek-v4-flash"), (7168, "deepseek-v4-pro"))
STREAMS = 4

RESIDUAL = ("num_tokens", "hc", "hidden_size")
ROWS = ("num_tokens", "hidden_size")
MIXES = ("num_tokens", "hc", "hc")


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        stage(STREAMS, hidden_size, model)
        for stage in (pre_spec, post_spec)
        for hidden_size, model in MODELS
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    stage = post_spec if name.startswith("mhc_post_") else pre_spec
    return stage(sizes["hc"], sizes["h"], model)


def pre_spec(streams: int, hidden_size: int, model: str) -> Spec:
    """Return the definition of what a layer reads of the streams."""
    mix = streams * (2 + streams)
    return _spec(
        f"mhc_pre_big_fuse_hc{streams}_h{hidden_size}_mix{mix}",
        description=(
            f"Hyper-connections before a layer. With m = dot_mix / sqrt(sqrsum /"
            f" ({streams} * hidden_size) + 1e-6), whose first {streams} numbers are for"
            f" what is read, {streams} for what is written, and {streams * streams} for"
            " the streams: pre = sigmoid(m * mhc_scale[0] + mhc_base) + 1e-6, post_mix ="
            " 2 * sigmoid(m * mhc_scale[1] + mhc_base), and comb_mix is softmax(m *"
            " mhc_scale[2] + mhc_base) + 1e-6 along rows, whose columns and rows are"
            " divided by their sum + 1e-6 in turns, 20 times columns and 19 times rows."
            " layer_input is the sum of pre * residual over the streams."
        ),
        model=model,
        api="mhc_pre_big_fuse",
        axes={
            **_axes(streams, hidden_size),
            "mhc_mix": Axis("Numbers of all mixes of a token.", mix),
            "scale_size": Axis("Scales: of pre, post and comb.", 3),
        },
        inputs={
            "dot_mix": Tensor(
                ("num_tokens", "mhc_mix"), "float32", "Mixes before normalisation."
            ),
            "sqrsum": Tensor(
                ("num_tokens",), "float32", "Squares of a token's streams, added up."
            ),
            "residual": Tensor(RESIDUAL, "bfloat16", "Streams of each token."),
            "mhc_scale": Tensor(("scale_size",), "float32", "Scales of the mixes."),
            "mhc_base": Tensor(("mhc_mix",), "float32", "Added to the mixes."),
        },
        outputs={
            "post_mix": Tensor(
                ("num_tokens", "hc"), "float32", "Share of the layer in each stream."
            ),
            "comb_mix": Tensor(
                MIXES, "float32", "Share of stream i, by rows, in stream j."
            ),
            "layer_input": Tensor(ROWS, "bfloat16", "What the layer reads."),
        },
        constraints=("mhc_mix == hc * (2 + hc)", "scale_size == 3"),
    )


def post_spec(streams: int, hidden_size: int, model: str) -> Spec:
    """Return the definition of what the streams are behind a layer."""
    return _spec(
        f"mhc_post_hc{streams}_h{hidden_size}",
        description=(
            "Hyper-connections behind a layer: stream j becomes x * post_layer_mix[j]"
            " plus the sum over i of residual[i] * comb_res_mix[i, j], in float32,"
            " rounded to bfloat16 at the end."
        ),
        model=model,
        api="mhc_post",
        axes=_axes(streams, hidden_size),
        inputs={
            "x": Tensor(ROWS, "bfloat16", "What the layer gave."),
            "residual": Tensor(RESIDUAL, "bfloat16", "Streams before the layer."),
            "post_layer_mix": Tensor(
                ("num_tokens", "hc"), "float32", "Share of the layer in each stream."
            ),
            "comb_res_mix": Tensor(
                MIXES, "float32", "Share of stream i, by rows, in stream j."
            ),
        },
        outputs={"out": Tensor(RESIDUAL, "bfloat16", "Streams behind the layer.")},
        constraints=(),
    )


def _axes(streams: int, hidden_size: int) -> dict[str, Axis]:
    return {
        "num_tokens": Axis("Number of tokens."),
        "hc": Axis("Streams of a token.", streams),
        "hidden_size": Axis("Length of a stream.", hidden_size),
    }


def _spec(
    name: str,
    *,
    description: str,
    model: str,
    api: str,
    axes: Mapping[str, Axis],
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    constraints: tuple[str, ...],
) -> Spec:
    return Spec(
        name=name,
        description=description,
        op_type="mhc",
        tags=(
            f"model:{model}",
            "fused",
            f"fi_api:flashinfer.mhc.{api}",
        ),
        axes=axes,
        inputs=inputs,
        outputs=outputs,
        constraints=constraints,
        reference=reference_text("mhc", api),
        captured_from="gemm_n2048_k4096",
        captured_op_type="gemm",
        structure=workloads.tokens,
    )
