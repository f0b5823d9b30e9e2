"""Cases of factors far from their usual values, and what they multiply as far the other way.

An interface takes scales of any size; quantisers and routers make some of them. Times a
power of two, floats keep their significant bits, so that bounds stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernel_judge.definition import LIMITS, Case


def with_factors(case: Case, name: str, **exponents: float) -> Case:
    """Return the case of limits whose inputs are those of another times powers of two."""
    return replace(case, name=name, size=LIMITS, moved=exponents)


def far_apart(
    case: Case, *names: str, against: tuple[str, ...] = (), exponent: float = 12.0
) -> list[Case]:
    """Return two cases: factors 2^exponent times as large, what they multiply as small.

    In the second it is the other way round. `names` are of inputs, those `against` them
    of what takes the other sign.
    """
    return [
        with_factors(
            case,
            name,
            **dict.fromkeys(names, power),
            **dict.fromkeys(against, -power),
        )
        for name, power in (("factors-up", exponent), ("factors-down", -exponent))
    ]


def beyond_float16(cases: Iterable[Case], of: str, *names: str) -> list[Case]:
    """Return the case `of` that name with inputs of about 1 that float16 has no number for.

    It is for inputs by which outputs bend: what follows its inputs is found by itself.
    """
    (usual,) = (case for case in cases if case.name == of)
    return [with_factors(usual, "beyond-float16", **dict.fromkeys(names, 17.0))]


def far_codes(case: Case, **shares: int) -> list[Case]:
    """Return cases whose codes of 8 bits are mostly subnormal, and at their largest.

    `shares` are 1 for codes of float8_e4m3fn, which stand for values up to some hundreds,
    and below 0 for scales, which are as much larger or smaller.
    """
    return [
        with_factors(case, name, **{n: power * share for n, share in shares.items()})
        for name, power in (("smallest-codes", -13.0), ("saturated-codes", 2.0))
    ]
