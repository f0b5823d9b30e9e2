"""Steps of servers between the last product and sampling, for models' vocabularies."""

from __future__ import annotations

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.sampling.workloads import probabilities_fit
from generator.ops.reference_text import reference_text

VOCABULARIES = {
    128_256: ("llama-3.1-8b", "llama-3.1-70b", "llama-3.2-1b", "llama-3.2-3b"),
    129_280: ("deepseek-v3", "deepseek-r1", "deepseek-v3.2"),
    151_936: ("qwen3-8b", "qwen3-30b-a3b", "qwen3-next-80b-a3b"),
    201_088: ("gpt-oss-120b", "gpt-oss-20b"),
    262_208: ("gemma-3-27b",),
}
ROWS, EACH = ("batch_size", "vocab_size"), ("batch_size",)
LOGITS = Tensor(ROWS, "float32", "A row's logits.")
SCALING, PENALTIES, BIAS, MASK, TOP = (
    "scaling_penalties",
    "penalties_of_counts",
    "logit_bias",
    "token_bitmask",
    "top_logprobs",
)
_WHAT = {
    SCALING: (
        "Repetition penalty, as SGLang keeps it: a factor for each token of a row, 1 for"
        " tokens that did not occur. Logits below 0 are multiplied by it, others divided."
    ),
    PENALTIES: (
        "Repetition, frequency and presence penalties from how often each token occurs."
        " A token of the prompt or of the output has its logit multiplied by the row's"
        " repetition penalty where it is below 0, else divided by it. Then the count in"
        " the output times the frequency penalty is subtracted, and the presence penalty"
        " where that count is over 0."
    ),
    BIAS: "Logits plus a bias for each token of a row, as the logit_bias of requests.",
    MASK: (
        "Minus infinity for each token whose bit is 0: bit b of word w is of token"
        " 32 w + b, as grammar engines pack what may come next. Other logits stay."
    ),
    TOP: (
        "The {k} largest log-probabilities of each row in falling order, and their tokens."
        " Log-probabilities are logits less the row's log-sum-exp. Of tokens that tie any"
        " may come first."
    ),
}
# what a request may ask for: OpenAI's chat completions take 20 at most
TOP_KS = {20: tuple(VOCABULARIES), 5: (128_256, 151_936)}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return (
        *(
            logits_spec(kind, size)
            for kind in (SCALING, PENALTIES, BIAS, MASK)
            for size in VOCABULARIES
        ),
        *(
            logits_spec(TOP, size, count)
            for count, sizes in TOP_KS.items()
            for size in sizes
        ),
    )


def logits_spec(kind: str, size: int, count: int = 0) -> Spec:
    """Return the definition of one kind for one vocabulary."""
    axes = {
        "batch_size": Axis("Number of sequences."),
        "vocab_size": Axis("Tokens of the vocabulary.", size),
    }
    inputs = {"logits": LOGITS}
    outputs = {"output": Tensor(ROWS, "float32", "The logits to sample from.")}
    constraints: tuple[str, ...] = ()
    if kind == SCALING:
        inputs[SCALING] = Tensor(ROWS, "float32", "A factor over 0 for each token.")
    elif kind == BIAS:
        inputs[BIAS] = Tensor(ROWS, "float32", "What is added to each token.")
    elif kind == MASK:
        axes["num_words"] = Axis("Words of a row's bits.", -(-size // 32))
        words = ("batch_size", "num_words")
        inputs["bitmask"] = Tensor(words, "int32", "Bits of tokens that may come.")
        constraints = ("num_words == (vocab_size + 31) // 32",)
    elif kind == PENALTIES:
        what = {"prompt": "prompt", "output": "output so far"}
        inputs |= {
            f"{name}_counts": Tensor(ROWS, "int32", f"Occurrences in the {where}.")
            for name, where in what.items()
        }
        inputs |= {
            f"{name}_penalties": Tensor(EACH, "float32", f"Each row's, {neutral}.")
            for name, neutral in (
                ("repetition", "over 0, 1 without"),
                ("frequency", "0 without"),
                ("presence", "0 without"),
            )
        }
    else:
        axes["num_logprobs"] = Axis("Tokens that are asked for.", count)
        few = ("batch_size", "num_logprobs")
        outputs = {
            "logprobs": Tensor(few, "float32", "Log-probabilities, in falling order."),
            "tokens": Tensor(few, "int64", "The tokens that have them."),
        }
    return Spec(
        name=f"{kind}{f'_k{count}' if count else ''}_v{size}",
        description=_WHAT[kind].format(k=count),
        op_type="logits",
        tags=tuple(f"model:{model}" for model in VOCABULARIES[size]),
        axes=axes,
        inputs=inputs,
        outputs=outputs,
        constraints=constraints,
        reference=reference_text("logits", kind, **({"K": count} if count else {})),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        fits=probabilities_fit,
    )
