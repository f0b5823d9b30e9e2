"""The workers' knowledge of a run's tests, and its transfer to the parent."""

from __future__ import annotations

from dataclasses import dataclass, field

SHARE = 0.9
"""Of a GPU's memory, what cases get; the rest is for contexts, and for low estimates."""


@dataclass
class Plan:
    """The workers' knowledge of the tests that they collected.

    `cases` gives for each case, in the order of the tests, the number of its tests, the
    GPU memory that it needs, in bytes, and its definition. `live` names the definitions,
    by test file, whose tests call kernels.
    """

    cases: list[tuple[int, int, str]] = field(default_factory=list)
    live: dict[str, list[str]] = field(default_factory=dict)

    def of_each_test(self) -> list[tuple[int, int, str]]:
        """Return for each test the number of its case, the bytes and the definition."""
        return [
            (number, needed, definition)
            for number, (tests, needed, definition) in enumerate(self.cases)
            for _ in range(tests)
        ]

    def smallest_cases(self) -> dict[str, int]:
        """Return for each definition the bytes of the case that needs least."""
        smallest: dict[str, int] = {}
        for _, needed, definition in self.cases:
            smallest[definition] = min(needed, smallest.get(definition, needed))
        return smallest
