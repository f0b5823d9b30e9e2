"""Random draws of the judge, of which those that are shown say nothing of the others.

A solution receives the seed of each call, and sees lengths and values. The state of Python's
generator can be computed from 624 of its words, and with it all numbers that follow; two
generators with one seed give the same numbers. So each purpose has a generator of its own,
seeded by the secret and the purpose.
"""

from __future__ import annotations

import random

SECRETS = 2**62
"""The number of secrets that nobody finds by trying. A call's seed may be known."""


def draws_of(secret: int | str, purpose: str) -> random.Random:
    """Return the generator for a purpose; Python seeds it by the text's SHA-512."""
    return random.Random(f"{secret} {purpose}")
