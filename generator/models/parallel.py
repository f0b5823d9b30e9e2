"""How a model is deployed: what is divided, and how the cache is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from generator.models.config import Config

KV_DTYPES = ("bfloat16", "float8_e4m3fn")


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
