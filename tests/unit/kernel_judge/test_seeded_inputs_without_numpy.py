"""The stream worked out in plain Python: its bits need neither numpy nor torch.

Philox 4x64 with 10 rounds is that of Salmon et al., Parallel random numbers: as easy as
1, 2, 3 (2011). The hashes are those of test_stream.py: what numpy and torch draw is the
same. This file runs by itself, on any Python: `python test_plain_stream.py`.
"""

from __future__ import annotations

import hashlib
import math
import struct
from itertools import islice

HASHES = {
    "values float32": "594d024697483c7ea199bb665e04df67977149f8061f03186b8812be61c84bae",
    "values bfloat16": "1ed02d80024d1a05d34a0baebe38b5e422a1e0a926a8f60222087a44a5ed9df1",
    "values float16, many": "f34f55c1473ad702ffddc34dac8d50a919b207900d1bea4a6ff80b8ec948472f",
    "matrix": "22b9993967254405429620fc3f1e3765b159d460d7517d6c5d4feb7d3f902de3",
    "permutation": "0f7811057b5add8fd5ef7aa9df03c36c67b1869ce16ef5dc1f4d36216f95d5a9",
    "integers": "b51d3a9ecc648a555d3661a8480211ce2668ea39e02ecb78fde1423d287302f9",
    "child": "88cbbeb0d05b4026a1541407eb49c5dc0c4538671b41b4d309e024ed2f063b71",
}
MASK = 2**64 - 1
MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B


def words(*key):
    """Yield the 64-bit words of the stream that the words of a key select."""
    digest = hashlib.sha256("\0".join(key).encode()).digest()
    first, second = struct.unpack("<QQ", digest[:16])
    number = 0
    while True:
        number += 1
        block = [number, 0, 0, 0]
        k = [first, second]
        for _ in range(10):
            low, high = MULTIPLIERS[0] * block[0], MULTIPLIERS[1] * block[2]
            block = [
                (high >> 64) ^ block[1] ^ k[0],
                high & MASK,
                (low >> 64) ^ block[3] ^ k[1],
                low & MASK,
            ]
            k = [(word + weyl) & MASK for word, weyl in zip(k, WEYL)]  # noqa: B905
        yield from block


def as_float32(value):
    """Round a float64 to float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def values(count, std, *key):
    """Return bell-shaped values, each the sum of two halves of a word, as float32."""
    raw = struct.pack(f"<{(count + 1) // 2}Q", *islice(words(*key), (count + 1) // 2))
    halves = struct.unpack(f"<{len(raw) // 2}h", raw)
    scale = as_float32(std * math.sqrt(6.0) / 65536.0)
    # a product of 17 and 24 bits is exact in float64: one rounding in all
    sums = (halves[2 * i] + halves[2 * i + 1] for i in range(count))
    return [as_float32(total * scale) for total in sums]


def bfloat16(value):
    """Return the two bytes of a float32 rounded to bfloat16, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def drawn():
    """Return the bytes of the draws that test_stream.py hashes."""
    key = "definition", "case"
    base = values(7 * 4 + 9, 0.5, *key)
    window = [x for row in range(5) for x in base[7 * row : 7 * row + 9]]
    keys = list(islice(words(*key), 100))
    integers = [-3 + word % 503 for word in islice(words(*key), 17)]
    return {
        "values float32": struct.pack("<15f", *values(15, 1.0, *key)),
        "values bfloat16": b"".join(map(bfloat16, values(8, 0.25, *key))),
        "values float16, many": struct.pack("<1000e", *values(1000, 40.0, *key)),
        "matrix": struct.pack("<45f", *window),
        "permutation": struct.pack("<100q", *sorted(range(100), key=keys.__getitem__)),
        "integers": struct.pack("<17q", *integers),
        "child": struct.pack("<7f", *values(7, 1.0, *key, "weight")),
    }


def test_plain_python_draws_the_same_bits():
    found = {name: hashlib.sha256(data).hexdigest() for name, data in drawn().items()}
    assert found == HASHES


if __name__ == "__main__":
    test_plain_python_draws_the_same_bits()
    print("the stream has the bits of its first release")
