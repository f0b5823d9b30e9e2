"""Names of sources, parsed: `oracle`, `flashinfer/fa2`, `metamorphic:rows-scaled`."""

from __future__ import annotations

# before a relation's name: such a comparison is of a reference with itself
METAMORPHIC = "metamorphic:"
# between the names of two ground truths that are compared with each other
PAIR = " ~ "


def is_of_itself(source: str) -> bool:
    """Return whether a comparison is of a reference with itself or a sibling."""
    return source.startswith(METAMORPHIC)


def is_pair(source: str) -> bool:
    """Return whether two sources were compared, and the reference was not asked."""
    return PAIR in source
