"""Random inputs that have the same bits on every machine.

numpy's and torch's samplers may change between versions. Philox is a counter-based
generator whose raw output NumPy guarantees (NEP 19); everything here is made of that
output by integer arithmetic and single IEEE operations, which no version, thread count
or instruction set changes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch

# a core's cache holds a part, torch converts it in one thread, and it is whole blocks
_PART, _BLOCK = 1 << 15, 8
# tensors of more than four periods repeat their first one; periods are primes, so that
# rows a power of two apart, or a row's own length, have different values
PERIOD, SHORT_PERIOD = (1 << 24) - 3, (1 << 22) - 3


@dataclass
class _Words(np.random.SeedSequence):
    """A generator's key: one that gets it by its name draws a seed as well, in vain."""

    words: np.ndarray

    def generate_state(self, *ignored: object) -> np.ndarray:
        """Return the words."""
        return self.words


class Stream:
    """A stream of values that the words of its key select."""

    def __init__(self, *key: str, period: int = PERIOD) -> None:
        self._key, self._period = key, period
        digest = hashlib.sha256("\0".join(key).encode()).digest()
        self._bits = np.random.Philox(_Words(np.frombuffer(digest[:16], "<u8")))

    def child(self, name: str) -> Stream:
        """Return the stream named below this one, whatever was drawn from this one."""
        return Stream(*self._key, name, period=self._period)

    def integers(self, low: int, high: int, count: int) -> list[int]:
        """Return `count` integers in low … high - 1."""
        drawn: list[int] = self.integer_tensor(low, high, count).tolist()
        return drawn

    def integer_tensor(self, low: int, high: int, count: int) -> torch.Tensor:
        """Return integers in low … high - 1: int64 [count], those of `integers`."""
        raw = np.atleast_1d(self._bits.random_raw(count))
        drawn = (raw % np.uint64(high - low)).astype(np.int64) + low
        return torch.from_numpy(drawn)

    def permutation(self, count: int) -> torch.Tensor:
        """Return 0 … count - 1 in random order: int64 [count]."""
        return torch.from_numpy(np.argsort(self._bits.random_raw(count), kind="stable"))

    def values(
        self,
        shape: Sequence[int],
        std: float = 1.0,
        dtype: torch.dtype = torch.float32,
    ) -> torch.Tensor:
        """Return bell-shaped values of mean 0: the sum of two uniform 16-bit integers.

        `std` is in the units of the values; the bound is sqrt(6)·std. The scaling is
        one float32 product, the conversion to `dtype` one rounding. Beyond four periods
        the first one repeats: drawing a cache of 2 GiB took longer than its tests.
        """
        count, period = math.prod(shape), self._period
        if count > 4 * (period + 3):
            drawn = self.values((period,), std, dtype)
            return drawn.repeat(-(-count // period))[:count].view(tuple(shape))
        values = torch.empty(count, dtype=dtype)
        # the variance of one 16-bit half is 2**32 / 12, that of two is 2**32 / 6
        scale = np.float32(std * math.sqrt(6.0) / 65536.0)
        parts = list(torch.split(values, _PART))
        # whole blocks of the generator: each thread has one that begins where its part does
        threads = torch.get_num_threads()
        is_whole = self._bits.state["buffer_pos"] == _BLOCK // 2
        if threads > 1 and len(parts) > 32 and is_whole:
            ahead = []
            for _ in parts[:-1]:
                ahead.append(copy(self._bits))
                self._bits.advance(_PART // _BLOCK)
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(_fill, parts, ahead, repeat(scale)))
            parts = parts[-1:]
        for part in parts:
            _fill(part, self._bits, scale)
        return values.reshape(tuple(shape))

    def matrix(
        self, rows: int, columns: int, std: float, dtype: torch.dtype
    ) -> torch.Tensor:
        """Return a large [rows, columns] matrix, cheaply: every row differs.

        Row r is a window of one stream that begins at 7·r, so a matrix of 470 million
        elements costs 400,000 draws and a copy.
        """
        base = self.values((7 * (rows - 1) + columns,), std, dtype)
        return base.as_strided((rows, columns), (7, 1)).contiguous()


def _fill(part: torch.Tensor, bits: np.random.Philox, scale: np.float32) -> None:
    raw = bits.random_raw((len(part) + 1) // 2)
    words = raw.view(np.int32)[: len(part)]
    # both halves of a word with their signs; exact: 17 bits
    total = ((words << 16 >> 16) + (words >> 16)).astype(np.float32)
    total *= scale
    part.copy_(torch.from_numpy(total))
