"""The measured errors of one definition, as values that travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kernel_judge.comparison.tolerance import Tolerance

ORACLE = "oracle"
# why an output has no floor
LAW, EXACTLY = "judged by law", "exact"
# a bound must leave room for LEAST times the arithmetic error seen, a proposed one for
# PROPOSED times; a bound against the oracle is at most MOST times what is needed
LEAST, PROPOSED, MOST = 3.0, 10.0, 50.0


@dataclass(frozen=True)
class Measured:
    """The errors of one output against one source in one case.

    `floor`, `reference` and `source` are root mean squares relative to the exact
    output's: of one rounding to its dtype, of the reference's error, of the source's
    error. If the float64 run has shorter axes, `reference` is unknown, `source` is the
    error against the reference and `floor` is an average rounding.
    `allowed` is the tolerance in the same unit: its elementwise bound, or its NMSE if
    that is less. `share` and `energy` are the shares of the elementwise and of the NMSE
    bound that the errors use. LEAST or PROPOSED times the arithmetic error need the
    elementwise bound times `least` or `proposed`, or an atol of `least_atol` beside the
    present rtol; and an NMSE of `least_nmse` or `proposed_nmse`.
    """

    case: str
    elements: int
    allowed: float
    share: float
    energy: float
    least: float
    least_nmse: float
    least_atol: float
    proposed: float
    proposed_nmse: float
    floor: float
    source: float
    reference: float | None = None

    @property
    def used(self) -> float:
        """Return the larger share: of the bound that a growing error reaches first."""
        return max(self.share, self.energy)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class SourceFloor:
    """One output of a definition against one source, under one tolerance.

    `chosen` is the reason of an override, empty for the dtype's default. `why_none` is
    why an output has no floor; then there are no tolerance and no cases.
    """

    definition: str
    op_type: str
    output: str
    dtype: str
    source: str
    why_none: str = ""
    tolerance: Tolerance | None = None
    chosen: str = ""
    cases: tuple[Measured, ...] = ()

    @property
    def worst(self) -> Measured:
        """Return the case that uses most of the tolerance."""
        return max(self.cases, key=lambda case: case.used)

    @property
    def multiple(self) -> float:
        """Return the tolerance as a multiple of what is needed."""
        return 1.0 / self.worst.used

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> SourceFloor:
        """Read what `as_dict` gave. Raises KeyError, TypeError where it is not that."""
        bound = value["tolerance"]
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        if bound is not None:
            ratio = bound["norm_ratio"]
            # JSON has no tuples, and a list is no part of a key
            bound = {**bound, "norm_ratio": None if ratio is None else tuple(ratio)}
            fields["tolerance"] = Tolerance(**bound)
        fields["cases"] = tuple(Measured(**case) for case in value["cases"])
        return cls(**fields)


@dataclass(frozen=True)
class Floors:
    """All rows of one definition; `error` is why it could not be measured.

    `off` maps an output to the largest relative distance (root mean square) between the
    float64 run and the oracle; `reduced` are the axes shorter than declared, and
    `left_out` the cases that were not measured, with the reason.
    """

    definition: str
    op_type: str
    path: str
    rows: tuple[SourceFloor, ...] = ()
    off: Mapping[str, float] = field(default_factory=dict)
    reduced: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str = ""
    key: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Floors:
        """Read what `as_dict` gave. Raises KeyError, TypeError where it is not that."""
        rows = tuple(SourceFloor.from_dict(row) for row in value["rows"])
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        return replace(
            cls(**fields), rows=rows, left_out=tuple(str(v) for v in value["left_out"])
        )
