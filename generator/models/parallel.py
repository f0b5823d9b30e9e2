"""Deployment of a model: degrees of parallelism, and the form of its cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from generator.models.need import Need

if TYPE_CHECKING:
    from generator.models.config import Config

KV_DTYPES = ("bfloat16", "float8_e4m3fn")
_PADDING = 64
"""SGLang fills a vocabulary that GPUs can't divide up to a multiple of it."""


@dataclass(frozen=True)
class Deployment:
    """The parallelism and the cache that definitions are chosen for.

    Heads, intermediate sizes and the vocabulary are divided by `tp`; experts by `ep`,
    and their intermediate size by `tp` where `ep` is 1.
    """

    tp: int = 1
    ep: int = 1
    page_size: int = 64
    kv_dtype: str = KV_DTYPES[0]

    def heads(self, config: Config) -> tuple[int, int]:
        """Return the query and KV heads of one GPU.

        KV heads fewer than GPUs are replicated, one a GPU. Raises Failure where the
        heads can't be divided.
        """
        whole = config.size("num_attention_heads")
        kv = config.size("num_key_value_heads", default=whole)
        config.divided("num_attention_heads", whole, kv, "num_key_value_heads =")
        query = config.divided("num_attention_heads", whole, self.tp, "--tp")
        if self.tp > kv:
            config.divided("--tp", self.tp, kv, "num_key_value_heads =")
            return query, 1
        return query, config.divided("num_key_value_heads", kv, self.tp, "--tp")

    def replicates(self, config: Config) -> bool:
        """Return whether several GPUs hold the same KV head."""
        whole = config.size("num_attention_heads")
        return self.tp > config.size("num_key_value_heads", default=whole)

    def share(self, config: Config, key: str, value: int) -> int:
        """Return what of a length one GPU has. Raises Failure for a remainder."""
        return config.divided(key, value, self.tp, "--tp")

    def vocabulary(self, config: Config) -> int:
        """Return the rows of embedding and head that one GPU has."""
        key = "vocab_size"
        size = config.size(key)
        if size % self.tp:
            size += -size % _PADDING
        return self.share(config, key, size)

    def reduced(self, module: str, size: int) -> Iterator[Need]:
        """Yield the sum over GPUs of rows of `size`, where there are several."""
        if self.tp > 1:
            yield Need(module, "collectives", f"allreduce_tp{self.tp}_h{size}")

    def gathered(self, module: str, size: int) -> Iterator[Need]:
        """Yield the parts of rows of `size` put together, where there are several."""
        if self.tp > 1:
            yield Need(module, "collectives", f"allgather_tp{self.tp}_h{size}")
