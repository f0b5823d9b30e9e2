"""The experts of models, the routing left out: numbers and weights of experts are given."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
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
# the most that definitions of float8 and of shared experts have, of which there are many
_FEW_TOKENS = 32
BF16, SCALED, MXFP4 = "moe_bf16", "moe_bf16_scaled_input", "moe_mxfp4"
FP8 = "moe_fp8_block"
F8_BLOCK, _E4M3 = 128, "float8_e4m3fn"
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
    FP8: (
        "Weighted sum of the experts of each token, each down(silu(gate(x)) * up(x)), "
        "with float8 weights, of which each block of 128 x 128 has a scale; the rows of "
        "w13 are gate, then up. In float32: kernels round what goes into both products "
        "to float8, in blocks of 128 of a row."
    ),
    MXFP4: (
        "Weighted sum of the experts of each token with mxfp4 weights and biases. Rows "
        "of gate and up take turns in w13; gate is at most 7 and up in -7 to 7; an "
        "expert gives down(gate * sigmoid(1.702 * gate) * (up + 1)), its bias included "
        "in what the router's weight multiplies."
    ),
}

# kind → the text of its reference, and the words of the variant
_TEXTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    BF16: ("moe_experts", ()),
    SCALED: ("moe_experts", ("scaled_input",)),
    FP8: ("moe_experts", ("fp8",)),
    MXFP4: ("moe_mxfp4", ()),
}


@dataclass(frozen=True)
class Mixture:
    """The constants of one definition; `ep` devices share the experts, `tp` a layer.

    Where `chunk` is not 0 it has a workload of as many tokens. `shared` experts of each token are
    the last ones, beside the `top_k` of the other `experts`.
    """

    kind: str
    model: str
    top_k: int
    experts: int
    hidden: int
    intermediate: int
    ep: int = 1
    tp: int = 1
    chunk: int = 0
    shared: int = 0
    others: tuple[str, ...] = ()


_DEEPSEEK = ("deepseek-r1", "deepseek-v3.2")
# experts and weights of 8,192 tokens are 64 KiB for each expert of a token: few
# definitions have a chunk
MIXTURES = (
    Mixture(BF16, "qwen3-30b-a3b", 8, 16, 2048, 768, 8),
    Mixture(BF16, "qwen3-30b-a3b", 8, 128, 2048, 768, chunk=1000),
    Mixture(BF16, "qwen3-235b-a22b", 8, 128, 4096, 1536),
    Mixture(BF16, "qwen3-235b-a22b", 8, 128, 4096, 192, tp=8),
    Mixture(BF16, "qwen3-235b-a22b", 8, 128, 4096, 384, tp=4),
    Mixture(BF16, "mixtral-8x7b", 2, 8, 4096, 14336),
    Mixture(BF16, "qwen3-next-80b-a3b", 10, 512, 2048, 512),
    Mixture(BF16, "mixtral-8x22b", 2, 8, 6144, 16384),
    Mixture(BF16, "glm-4.6", 8, 160, 5120, 1536),
    Mixture(BF16, "glm-4.6", 8, 160, 5120, 192, tp=8, shared=1),
    Mixture(BF16, "glm-4.6", 8, 160, 5120, 384, tp=4, shared=1),
    Mixture(BF16, "glm-4.5-air", 8, 128, 4096, 352, tp=4, shared=1),
    Mixture(FP8, "deepseek-v3", 8, 256, 7168, 256, tp=8, others=_DEEPSEEK),
    Mixture(FP8, "deepseek-v3", 8, 32, 7168, 2048, 8, others=_DEEPSEEK),
    Mixture(FP8, "deepseek-v3", 8, 8, 7168, 2048, 32, others=_DEEPSEEK),
    Mixture(FP8, "deepseek-v3", 8, 256, 7168, 256, tp=8, shared=1, others=_DEEPSEEK),
    Mixture(FP8, "deepseek-v3", 8, 256, 7168, 128, tp=16, shared=1, others=_DEEPSEEK),
    Mixture(FP8, "kimi-k2", 8, 384, 7168, 256, tp=8),
    Mixture(FP8, "kimi-k2", 8, 48, 7168, 2048, 8),
    Mixture(FP8, "qwen3-235b-a22b", 8, 128, 4096, 384, tp=4),
    Mixture(FP8, "qwen3-235b-a22b", 8, 16, 4096, 1536, 8),
    Mixture(FP8, "qwen3-30b-a3b", 8, 128, 2048, 768),
    Mixture(FP8, "qwen3-30b-a3b", 8, 128, 2048, 384, tp=2),
    Mixture(FP8, "minimax-m2", 8, 256, 3072, 384, tp=4),
    Mixture(FP8, "minimax-m2", 8, 32, 3072, 1536, 8),
    Mixture(FP8, "qwen3-next-80b-a3b", 10, 512, 2048, 512),
    Mixture(FP8, "qwen3-next-80b-a3b", 10, 512, 2048, 128, tp=4),
    Mixture(FP8, "glm-5", 8, 256, 6144, 256, tp=8),
    Mixture(FP8, "glm-5", 8, 32, 6144, 2048, 8),
    Mixture(FP8, "qwen3.5-397b-a17b", 10, 512, 4096, 128, tp=8),
    Mixture(FP8, "qwen3.5-397b-a17b", 10, 64, 4096, 1024, 8),
    Mixture(SCALED, "llama-4-scout", 1, 16, 5120, 1024, tp=8, chunk=CHUNK),
    Mixture(SCALED, "llama-4-scout", 1, 16, 5120, 8192),
    Mixture(MXFP4, "gpt-oss-20b", 4, 4, 2880, 2880, 8),
    Mixture(MXFP4, "gpt-oss-20b", 4, 32, 2880, 2880),
    Mixture(MXFP4, "gpt-oss-120b", 4, 128, 2880, 2880, chunk=CHUNK),
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
    top_k, experts = row.top_k + row.shared, row.experts + row.shared
    word = "_shared" if row.shared else ""
    fused = _SHARED if row.shared else ""
    return Spec(
        name=(
            f"{row.kind}{word}_topk{top_k}_e{experts}_h{row.hidden}_i{row.intermediate}"
        ),
        description=f"{_KINDS[row.kind]}{fused} An expert of -1 is on another device.",
        op_type="moe_experts",
        tags=(
            *(f"model:{model}" for model in (row.model, *row.others)),
            *(f"quantization:{word}" for word in _FORMATS.get(row.kind, ())),
            f"ep:{row.ep}",
            *((f"tp:{row.tp}",) if row.tp > 1 else ()),
        ),
        axes=_axes(row),
        inputs=_inputs(row),
        outputs={
            "output": Tensor(("seq_len", "hidden_size"), "bfloat16", "One row a token.")
        },
        constraints=_CONSTRAINTS.get(row.kind, _CONSTRAINTS[BF16]),
        reference=reference_text("moe_experts", *_TEXTS[row.kind]),
        captured_from=CAPTURED,
        captured_op_type="moe",
        structure=_structure,
        fits=_fits,
        traffic=_traffic(row),
    )


# of bfloat16 weights, of mxfp4's, which have no axis of one intermediate length
_CONSTRAINTS = {
    BF16: ("gemm1_out_size == 2 * intermediate_size",),
    FP8: (
        "gemm1_out_size == 2 * intermediate_size",
        "num_hidden_blocks == hidden_size // 128",
        "num_intermediate_blocks == intermediate_size // 128",
        "num_gemm1_out_blocks == gemm1_out_size // 128",
    ),
    MXFP4: (
        "hidden_packed == hidden_size // 2",
        "intermediate_packed == gemm1_out_size // 4",
        "num_hidden_blocks == hidden_size // 32",
        "num_intermediate_blocks == gemm1_out_size // 64",
    ),
}
# DeepSeek-V3 and GLM 4.6 have 2.5 as the factor of all experts, by which this is 1
_SHARED_WEIGHT = 0.4
_FORMATS = {FP8: (_E4M3,), MXFP4: ("mxfp4",)}
_SHARED = (
    " The last expert is the shared one, which serving chooses for every token with a"
    " constant weight."
)


def _axes(row: Mixture) -> dict[str, Axis]:
    counts = {
        "top_k": Axis("Experts of a token.", row.top_k),
        "num_experts": Axis("Experts whose weights are here.", row.experts),
    }
    if row.shared:
        counts = {
            "top_k_and_shared": Axis(
                "Experts of a token, the shared one last.", row.top_k + row.shared
            ),
            "num_all_experts": Axis(
                "Experts whose weights are here, the shared one last.",
                row.experts + row.shared,
            ),
        }
    axes = {
        "seq_len": Axis("Number of tokens."),
        **counts,
        "hidden_size": Axis("Length of a token.", row.hidden),
        "gemm1_out_size": Axis("Gate and up together.", 2 * row.intermediate),
    }
    if row.kind != MXFP4:
        what = "Length between the products."
        axes["intermediate_size"] = Axis(what, row.intermediate)
    if row.kind == FP8:
        for name, length in (
            ("hidden", row.hidden),
            ("intermediate", row.intermediate),
            ("gemm1_out", 2 * row.intermediate),
        ):
            axes[f"num_{name}_blocks"] = Axis(
                f"Blocks of {F8_BLOCK}.", length // F8_BLOCK
            )
    if row.kind == MXFP4:
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
    experts, top_k = "num_experts", "top_k"
    if row.shared:
        experts, top_k = "num_all_experts", "top_k_and_shared"
    inputs = {
        "hidden_states": Tensor(
            ("seq_len", "hidden_size"), "bfloat16", "One row a token."
        ),
        "topk_ids": Tensor(
            ("seq_len", top_k), "int32", "Experts of each token, -1: elsewhere."
        ),
        "topk_weights": Tensor(("seq_len", top_k), "float32", "Their weights."),
    }
    products = {
        "w13": ("gemm1_out_size", "hidden", "Gate and up of each expert."),
        "w2": ("hidden_size", "intermediate", "Down of each expert."),
    }
    for name, (rows, columns, what) in products.items():
        if row.kind != MXFP4:
            shape = (experts, rows, f"{columns}_size")
            dtype = _E4M3 if row.kind == FP8 else "bfloat16"
            inputs[name] = Tensor(shape, dtype, what)
            if row.kind == FP8:
                parts = (rows.removesuffix("_size"), columns)
                blocks = (f"num_{part}_blocks" for part in parts)
                inputs[f"{name}_scale"] = Tensor(
                    (experts, *blocks), "float32", "Factor of each block."
                )
            continue
        shape = ("num_experts", rows, f"{columns}_packed")
        inputs[name] = Tensor(shape, "int8", f"{what} The bits of two e2m1 codes.")
        inputs[f"{name}_scale"] = Tensor(
            ("num_experts", rows, f"num_{columns}_blocks"),
            "int8",
            "Bits of the exponent plus 127 of the power of two of each block.",
        )
        inputs[f"{name}_bias"] = Tensor(
            ("num_experts", rows), "bfloat16", "Added to the product."
        )
    return inputs


def _structure(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return experts of as many tokens as were captured, those elsewhere as -1.

    A shared expert is every token's last one.
    """
    tokens, is_shared = captured.axes["seq_len"], "num_all_experts" in spec.axes
    top_k, here = _sizes(spec)
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
        if is_shared:
            ids.append(here)
            weights.append(_SHARED_WEIGHT)
    return Structure(captured.axes, {"topk_ids": ids, "topk_weights": weights})


