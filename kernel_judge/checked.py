"""The result of a check, as a value: comparisons, a reason to skip, or a defect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec

from kernel_judge.comparison.compare import Comparison
from kernel_judge.obstacle import Obstacle
from kernel_judge.skipping import Skip

P = ParamSpec("P")


class Defect(AssertionError):
    """End a check that shows a defect otherwise than by a comparison."""


@dataclass(frozen=True)
class Compared:
    """One output that was compared with one source.

    `record` is what a results file has of it. Where it does not agree, `failures` are
    lines for a person, `values` the two that were compared.
    """

    output: str
    source: str
    comparison: Comparison
    record: Mapping[str, Any]
    failures: tuple[str, ...] = ()
    values: tuple[Any, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def p_value(self) -> float | None:
        """Return the p-value of a statistical comparison, None of any other."""
        return self.comparison.figures.get("p_value")


@dataclass(frozen=True)
class Checked:
    """The result of one check of one subject on one trial.

    `skipped` is why it could not be made, `defect` the message of what is wrong. It
    passed where there is neither.
    """

    comparisons: tuple[Compared, ...] = ()
    skipped: Obstacle | None = None
    defect: str | None = None

    @property
    def passed(self) -> bool:
        """Return whether the check was made and shows no defect."""
        return self.skipped is None and self.defect is None


def check(steps: Callable[P, Iterator[Compared]]) -> Callable[P, Checked]:
    """Make a check of a generator of comparisons, which raises Skip or Defect.

    The check raises what else is raised: by `run()`, a kernel or the oracle. It does
    not once a comparison has failed: that is a defect, whatever comes after it.
    """

    @wraps(steps)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Checked:
        comparisons: list[Compared] = []
        later = ""
        try:
            for compared in steps(*args, **kwargs):
                comparisons.append(compared)  # noqa: PERF402 - kept if it raises
        except Skip as error:
            if not _failures(comparisons):
                return Checked(tuple(comparisons), skipped=error.obstacle)
            later = f"then it was skipped: {error}"
        except Defect as error:
            if not _failures(comparisons):
                return Checked(tuple(comparisons), defect=str(error))
            later = str(error)
        except Exception as error:
            if not _failures(comparisons):
                raise
            later = f"then it raised {type(error).__name__}: {error}"
        lines = _failures(comparisons)
        defect = "\n".join(["", *lines, *filter(None, [later])]) if lines else None
        return Checked(tuple(comparisons), defect=defect)

    return checked


def _failures(comparisons: list[Compared]) -> list[str]:
    return [line for compared in comparisons for line in compared.failures]
