"""Random draws of the judge, of which those that are shown say nothing of the others.

A solution is told the seed of each call, and sees lengths and values. Of a generator's numbers the
next ones follow, 624 words of 32 bits are all of its state, and one secret makes the
same numbers everywhere: so each purpose has a generator of its own.
"""

from __future__ import annotations

import random

SECRETS = 2**62
"""The number of secrets that nobody finds by trying. A call's seed may be known."""


def draws_of(secret: int | str, purpose: str) -> random.Random:
    """Return the generator for a purpose; Python seeds it by the text's SHA-512."""
    return random.Random(f"{secret} {purpose}")
