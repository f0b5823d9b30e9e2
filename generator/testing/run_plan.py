"""What the workers of a run know of its tests, and tell the parent."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Plan:
    """Hold what the workers know of the tests that they collected.

    `cases` gives for each case, in the order of the tests, the number of its tests and
    the GPU memory that it needs, in bytes. `live` names the definitions, by test file,
    whose tests call kernels.
    """

    cases: list[tuple[int, int]] = field(default_factory=list)
    live: dict[str, list[str]] = field(default_factory=dict)

    def of_each_test(self) -> tuple[list[int], list[int]]:
        """Return for each test the number of its case, and the bytes of that."""
        numbers = [n for n, (tests, _) in enumerate(self.cases) for _ in range(tests)]
        return numbers, [self.cases[n][1] for n in numbers]
