"""Embedding: of a whole vocabulary and of a shard, plain and Gemma's, which is scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.embedding.workloads import tokens, tokens_fit
from generator.ops.reference_text import reference_text

# captured gemms whose rows are a batch's tokens
DEEPSEEK = "gemm_n256_k7168"
LLAMA = "gemm_n28672_k4096"
QWEN = "gemm_n2048_k4096"


@dataclass(frozen=True)
class VocabularyTable:
    """The constants of one definition, and the models that have them.

    Of a vocabulary that `tp` GPUs share, `vocab_size` is the part of one; without `tp`
    one GPU has all of it.
    """

    vocab_size: int
    hidden_size: int
    models: tuple[str, ...]
    tp: int = 0
    scaled: bool = False


TABLES = (
    VocabularyTable(8080, 7168, ("deepseek-v3", "deepseek-r1"), tp=16),
    VocabularyTable(16032, 4096, ("llama-3.1-8b",), tp=8),
    VocabularyTable(16384, 4096, ("nemotron-h-8b",), tp=8),
    VocabularyTable(16388, 5376, ("gemma-3-27b",), tp=16, scaled=True),
    VocabularyTable(18992, 2048, ("qwen3-30b-a3b", "qwen3-next-80b-a3b"), tp=8),
    VocabularyTable(25136, 2880, ("gpt-oss-120b", "gpt-oss-20b"), tp=8),
    VocabularyTable(16032, 2048, ("llama-3.2-1b",), tp=8),
    VocabularyTable(16032, 8192, ("llama-3.1-70b", "llama-3.3-70b"), tp=8),
    VocabularyTable(18992, 4096, ("qwen3-235b-a22b", "qwen3-vl-235b-a22b"), tp=8),
    VocabularyTable(32064, 8192, ("llama-3.1-70b", "llama-3.3-70b"), tp=4),
    VocabularyTable(37984, 4096, ("qwen3-235b-a22b", "qwen3-vl-235b-a22b"), tp=4),
    VocabularyTable(32000, 4096, ("mistral-7b-v0.1",)),
    VocabularyTable(32768, 6144, ("mixtral-8x22b",)),
    VocabularyTable(100352, 4096, ("granite-4.1-8b",)),
    VocabularyTable(128256, 2048, ("llama-3.2-1b",)),
    VocabularyTable(128256, 3072, ("llama-3.2-3b",)),
    VocabularyTable(128256, 4096, ("llama-3.1-8b",)),
    VocabularyTable(129280, 7168, ("deepseek-v3", "deepseek-r1", "deepseek-v3.2")),
    VocabularyTable(151936, 2048, ("qwen3-30b-a3b", "qwen3-next-80b-a3b")),
    VocabularyTable(151936, 4096, ("qwen3-8b", "qwen3-235b-a22b")),
    VocabularyTable(151936, 5120, ("qwen3-14b", "qwen3-32b")),
    VocabularyTable(152064, 3584, ("qwen2.5-7b",)),
    VocabularyTable(201088, 2880, ("gpt-oss-120b", "gpt-oss-20b")),
    VocabularyTable(256000, 3584, ("gemma-2-9b",), scaled=True),
    VocabularyTable(262208, 5376, ("gemma-3-27b",), scaled=True),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(embedding_spec(table) for table in TABLES)


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model; `sharded` is no constant of an op."""
    scaled = name.startswith("gemma_")
    tp = 2 if constants.get("sharded") else 0
    return embedding_spec(VocabularyTable(sizes["v"], sizes["h"], (model,), tp, scaled))


def embedding_spec(table: VocabularyTable) -> Spec:
    """Return the definition for one set of constants."""
    kind = "gemma_embedding" if table.scaled else "embedding"
    scale = (
        " Rows are multiplied by the root of hidden_size, rounded to bfloat16 first."
        if table.scaled
        else ""
    )
    rows = ("num_tokens", "hidden_size")
    sharded = table.tp > 0
    return Spec(
        name=f"{kind}_v{table.vocab_size}_h{table.hidden_size}",
        description=(_SHARDED if sharded else _WHOLE) + scale,
        op_type="embedding",
        tags=(
            *(f"model:{model}" for model in table.models),
            *([f"tp:{table.tp}"] * sharded),
        ),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "vocab_size": Axis("Rows of the table.", table.vocab_size),
            "hidden_size": Axis("Length of a row.", table.hidden_size),
        },
        inputs={
            "input_ids": Tensor(
                ("num_tokens",), "int64", "Tokens of the whole vocabulary."
            ),
            "weight": Tensor(
                ("vocab_size", "hidden_size"), "bfloat16", "A row for each token."
            ),
            **(_START if sharded else {}),
        },
        outputs={
            "output": Tensor(
                rows, "bfloat16", f"Each token's row{', or zeros' * sharded}."
            )
        },
        reference=reference_text("embedding", kind if sharded else f"whole_{kind}"),
        captured_from=_captured_from(table.models[0]),
        captured_op_type="gemm",
        structure=tokens,
        fits=tokens_fit,
    )


def _captured_from(model: str) -> str:
    makers = {"qwen": QWEN, "gpt-oss": QWEN, "deepseek": DEEPSEEK}
    return next((c for maker, c in makers.items() if model.startswith(maker)), LLAMA)


_SHARDED = (
    "Embedding: each token's row of the table. The table is one GPU's part of"
    " the vocabulary, tokens vocab_start to vocab_start + vocab_size - 1; a"
    " token of another part gives zeros, so that the parts add up."
)
_WHOLE = "Embedding: each token's row of the table, which has all of the vocabulary."
_START = {
    "vocab_start": Tensor(None, "int64", "The token of the table's first row."),
}
