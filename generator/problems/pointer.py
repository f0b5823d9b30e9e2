"""JSON pointers (RFC 6901): places in a JSON value."""

from __future__ import annotations

from collections.abc import Iterable


def pointer(tokens: Iterable[str | int]) -> str:
    """Return the pointer to the place that `tokens` lead to; the root's is empty."""
    return "".join(
        "/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens
    )
