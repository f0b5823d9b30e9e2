"""What was measured of one definition, as values that travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from generator.support.tolerance import Tolerance

ORACLE = "oracle"
# why an output has no floor
LAW, EXACTLY = "judged by law", "exact"
# so many times the arithmetic error that was seen a bound must leave room for, a
# proposed one does, and no bound against an oracle may exceed in all
LEAST, PROPOSED, MOST = 3.0, 10.0, 50.0


@dataclass(frozen=True)
class Measured:
    """Hold what one case shows of one output against one source.

    `floor`, `reference` and `source` are root mean squares relative to that of the
    exact output: of one rounding of it to its dtype, of the reference's error and of
    the source's. Where the float64 run is of another geometry, the source's is that
    against the reference, whose own is not known, and one rounding is what it is on
    average.
    `allowed` is that of the tolerance: of its elementwise bound or, where that is less,
    of its NMSE. `share` and `energy` are the shares of the elementwise and of the NMSE
    bound that the errors take. What leaves LEAST or PROPOSED times the arithmetic error
    are `least` and `proposed` as factors of the elementwise bound, `least_atol` as an
    atol beside the present rtol, and `_nmse` as values.
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
        """Return the share of the bound that an error scaled up meets first."""
        return max(self.share, self.energy)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Row:
    """Hold one output of a definition against one source, under one tolerance.

    `chosen` is the reason that the tolerance was given, empty for a dtype's default.
    Of an output that has no floor `why_none` says so; then there is no more.
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
        """Return the case that takes most of the tolerance."""
        return max(self.cases, key=lambda case: case.used)

    @property
    def multiple(self) -> float:
        """Return how many times what is needed the tolerance is."""
        return 1.0 / self.worst.used

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Row:
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
    """Hold all rows of one definition; `error` says why it could not be measured.

    `off` is the largest relative distance of the float64 run from the oracle, of the
    root mean squares; `reduced` are axes that were measured shorter than they are, and
    `left_out` what was not measured, with the reason.
    """

    definition: str
    op_type: str
    path: str
    rows: tuple[Row, ...] = ()
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
        rows = tuple(Row.from_dict(row) for row in value["rows"])
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        return replace(
            cls(**fields), rows=rows, left_out=tuple(str(v) for v in value["left_out"])
        )