def _sizes(spec: Spec) -> tuple[int, int]:
    """Return a token's experts and those here, without a shared one."""
    if "num_all_experts" in spec.axes:
        return spec.const("top_k_and_shared") - 1, spec.const("num_all_experts") - 1
    return spec.const("top_k"), spec.const("num_experts")


def _skewed(top_k: int, popular: Sequence[int], rng: random.Random) -> list[int]:
    """Return a token's experts: the r-th most popular one is chosen as 1 / r."""
    # of exponential waiting times the shortest come first, each in proportion to its rate
    waits = [(rng.expovariate(1.0 / rank), e) for rank, e in enumerate(popular, 1)]
    return [expert for _, expert in sorted(waits)[:top_k]]


def _traffic(row: Mixture) -> Callable[[Spec], Iterator[Step]]:
    """Return what yields a batch of decodes, and a chunk of prefill where it has one.

    Of many definitions in float8 and with shared experts there is no batch.
    """
    sizes: tuple[int, ...] = (_DECODES, row.chunk) if row.chunk else (_DECODES,)
    if row.kind == FP8 or row.shared:
        sizes = ()
    return lambda spec: batches("seq_len", *sizes)


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the experts of the tokens and their weights fit in a blob."""
    if isinstance(captured, Step):
        return True
    tokens = captured.axes["seq_len"]
    if spec.inputs["w13"].dtype == _E4M3 or "num_all_experts" in spec.axes:
        return tokens <= _FEW_TOKENS
    return fits_a_blob(8 * tokens * spec.const("top_k"))
