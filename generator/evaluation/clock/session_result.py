"""The result of a timing session, and the reason where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class CandidateCall:
    """A call of the solution that may be judged: its values and what came of them."""

    inputs: Mapping[str, Any]
    outputs: tuple[Any, ...]
    filled: tuple[torch.Tensor, ...]


class Untimed(Exception):
    """Raised where no figure counts, for a reason that is not the solution's."""


@dataclass(frozen=True)
class SessionResult:
    """The result of a session: calls to be judged, and each contender's single figures.

    `seconds_of` says where its seconds went.
    """

    timing: dict[str, Any]
    judged: Sequence[CandidateCall]
    figures: Mapping[str, Sequence[float]]
    seconds_of: Mapping[str, float]
