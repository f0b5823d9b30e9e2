"""The experts of models, the routing left out: numbers and weights of experts are given."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, distinct, fits_a_blob
from generator.ops.workloads.traffic import CHUNK, Step, batches

CAPTURED = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"
MX_BLOCK = 32
_DECODES = 128
BF16, SCALED, MXFP4 = "moe_bf16", "moe_bf16_scaled_input", "moe_mxfp4"
_KINDS = {
    BF16: (
        "Weighted sum of the experts of each token, each down(silu(gate(x)) * up(x)), "
        "with bfloat16 weights; the rows of w13 are gate, then up."
    ),
    SCALED: (
        "Sum of the experts of each token, each down(silu(gate(w * x)) * up(w * x)), "
        "with bfloat16 weights: in Llama 4 the router's weight w scales what goes into "
        "an expert. The rows of w13 are gate, then up."
    ),
    MXFP4: (
        "Weighted sum of the experts of each token with mxfp4 weights and biases. Rows "
        "of gate and up take turns in w13; gate is at most 7 and up in -7 to 7; an "
        "expert gives down(gate * sigmoid(1.702 * gate) * (up + 1)), its bias included "
        "in what the router's weight multiplies."
    ),
}


@dataclass(frozen=True)
class Mixture:
    """The constants of one definition; `ep` devices share the experts, `tp` a layer.

    With `chunked` it has a workload of 8,192 tokens.
    """

    kind: str
    model: str
    top_k: int
    experts: int
    hidden: int
    intermediate: int
    ep: int = 1
    tp: int = 1
    chunked: bool = False


# experts and weights of 8,192 tokens are 64 KiB for each expert of a token: one definition
# of each kind has them
MIXTURES = (
    Mixture(BF16, "qwen3-30b-a3b", 8, 16, 2048, 768, 8),
    Mixture(BF16, "qwen3-30b-a3b", 8, 128, 2048, 768, chunked=True),
    Mixture(BF16, "qwen3-235b-a22b", 8, 128, 4096, 1536),
    Mixture(BF16, "qwen3-235b-a22b", 8, 128, 4096, 192, tp=8),
    Mixture(BF16, "mixtral-8x7b", 2, 8, 4096, 14336),
    Mixture(BF16, "qwen3-next-80b-a3b", 10, 512, 2048, 512),
    Mixture(BF16, "mixtral-8x22b", 2, 8, 6144, 16384),
    Mixture(BF16, "glm-4.6", 8, 160, 5120, 1536),
    Mixture(SCALED, "llama-4-scout", 1, 16, 5120, 1024, tp=8, chunked=True),
    Mixture(SCALED, "llama-4-scout", 1, 16, 5120, 8192),
    Mixture(MXFP4, "gpt-oss-20b", 4, 4, 2880, 2880, 8),
    Mixture(MXFP4, "gpt-oss-20b", 4, 32, 2880, 2880),
    Mixture(MXFP4, "gpt-oss-120b", 4, 128, 2880, 2880, chunked=True),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(mixture_spec(mixture) for mixture in MIXTURES)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kind = name.partition("_topk")[0]
    if kind not in _KINDS:
        return None
    top_k, experts, hidden, intermediate = (
        sizes[token] for token in ("topk", "e", "h", "i")
    )
    return mixture_spec(Mixture(kind, model, top_k, experts, hidden, intermediate))


def mixture_spec(row: Mixture) -> Spec:
    """Return the definition for one set of constants."""
    return Spec(
        name=(
            f"{row.kind}_topk{row.top_k}_e{row.experts}_h{row.hidden}"
            f"_i{row.intermediate}"
        ),
        description=f"{_KINDS[row.kind]} An expert of -1 is on another device.",
        op_type="moe_experts",
        tags=(
            f"model:{row.model}",
            *(("quantization:mxfp4",) if row.kind == MXFP4 else ()),
            f"ep:{row.ep}",
            *((f"tp:{row.tp}",) if row.tp > 1 else ()),
        ),
        axes=_axes(row),
        inputs=_inputs(row),
        outputs={
            "output": Tensor(("seq_len", "hidden_size"), "bfloat16", "One row a token.")
        },
        constraints=_CONSTRAINTS[row.kind == MXFP4],
        reference=reference_text("moe_experts", row.kind),
        captured_from=CAPTURED,
        captured_op_type="moe",
        structure=_structure,
        fits=_fits,
        traffic=_served_in_chunks if row.chunked else _served,
    )


# of bfloat16 weights, of mxfp4's, which have no axis of one intermediate length
_CONSTRAINTS = (
    ("gemm1_out_size == 2 * intermediate_size",),
    (
        "hidden_packed == hidden_size // 2",
        "intermediate_packed == gemm1_out_size // 4",
        "num_hidden_blocks == hidden_size // 32",
        "num_intermediate_blocks == gemm1_out_size // 64",
    ),
)


def _axes(row: Mixture) -> dict[str, Axis]:
    axes = {
        "seq_len": Axis("Number of tokens."),
        "top_k": Axis("Experts of a token.", row.top_k),
        "num_experts": Axis("Experts whose weights are here.", row.experts),
        "hidden_size": Axis("Length of a token.", row.hidden),
        "gemm1_out_size": Axis("Gate and up together.", 2 * row.intermediate),
    }
    if row.kind != MXFP4:
        what = "Length between the products."
        axes["intermediate_size"] = Axis(what, row.intermediate)
    else:
        for name, length in (
            ("hidden", row.hidden),
            ("intermediate", row.intermediate),
        ):
            axes[f"{name}_packed"] = Axis("Bytes of a row.", length // 2)
            axes[f"num_{name}_blocks"] = Axis(
                f"Blocks of {MX_BLOCK} of a row.", length // MX_BLOCK
            )
    return axes


def _inputs(row: Mixture) -> dict[str, Tensor]:
    made = {
        "hidden_states": Tensor(
            ("seq_len", "hidden_size"), "bfloat16", "One row a token."
        ),
        "topk_ids": Tensor(
            ("seq_len", "top_k"), "int32", "Experts of each token, -1: elsewhere."
        ),
        "topk_weights": Tensor(("seq_len", "top_k"), "float32", "Their weights."),
    }
    products = {
        "w13": ("gemm1_out_size", "hidden", "Gate and up of each expert."),
        "w2": ("hidden_size", "intermediate", "Down of each expert."),
    }
    for name, (rows, columns, what) in products.items():
        if row.kind != MXFP4:
            shape = ("num_experts", rows, f"{columns}_size")
            made[name] = Tensor(shape, "bfloat16", what)
            continue
        shape = ("num_experts", rows, f"{columns}_packed")
        made[name] = Tensor(shape, "int8", f"{what} The bits of two e2m1 codes.")
        made[f"{name}_scale"] = Tensor(
            ("num_experts", rows, f"num_{columns}_blocks"),
            "int8",
            "Bits of the exponent plus 127 of the power of two of each block.",
        )
        made[f"{name}_bias"] = Tensor(
            ("num_experts", rows), "bfloat16", "Added to the product."
        )
    return made


def _structure(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return experts of as many tokens as were captured, those elsewhere as -1."""
    tokens, top_k = captured.axes["seq_len"], spec.const("top_k")
    here = spec.const("num_experts")
    ep = next((int(tag[3:]) for tag in spec.tags if tag.startswith("ep:")), 1)
    ids: list[int] = []
    weights: list[float] = []
    skewed = isinstance(captured, Step)
    popular = distinct(here * ep, here * ep, rng) if skewed else []
    for _ in range(tokens):
        chosen = (
            _skewed(top_k, popular, rng) if skewed else distinct(top_k, here * ep, rng)
        )
        ids += [expert if expert < here else -1 for expert in chosen]
        shares = [rng.uniform(1.0, 3.0) for _ in chosen]
        # a single weight is a sigmoid's value
        total = sum(shares) if top_k > 1 else 4.0
        weights += [share / total for share in shares]
    return Structure(captured.axes, {"topk_ids": ids, "topk_weights": weights})


def _skewed(top_k: int, popular: Sequence[int], rng: random.Random) -> list[int]:
    """Return a token's experts: the r-th most popular one is chosen as 1 / r."""
    # of exponential waiting times the shortest come first, each in proportion to its rate
    waits = [(rng.expovariate(1.0 / rank), e) for rank, e in enumerate(popular, 1)]
    return [expert for _, expert in sorted(waits)[:top_k]]


def _served(spec: Spec) -> Iterator[Step]:
    """Yield a batch of decodes, whose loads are skewed."""
    yield from batches("seq_len", _DECODES)


def _served_in_chunks(spec: Spec) -> Iterator[Step]:
    """Yield a batch of decodes and a chunk of prefill, whose loads are skewed."""
    yield from batches("seq_len", _DECODES, CHUNK)


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the experts of the tokens and their weights fit in a blob."""
    if isinstance(captured, Step):
        return True
    return fits_a_blob(8 * captured.axes["seq_len"] * spec.const("top_k"))
