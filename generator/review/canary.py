"""Canaries: tests beside those of a change that a sound judge turns red.

The reference runs in the process that judges it, and may patch the judge. So each test
class of a run has two canaries, one before all tests and one after: the same class,
with the same inputs, cases and comparisons, of which the outputs are wrong. One that
does not fail says that the others' passes are worth nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from generator.rendering.plan import TestPlan
from generator.rendering.render import environment


@dataclass(frozen=True)
class Canaries:
    """The canaries' places, and their ids with those of the tests that they copy."""

    file: Path
    before: Mapping[str, str]
    after: Mapping[str, str]

    @property
    def all(self) -> dict[str, str]:
        """Return the canaries, with the tests that they copy."""
        return {**self.before, **self.after}

    def arguments(self, tests: Iterable[Path]) -> list[str]:
        """Return what pytest is to run, in this order."""
        return [
            *(f"{self.file}::{name}" for name in self.before),
            *(str(path) for path in tests),
            *(f"{self.file}::{name}" for name in self.after),
        ]


def plant(plans: Sequence[TestPlan], listed: Sequence[str], tests: Path) -> Canaries:
    """Write canaries beside rendered tests, under names that nobody can guess.

    `listed` are the ids of the tests, `TestX::test_y[case]`. A class without a listed
    test gets none. Raises OSError.
    """
    folder = tests / f"t{secrets.token_hex(8)}"
    folder.mkdir()
    file = folder / f"test_{secrets.token_hex(8)}.py"
    classes = []
    planted: list[dict[str, str]] = [{}, {}]
    every = [(plan, planned) for plan in plans for planned in plan.classes]
    for canaries, (plan, planned) in product(planted, every):
        # the first test that wrong outputs turn red
        compares = plan.op is not None and planned.unresolved is None
        test = "test_matches_oracle" if compares else "test_contract"
        wanted = f"{planned.class_name}::{test}["
        if copied := next((name for name in listed if name.startswith(wanted)), ""):
            name = f"Test{secrets.token_hex(8)}"
            classes.append((name, plan.module, planned.class_name))
            canaries[f"{name}::{copied.partition('::')[2]}"] = copied
    facts = {
        "corrupt_outputs": Path(__file__)
        .with_name("corrupt_outputs.py")
        .read_text("utf-8"),
        "modules": sorted(plan.module for plan in plans),
        "classes": classes,
    }
    for path, template in (
        (file, "review/canaries.py.jinja"),
        (folder / "conftest.py", "review/canaries_conftest.py.jinja"),
    ):
        path.write_text(environment().get_template(template).render(facts), "utf-8")
    return Canaries(file, *planted)
