"""The figures of each comparison of a run, whether it passed or failed: --figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Figures:
    """The figures of a run's comparisons; under xdist the parent collects them."""

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []

    def add(self, test: Mapping[str, Any]) -> None:
        """Take what one test compared."""
        self._records += test["comparisons"]

    def lines(self) -> Iterator[str]:
        """Yield a heading, the figures, and the worst elements of each comparison."""
        for record in self._records:
            yield from figure_lines(record)


def figure_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures of a comparison's record as lines for a person."""
    where = f"{record['definition']} {record['output']!r} against {record['source']}"
    yield f"{where}, {record['case']}: {record['verdict']}"
    if "nmse" not in record:
        # of a policy, which has figures of its own, or of a comparison that never began
        numbers = (f"{n} {v:.6g}" for n, v in record.items() if isinstance(v, float))
        yield "  " + (", ".join(numbers) or "; ".join(record.get("findings", ())))
        return
    mean = record["expected_mean"]
    yield (
        f"  of {record['elements']} elements {record['mismatched']} beyond the tolerance; "
        f"mean {mean + record['mean_error']:.6g}, expected {mean:.6g}; "
        f"largest error {record['max_abs']:.3g}, mean {record['mean_abs']:.3g}; "
        f"MSE {record['mse']:.3g}; NMSE {record['nmse']:.3g}; "
        f"cosine {record['cosine']:.9g}"
    )
    for worst in record["worst"]:
        actual, expected = worst["actual"], worst["expected"]
        yield (
            f"  {tuple(worst['index'])}: actual {actual:.9g}, expected {expected:.9g}, "
            f"difference {actual - expected:.6g}"
        )
