"""Exchanges of models whose experts several GPUs share."""

from __future__ import annotations

import random
from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import DEEPSEEK, QWEN

DISPATCH, COMBINE = "moe_dispatch", "moe_combine"
# a decode's tokens on one rank
_MOST_TOKENS = 64


@dataclass(frozen=True)
class Exchange:
    """The ranks, experts and rows of some models."""

    ranks: int
    top_k: int
    experts: int
    hidden: int
    models: tuple[str, ...]


_DEEPSEEK = ("deepseek-v3", "deepseek-r1", "deepseek-v3.2")
EXCHANGES = (
    Exchange(8, 8, 256, 7168, _DEEPSEEK),
    Exchange(8, 8, 384, 7168, ("kimi-k2",)),
    Exchange(16, 8, 256, 7168, _DEEPSEEK),
    Exchange(8, 8, 128, 4096, ("qwen3-235b-a22b",)),
    Exchange(4, 8, 128, 2048, ("qwen3-30b-a3b",)),
    Exchange(8, 8, 160, 5120, ("glm-4.6",)),
    Exchange(8, 8, 256, 3072, ("minimax-m2",)),
    Exchange(8, 4, 128, 2880, ("gpt-oss-120b",)),
    Exchange(8, 10, 512, 4096, ("qwen3.5-397b-a17b",)),
)
_WHERE = (
    " One tensor holds what all ranks have; in serving each has its part. Token t of rank"
    " r has the number r * tokens_per_rank + t."
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family: rows that come back know no experts."""
    back: dict[tuple[int, int], tuple[str, ...]] = {}
    for one in EXCHANGES:
        key = (one.ranks, one.hidden)
        back[key] = (*back.get(key, ()), *one.models)
    return (
        *(dispatch_spec(one) for one in EXCHANGES),
        *(combine_spec(*sizes, models) for sizes, models in back.items()),
    )


def dispatch_spec(one: Exchange) -> Spec:
    """Return the definition that sends rows to their experts' ranks."""
    ranks, places = "world_size", ("world_size", "num_places")
    share = one.experts // one.ranks
    return Spec(
        name=f"{DISPATCH}_ep{one.ranks}_topk{one.top_k}_e{one.experts}_h{one.hidden}",
        description=(
            f"Tokens of {one.ranks} ranks sent to the ranks of their experts: expert e is"
            f" on rank e // {share}, and an id that is none of 0 to {one.experts - 1} is"
            f" nowhere. A rank gets a token once. Rows stand in the order of their numbers"
            f", which are in sources, and behind the last are zeros and -1.{_WHERE}"
        ),
        op_type="moe_exchange",
        tags=_tags(one.models, one.ranks),
        axes={
            **_axes(one.ranks, one.hidden),
            "top_k": Axis("Experts of a token.", one.top_k),
        },
        inputs={
            "hidden_states": Tensor(
                (ranks, "tokens_per_rank", "hidden_size"), "bfloat16", "Rows to send."
            ),
            "topk_ids": Tensor(
                (ranks, "tokens_per_rank", "top_k"), "int32", "Experts of each token."
            ),
        },
        outputs={
            "received": Tensor(
                (*places, "hidden_size"), "bfloat16", "The rows that each rank gets."
            ),
            "sources": Tensor(places, "int32", "Their numbers."),
            "counts": Tensor((ranks,), "int32", "Rows that each rank gets."),
        },
        constraints=_CONSTRAINTS,
        reference=reference_text("moe_exchange", DISPATCH, NUM_EXPERTS=one.experts),
        captured_from=DEEPSEEK,
        captured_op_type="gemm",
        structure=_tokens,
        fits=_fits,
    )


def combine_spec(ranks: int, hidden: int, models: tuple[str, ...]) -> Spec:
    """Return the definition that adds up what comes back."""
    places = ("world_size", "num_places")
    return Spec(
        name=f"{COMBINE}_ep{ranks}_h{hidden}",
        description=(
            f"What {ranks} ranks computed for tokens, sent back and added up in float32,"
            " rounded to bfloat16 once: sources has the number of the token of each row,"
            f" and rows of other numbers are nobody's.{_WHERE} A rank's row is the"
            " weighted sum of its experts."
        ),
        op_type="moe_exchange",
        tags=_tags(models, ranks),
        axes=_axes(ranks, hidden),
        inputs={
            "expert_rows": Tensor(
                (*places, "hidden_size"), "bfloat16", "Rows that each rank computed."
            ),
            "sources": Tensor(places, "int32", "Whose they are."),
        },
        outputs={
            "combined": Tensor(
                ("world_size", "tokens_per_rank", "hidden_size"),
                "bfloat16",
                "The sum of each token.",
            )
        },
        constraints=_CONSTRAINTS,
        reference=reference_text("moe_exchange", COMBINE),
        captured_from=QWEN,
        captured_op_type="gemm",
        structure=_tokens,
        fits=_fits,
    )


_CONSTRAINTS = ("num_places == world_size * tokens_per_rank",)


def _tags(models: tuple[str, ...], ranks: int) -> tuple[str, ...]:
    return (*(f"model:{model}" for model in models), f"ep:{ranks}")


def _axes(ranks: int, hidden: int) -> dict[str, Axis]:
    return {
        "world_size": Axis("Number of ranks.", ranks),
        "tokens_per_rank": Axis("Tokens of a rank."),
        "num_places": Axis("Tokens of all ranks, which one may get."),
        "hidden_size": Axis("Length of a row.", hidden),
    }


def _tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many tokens of each rank as the captured product had rows."""
    tokens = captured.axes["M"]
    places = spec.const("world_size") * tokens
    return Structure({"tokens_per_rank": tokens, "num_places": places})


def _fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a batch is of a decode's size."""
    return captured.axes["M"] <= _MOST_TOKENS
