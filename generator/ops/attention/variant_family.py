"""The geometries of attention's variants, and their words.

Each names the models that run it. A model's `sliding_window` counts the query's own
key: window_left is one less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from generator.ops.family import Tensor


@dataclass(frozen=True)
class Geometry:
    """The constants of one attention layer of some models.

    `scale_of` is the length whose inverse root is the models' sm_scale, head_dim where
    it is 0. `special` is a word of _SPECIAL. `stages` says which interfaces are wanted.
    Heads are those of one of `tp` devices.
    """

    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    models: tuple[str, ...]
    window_left: int = -1
    soft_cap: int = 0
    sinks: bool = False
    causal: bool = True
    special: str = ""
    scale_of: int = 0
    stages: tuple[str, ...] = ("decode", "prefill", "ragged")
    tp: int = 1

    @property
    def variants(self) -> tuple[str, ...]:
        """Return the words of the reference's text: `references/*.py.jinja`."""
        if not self.causal:
            return ("noncausal",)
        names = ["sink"] * self.sinks + ["cap"] * bool(self.soft_cap)
        names += ["window"] * (self.window_left >= 0)
        # float16 is computed as bfloat16 is
        if self.special == "qe4m3_kve4m3":
            names += ["qe4m3", "kve4m3"]
        elif self.special not in ("", "fp16"):
            names.append(self.special)
        return tuple(names)

    def words(self, stage: str) -> str:
        """Return what stands before the heads in a definition's name, but its stage."""
        words = [] if stage == "decode" else ["causal" if self.causal else "noncausal"]
        if self.special == "custom_mask":
            words = []
        words += [self.special] * bool(self.special)
        words += ["sink"] * self.sinks + [f"cap{self.soft_cap}"] * bool(self.soft_cap)
        words += [f"w{self.window_left}"] * (self.window_left >= 0)
        return "".join(f"_{word}" for word in words)

    @property
    def dtype(self) -> str:
        """Return the dtype of the output."""
        return "float16" if self.special == "fp16" else "bfloat16"

    @property
    def query_dtype(self) -> str:
        """Return the dtype of queries."""
        return "float8_e4m3fn" if "qe4m3" in self.special.split("_") else self.dtype

    @property
    def cache_dtype(self) -> str:
        """Return the dtype of keys and values in pages."""
        return "float8_e4m3fn" if "kve4m3" in self.special else self.dtype

    @property
    def added_inputs(self) -> dict[str, Tensor]:
        """Return the inputs that plain attention lacks."""
        tensors = {"sinks": SINKS} if self.sinks else {}
        if self.special == "kve4m3":
            tensors |= SCALES
        if self.special == "qe4m3_kve4m3":
            tensors |= SCALES_OF_HEADS
        return tensors | (
            {"custom_mask": MASK} if self.special == "custom_mask" else {}
        )

    @property
    def heads(self) -> str:
        """Return the part of a definition's name that states the heads."""
        return f"h{self.num_qo_heads}_kv{self.num_kv_heads}_d{self.head_dim}"

    @property
    def sm_scale(self) -> float:
        """Return the factor of the logits in the models."""
        return 1 / math.sqrt(self.scale_of or self.head_dim)

    @property
    def constants(self) -> dict[str, float]:
        """Return the top-level constants of the reference."""
        stated: dict[str, float] = {}
        if self.window_left >= 0:
            stated["WINDOW_LEFT"] = self.window_left
        if self.soft_cap:
            stated["LOGITS_SOFT_CAP"] = float(self.soft_cap)
        return stated

    def describe(self, stage: str) -> str:
        """Return the sentences on what a query sees and what becomes of its logits."""
        sentences = []
        if self.special == "custom_mask":
            sentences.append(_SPECIAL[self.special])
        elif stage == "decode":
            sentences.append("The query stands at its sequence's last key.")
        elif self.causal:
            sentences.append(
                "The mask is causal and aligned bottom-right: query i of q_len stands "
                "at key kv_len - q_len + i."
            )
        else:
            sentences.append("There is no mask: every query sees all keys.")
        if self.window_left >= 0:
            sentences.append(
                f"A query at key p sees keys p - {self.window_left} ... p, a sliding "
                f"window of {self.window_left + 1}."
            )
        if self.soft_cap:
            sentences.append(
                f"A scaled logit l becomes {self.soft_cap} * tanh(l / {self.soft_cap}), "
                "before mask and softmax."
            )
        if self.special not in ("", "custom_mask"):
            sentences.append(_SPECIAL[self.special])
        if self.sinks:
            sentences.append(
                "A head's sink is one more logit, natural and unscaled, whose value is "
                "zero: it adds to the sum of exponentials, and to lse. A query that sees "
                "no key gives output 0 and the lse of its sink."
            )
        else:
            sentences.append("A query that sees no key gives output 0 and lse -inf.")
        return " ".join(sentences)

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags that name the models."""
        return tuple(f"model:{model}" for model in self.models)

    @property
    def parallel(self) -> str:
        """Return the tag of tensor parallelism."""
        return f"tp:{self.tp}"


def geometry_of(name: str, sizes: Mapping[str, int], model: str) -> Geometry:
    """Return the geometry that a definition's name states, for a model.

    `sizes` are the numbers of h, kv and d. What the words mean is not checked: the
    definition made of the geometry has another name where one is unknown.
    """
    words = name.split("_")
    numbers = dict(re.findall(r"_(w|cap)(\d+)(?=_)", name))
    special = "_".join(word for word in words if word in ("qe4m3", *_SPECIAL))
    return Geometry(
        sizes["h"],
        sizes["kv"],
        sizes["d"],
        (model,),
        window_left=int(numbers.get("w", -1)),
        soft_cap=int(numbers.get("cap", 0)),
        sinks="sink" in words,
        causal="noncausal" not in words,
        special=special,
    )


SINKS = Tensor(
    ("num_qo_heads",), "float32", "One natural, unscaled logit a query head."
)
SCALES = {
    "k_scale": Tensor(None, "float32", "Keys are k_cache times this; positive."),
    "v_scale": Tensor(None, "float32", "Values are v_cache times this; positive."),
}
SCALES_OF_HEADS = {
    f"{name}_scale": Tensor(
        (heads,),
        "float32",
        f"{what} of a head are {stored} times its element; positive.",
    )
    for name, heads, what, stored in (
        ("q", "num_qo_heads", "Queries", "q"),
        ("k", "num_kv_heads", "Keys", "k_cache"),
        ("v", "num_kv_heads", "Values", "v_cache"),
    )
}
MASK = Tensor(
    ("mask_len",),
    "bool",
    "Which keys a query sees: q_len rows of kv_len for each sequence in turn.",
)
MASK_LEN = (
    "mask_len == sum((qo_indptr[b + 1] - qo_indptr[b]) * ((kv_indptr[b + 1] -"
    " kv_indptr[b] - 1) * page_size + kv_last_page_len[b])"
    " for b in range(batch_size) if kv_indptr[b + 1] > kv_indptr[b])"
)
TREES = (
    "Query i of a sequence sees its key j where element i * kv_len + j of the"
    " sequence's part of custom_mask is true; there is no other mask. So the tokens"
    " of a tree are verified at once, each seeing its ancestors."
)
_SPECIAL = {
    "alibi": (
        "ALiBi adds slope * (j - p) to the scaled logit of the key at j for a query at p,"
        " which is 0 for its own key. With n the largest power of 2 up to the number of"
        " query heads, slope is 2 ** (-8 * (h + 1) / n) for head h < n, and"
        " 2 ** (-4 * (2 * (h - n) + 1) / n) for the others."
    ),
    "custom_mask": TREES,
    "fp16": "Queries, keys, values and output are float16.",
    "hnd": "In a page, a head's tokens lie side by side (layout HND).",
    "qe4m3_kve4m3": (
        "Queries and cache are stored in 8 bits, with a scale for each head: queries are"
        " q * q_scale, keys are k_cache * k_scale, values are v_cache * v_scale."
    ),
    "kve4m3": (
        "The cache is stored in 8 bits: keys are k_cache * k_scale, values are"
        " v_cache * v_scale."
    ),
}

_PAGED, _TREES = ("decode", "prefill"), ("prefill",)


def _whole(qo: int, kv: int, head_dim: int, *models: str) -> Geometry:
    """Return the plain attention of models on one GPU, which no kernel has met yet."""
    return Geometry(qo, kv, head_dim, models)


_LLAMA_70B = ("llama-3.1-70b", "llama-3.3-70b")
_GPT_OSS = ("gpt-oss-120b", "gpt-oss-20b")
GEOMETRIES = (
    Geometry(64, 8, 64, _GPT_OSS, sinks=True),
    Geometry(64, 8, 64, _GPT_OSS, sinks=True, window_left=127),
    Geometry(32, 16, 128, ("gemma-3-27b",), window_left=1023, scale_of=168),
    Geometry(16, 8, 256, ("gemma-2-9b",), soft_cap=50),
    Geometry(16, 8, 256, ("gemma-2-9b",), soft_cap=50, window_left=4095),
    Geometry(32, 16, 128, ("gemma-2-27b",), soft_cap=50, scale_of=144),
    Geometry(
        32, 16, 128, ("gemma-2-27b",), soft_cap=50, window_left=4095, scale_of=144
    ),
    Geometry(48, 8, 128, ("grok-1",), soft_cap=30),
    Geometry(32, 8, 128, ("mistral-7b-v0.1",), window_left=4095),
    Geometry(32, 32, 128, ("olmo-3-7b",), window_left=4095),
    # encoders, and a decoder's attention to them
    Geometry(20, 20, 64, ("whisper-large-v3",), causal=False, stages=("ragged",)),
    Geometry(16, 16, 64, ("bge-large-en-v1.5",), causal=False, stages=("ragged",)),
    Geometry(
        32,
        8,
        128,
        ("llama-3.2-11b-vision",),
        causal=False,
        stages=("prefill", "ragged"),
    ),
    # checkpoints that quantise the cache
    Geometry(32, 8, 128, ("llama-3.1-8b",), special="kve4m3", stages=_PAGED),
    Geometry(64, 8, 128, _LLAMA_70B, special="kve4m3", stages=_PAGED),
    Geometry(32, 4, 128, ("qwen3-30b-a3b",), special="kve4m3", stages=_PAGED),
    Geometry(32, 8, 128, ("llama-3.1-8b",), special="qe4m3_kve4m3", stages=_PAGED),
    Geometry(64, 8, 128, _LLAMA_70B, special="qe4m3_kve4m3", stages=_PAGED),
    # the layout that TensorRT-LLM's and vLLM's caches have
    Geometry(32, 8, 128, ("llama-3.1-8b",), special="hnd", stages=_PAGED),
    Geometry(32, 4, 128, ("qwen3-30b-a3b",), special="hnd", stages=_PAGED),
    # published in float16
    Geometry(32, 32, 128, ("llama-2-7b",), special="fp16"),
    Geometry(32, 8, 128, ("llama-3.1-8b-awq",), special="fp16"),
    # verified by trees of draft tokens (EAGLE)
    Geometry(32, 8, 128, ("llama-3.1-8b",), special="custom_mask", stages=_TREES),
    Geometry(64, 8, 128, _LLAMA_70B, special="custom_mask", stages=_TREES),
    Geometry(64, 4, 128, ("qwen3-235b-a22b",), special="custom_mask", stages=_TREES),
    # Gemma 4 normalises queries and keys, and scales by 1
    Geometry(32, 16, 256, ("gemma-4-31b",), window_left=1023, scale_of=1),
    Geometry(32, 4, 512, ("gemma-4-31b",), scale_of=1),
    Geometry(16, 2, 512, ("gemma-4-26b-a4b",), scale_of=1),
    Geometry(32, 32, 128, ("mpt-7b", "bloom-7b1"), special="alibi"),
    Geometry(40, 40, 128, ("baichuan2-13b",), special="alibi"),
    _whole(16, 2, 256, "qwen3-next-80b-a3b"),
    _whole(16, 4, 128, "smollm3-3b"),
    _whole(28, 4, 128, "qwen2.5-7b"),
    _whole(32, 8, 64, "llama-3.2-1b"),
    _whole(40, 8, 128, "qwen3-14b", "llama-4-scout"),
    _whole(48, 8, 128, "minimax-m2", "mixtral-8x22b"),
    _whole(64, 4, 128, "qwen3-235b-a22b"),
    _whole(64, 8, 128, *_LLAMA_70B, "qwen3-32b"),
    _whole(96, 8, 128, "glm-4.6"),
    # as they are served, on 8 devices and on 4; fewer KV heads than devices are copied
    Geometry(8, 1, 128, (*_LLAMA_70B, "qwen3-235b-a22b"), tp=8),
    Geometry(16, 1, 128, ("qwen3-235b-a22b",), stages=("decode", "ragged"), tp=4),
    Geometry(12, 1, 128, ("glm-4.6",), tp=8),
    Geometry(24, 2, 128, ("glm-4.6",), tp=4),
    Geometry(8, 1, 64, ("gpt-oss-120b",), sinks=True, tp=8),
    Geometry(8, 1, 64, ("gpt-oss-120b",), sinks=True, window_left=127, tp=8),
    Geometry(16, 2, 64, ("gpt-oss-120b",), sinks=True, tp=4),
    Geometry(16, 2, 64, ("gpt-oss-120b",), sinks=True, window_left=127, tp=4),
)
