"""Tolerances of a comparison, and their derivation."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING

from kernel_judge.definition import Case, Definition

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Tolerance:
    """Bounds of a comparison: |actual - expected| <= atol + rtol·|expected|, and the rest.

    `of_row` adds as many times the RMS of what is expected in the element's row, the last
    axis: a sum's rounded terms leave errors of that size in elements that happen to be
    small, and rows differ by as much as their terms do. Elements without rows, such as
    those that a recording has, count as a row of the largest of them.

    `nmse` bounds Σ(a-e)²/Σe². `hit_ratio` below 1 is the share of elements that must be
    within atol and rtol; then `cosine` and `norm_ratio`, |actual| over |expected|, bound the
    direction and the length of the whole, so that no output of zeros or of another sign
    passes.

    `bias` bounds what errors without a sign leave unexplained (`signed_error`): of the
    least-squares factor less 1, and of the mean error over the RMS of the expected
    output. None stands for the dtype's.
    """

    rtol: float
    atol: float
    nmse: float | None = None
    hit_ratio: float = 1.0
    cosine: float | None = None
    norm_ratio: tuple[float, float] | None = None
    bias: float | None = None
    of_row: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what would let anything pass, NaN too. Raises ValueError."""
        numbers = *(self.norm_ratio or ()), self.nmse or 0.0, self.bias or 0.0
        sizes = self.rtol, self.atol, self.of_row, self.hit_ratio, *numbers
        are_sizes = all(isinstance(n, Real) and 0 <= float(n) < math.inf for n in sizes)
        is_share = are_sizes and 0.0 < self.hit_ratio <= 1.0
        if not is_share or not -1.0 <= (self.cosine or 0.0) <= 1.0:
            raise ValueError(f"not finite, below 0 or no share: {vars(self)}")

    def allowed(self, expected: Tensor) -> Tensor:
        """Return how far each element may be off, of expected float64 [..., row]."""
        allowed = expected.abs().mul_(self.rtol).add_(self.atol)
        if not self.of_row or not expected.numel():
            return allowed
        finite = expected.masked_fill(~expected.isfinite(), 0.0)
        if expected.dim() < 2:
            return allowed.add_(finite.abs().max(), alpha=self.of_row)
        rms = finite.square_().mean(dim=-1, keepdim=True).sqrt_()
        return allowed.add_(rms, alpha=self.of_row)


# the biases are 16 units in the last place of float32, of its approximations of exp2, log2
# and reciprocal roots; then a sixteenth of half a unit of the dtype, where intermediate
# values are rounded as well, some of them alike
_QUANTISED = Tolerance(
    2e-1, 1e-1, hit_ratio=0.85, cosine=0.98, norm_ratio=(0.9, 1.1), bias=2.0**-8
)

# one rounding to the dtype and accumulation in float32 stay well inside these
DEFAULTS = {
    "float64": Tolerance(1e-7, 1e-7, 1e-12, bias=2.0**-40),
    "float32": Tolerance(1e-5, 1e-5, 1e-7, bias=2.0**-20),
    "float16": Tolerance(1e-3, 1e-3, 1e-6, bias=2.0**-15),
    "bfloat16": Tolerance(1e-2, 8e-3, 2e-5, bias=2.0**-12),
    "float8_e4m3fn": _QUANTISED,
    "float8_e5m2": _QUANTISED,
    "float4_e2m1": _QUANTISED,
}
EXACT = Tolerance(0.0, 0.0)
# before the source of a comparison: what the source said when it was recorded
RECORDED = "recorded:"


@dataclass(frozen=True)
class Override:
    """One output's tolerance against one source in place of the default, with the reason.

    `source` is a provider ("flashinfer"), a provider's backend ("flashinfer/fa2") or
    "oracle"; None is every source. `case` is the name of the one case it is about,
    `constant` a constant that only the definitions have that it is about; `where` tells
    from all axes of a case whether it is about it: kernels have others for other sizes.
    `growth` is the factor of atol in a case, where the error that atol bounds grows with
    what the case's values are.
    """

    output: str
    tolerance: Tolerance
    reason: str
    source: str | None = None
    case: str | None = None
    constant: str | None = None
    where: Callable[[Mapping[str, int]], bool] | None = None
    growth: Callable[[Definition, Case], float] | None = None

    def at(self, definition: Definition, case: Case) -> Override:
        """Return the override with the atol of one case of a definition."""
        if self.growth is None:
            return self
        atol = self.tolerance.atol * self.growth(definition, case)
        return replace(self, tolerance=replace(self.tolerance, atol=atol))

    def applies(
        self,
        output: str,
        source: str,
        case: str,
        axes: Mapping[str, int] | None = None,
    ) -> bool:
        """Return whether the override is about this output, source, case and its axes."""
        named = (None, source, source.split("/")[0])
        if self.output != output or self.source not in named:
            return False
        if self.case not in (None, case):
            return False
        return self.where is None or (axes is not None and self.where(axes))


def of_definition(
    overrides: Iterable[Override], constants: Container[str]
) -> tuple[Override, ...]:
    """Return the overrides that are about a definition with these constants."""
    return tuple(o for o in overrides if o.constant is None or o.constant in constants)


def choose_tolerance(
    overrides: tuple[Override, ...],
    output: str,
    dtype: str,
    source: str,
    run_tolerance: float | None = None,
    case: str = "",
    constants: Container[str] = (),
    axes: Mapping[str, int] | None = None,
) -> Tolerance:
    """Return the tolerance of an output of a dtype against a source, in a case.

    `constants` are the definition's, `axes` all of the case's. The first override that
    applies wins over the dtype's default; `run_tolerance`, the user's `--tolerance`, then
    replaces rtol, atol and what is allowed of a row. Integers and booleans are exact.
    """
    # a recording of a kernel is judged as the kernel itself
    source = source.removeprefix(RECORDED)
    default = DEFAULTS.get(dtype, EXACT)
    known = of_definition(overrides, constants)
    fits = (o.tolerance for o in known if o.applies(output, source, case, axes))
    chosen = next(fits, default)
    if chosen.bias is None:
        chosen = replace(chosen, bias=default.bias)
    if run_tolerance is not None and chosen != EXACT:
        bias = max(run_tolerance, chosen.bias or 0.0)
        chosen = replace(
            chosen, rtol=run_tolerance, atol=run_tolerance, bias=bias, of_row=0.0
        )
    return chosen


def looser(first: Tolerance, second: Tolerance) -> Tolerance:
    """Return the wider of two tolerances, for two sources held against each other."""
    wider = max(
        first, second, key=lambda t: (t.atol + t.rtol + t.of_row, t.nmse or 0.0)
    )
    biases = (first.bias, second.bias)
    bias = None if None in biases else max(b for b in biases if b is not None)
    return replace(wider, bias=bias)
