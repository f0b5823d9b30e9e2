"""The geometries of attention with windows, caps, sinks or no mask, and their words.

Each names the models that run it. A model's `sliding_window` counts the query's own
key: window_left is one less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from generator.ops.family import Tensor


@dataclass(frozen=True)
class Geometry:
    """Hold the constants of one attention layer of some models.

    `scale_of` is the length whose inverse root is the models' sm_scale, head_dim where
    it is 0. `paged` and `ragged` say which interfaces are wanted.
    """

    num_qo_heads: int
    num_kv_heads: int
    head_dim: int
    models: tuple[str, ...]
    window_left: int = -1
    soft_cap: int = 0
    sinks: bool = False
    causal: bool = True
    scale_of: int = 0
    stages: tuple[str, ...] = ("decode", "prefill", "ragged")

    @property
    def module(self) -> str:
        """Return the end of the name of the reference's module."""
        words = ["sink"] * self.sinks + ["cap"] * bool(self.soft_cap)
        words += ["window"] * (self.window_left >= 0)
        return "_".join(words) if self.causal else "noncausal"

    def words(self, stage: str) -> str:
        """Return the part of a definition's name between the stage and the heads."""
        words = [] if stage == "decode" else ["causal" if self.causal else "noncausal"]
        words += ["sink"] * self.sinks + [f"cap{self.soft_cap}"] * bool(self.soft_cap)
        words += [f"w{self.window_left}"] * (self.window_left >= 0)
        return "_".join(words)

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
        found: dict[str, float] = {}
        if self.window_left >= 0:
            found["WINDOW_LEFT"] = self.window_left
        if self.soft_cap:
            found["LOGITS_SOFT_CAP"] = float(self.soft_cap)
        return found

    def describe(self, stage: str) -> str:
        """Return the sentences on what a query sees and what becomes of its logits."""
        found = []
        if stage == "decode":
            found.append("The query stands at its sequence's last key.")
        elif self.causal:
            found.append(
                "The mask is causal and aligned bottom-right: query i of q_len stands "
                "at key kv_len - q_len + i."
            )
        else:
            found.append("There is no mask: every query sees all keys.")
        if self.window_left >= 0:
            found.append(
                f"A query at key p sees keys p - {self.window_left} ... p, a sliding "
                f"window of {self.window_left + 1}."
            )
        if self.soft_cap:
            found.append(
                f"A scaled logit l becomes {self.soft_cap} * tanh(l / {self.soft_cap}), "
                "before mask and softmax."
            )
        if self.sinks:
            found.append(
                "A head's sink is one more logit, natural and unscaled, whose value is "
                "zero: it adds to the sum of exponentials, and to lse. A query that sees "
                "no key gives output 0 and the lse of its sink."
            )
        else:
            found.append("A query that sees no key gives output 0 and lse -inf.")
        return " ".join(found)

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags that name the models."""
        return tuple(f"model:{model}" for model in self.models)


SINKS = Tensor(
    ("num_qo_heads",), "float32", "One natural, unscaled logit a query head."
)

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
)
