"""Routings of models whose experts SGLang's fused kernels compute."""

from __future__ import annotations

import random
from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import QWEN

_MOST_TOKENS = 4096


@dataclass(frozen=True)
class Alignment:
    """The constants of one definition."""

    experts: int
    top_k: int
    block: int
    models: tuple[str, ...]


# blocks of SGLang's tables: 16 for decoding, 64 and 128 for batches
ALIGNMENTS = (
    Alignment(8, 2, 16, ("mixtral-8x22b", "mixtral-8x7b")),
    Alignment(32, 4, 64, ("gpt-oss-20b",)),
    Alignment(128, 4, 16, ("gpt-oss-120b",)),
    Alignment(128, 8, 16, ("qwen3-30b-a3b", "qwen3-235b-a22b")),
    Alignment(128, 8, 64, ("qwen3-30b-a3b", "qwen3-235b-a22b")),
    Alignment(160, 8, 64, ("glm-4.6",)),
    Alignment(256, 8, 16, ("deepseek-v3", "deepseek-r1")),
    Alignment(256, 8, 64, ("deepseek-v3", "deepseek-r1", "minimax-m2")),
    Alignment(256, 8, 128, ("deepseek-v3", "deepseek-r1")),
    Alignment(384, 8, 64, ("kimi-k2",)),
    Alignment(512, 10, 16, ("qwen3-next-80b-a3b",)),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(align_spec(alignment) for alignment in ALIGNMENTS)


def align_spec(alignment: Alignment) -> Spec:
    """Return the definition for one set of constants."""
    experts, top_k, block = alignment.experts, alignment.top_k, alignment.block
    padding = (experts + 1) * (block - 1)

    def batch(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
        places = captured.axes["M"] * top_k + padding
        axes = {"num_tokens": captured.axes["M"], "num_places": places}
        return Structure({**axes, "num_blocks": -(-places // block)})

    return Spec(
        name=f"moe_align_block_size_e{experts}_k{top_k}_bs{block}",
        description=(
            "Puts pairs of token and expert in order by expert, so that each block of"
            f" {block} places is of one expert. Pair p is of token p // {top_k}. First"
            f" come blocks of the pairs whose id is none of 0 to {experts - 1}: experts"
            " of other devices. Places without a pair hold the number of pairs, and"
            " blocks behind the last one, as those first ones, the expert -1. The order"
            " within an expert is free."
        ),
        op_type="moe_align",
        tags=tuple(f"model:{model}" for model in alignment.models),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "topk": Axis("Experts of a token.", top_k),
            "num_places": Axis("Places for the most padding there may be."),
            "num_blocks": Axis("Blocks that these fill."),
            "one": Axis("Length of a tensor of one number.", 1),
        },
        inputs={"topk_ids": Tensor(("num_tokens", "topk"), "int32", "Experts.")},
        outputs={
            "sorted_token_ids": Tensor(("num_places",), "int32", "The pairs' order."),
            "expert_ids": Tensor(("num_blocks",), "int32", "Each block's expert."),
            "num_tokens_post_pad": Tensor(("one",), "int32", "Places up to the last."),
        },
        constraints=(
            "one == 1",
            f"num_places == num_tokens * topk + {padding}",
            f"num_blocks == (num_places + {block - 1}) // {block}",
        ),
        reference=reference_text(
            "moe_align", "moe_align_block_size", NUM_EXPERTS=experts, BLOCK_SIZE=block
        ),
        captured_from=QWEN,
        captured_op_type="gemm",
        structure=batch,
        fits=batch_fits,
    )


def batch_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a batch is one that SGLang's fused experts take at once."""
    return captured.axes["M"] <= _MOST_TOKENS
