"""The result of one definition's audit: what became of each of its mutants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from generator.results.audits import CAUGHT, STATUSES, SURVIVED


@dataclass(frozen=True)
class MutantResult:
    """The outcome of one mutant.

    `test` and `case` are the first that caught it and `why` is what they said; of an
    equivalent one `why` says how that was shown. `raised` says that `run()` raised.
    `line` counts from 1 in the reference; it is 0 where the mutant is no change of the
    text.
    """

    name: str
    kind: str
    status: str
    line: int = 0
    before: str = ""
    after: str = ""
    test: str = ""
    case: str = ""
    why: str = ""
    raised: bool = False


@dataclass(frozen=True)
class DefinitionResult:
    """The outcomes of all mutants of one definition.

    `reduced` are the axes that were audited shorter than the definition has them.
    `left_out` are tests that the reference itself does not pass: they catch nothing.
    `not_asked` maps the cases in which nothing was compared to the reason.
    `error` says why a definition could not be audited at all.
    """

    definition: str
    op_type: str
    key: str
    mutants: tuple[MutantResult, ...] = ()
    reduced: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    not_asked: Mapping[str, str] = field(default_factory=dict)
    recorded_cases: int = 0
    seconds: float = 0.0
    error: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Return how many mutants have each status."""
        counts = Counter(mutant.status for mutant in self.mutants)
        return {status: counts[status] for status in STATUSES}

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        """Return the mutants that no test caught and that are not equivalent."""
        return tuple(m for m in self.mutants if m.status == SURVIVED)

    @property
    def first_tests(self) -> dict[str, int]:
        """Return how many mutants each test caught first, the most first.

        Those that raise are counted apart: any test would have caught them.
        """
        tests = Counter(
            "raised" if m.raised else m.test.removeprefix("test_")
            for m in self.mutants
            if m.status == CAUGHT
        )
        return dict(sorted(tests.items(), key=lambda item: (-item[1], item[0])))

    @property
    def is_fine(self) -> bool:
        """Return whether every defect shows, and the reference itself passes."""
        return not (self.survivors or self.error or self.left_out)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {**asdict(self), "counts": self.counts}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> DefinitionResult:
        """Read what `as_dict` gave. Raises KeyError, TypeError where it is not that."""
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        mutants = tuple(MutantResult(**mutant) for mutant in value["mutants"])
        left_out = tuple(value["left_out"])
        return cls(**{**fields, "mutants": mutants, "left_out": left_out})
