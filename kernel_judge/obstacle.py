"""Reasons why a provider can't be used or a test can't run here: a kind, a sentence.

Imports nothing but the standard library, so that commands without torch read it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# the property by which the report of a skipped test tells the kind
SKIP_KIND = "skip_kind"


class Kind(str, Enum):
    """The kind of an obstacle; the value is its word in a results file."""

    NOT_INSTALLED = "not-installed"
    TOO_OLD = "too-old"
    # there, but its import or its process failed
    BROKEN = "broken"
    # the provider has no kernel that computes the op_type
    NO_KERNEL = "no-kernel"
    # the op_type or the definition has no function for the provider
    NO_ADAPTER = "no-adapter"
    NEEDS_CUDA = "needs-cuda"
    # a backend exists on other GPUs than this one
    NEEDS_SM = "needs-sm"
    # more of them than are here, or ones that reach each other's memory
    NEEDS_GPUS = "needs-gpus"
    NEEDS_MEMORY = "needs-memory"
    # nobody knows what to compare with, or with which inputs
    UNRESOLVED = "unresolved"
    NOT_RECORDED = "not-recorded"
    # a workload that the device would compute for longer than was asked for
    TOO_LONG = "too-long"
    # no case of the chosen sizes, or one of which nothing is defined
    NO_CASE = "no-case"


@dataclass(frozen=True)
class Obstacle:
    """A reason why something can't be used: for programs, and for people."""

    kind: Kind
    reason: str

    def __str__(self) -> str:
        return self.reason


class Unavailable(Exception):
    """Raised where a provider can't be asked: a reason to skip, not an error."""

    def __init__(self, reason: str, kind: Kind = Kind.BROKEN) -> None:
        super().__init__(reason)
        self.kind = kind
