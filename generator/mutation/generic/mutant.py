"""A mutant: a reference with one defect."""

from __future__ import annotations

from dataclasses import dataclass, field

from generator.mutation.generic.code import Edit


@dataclass(frozen=True)
class Mutant:
    """A reference's text with one defect; `line` counts from 1.

    `name` gives the kind and place of the defect. It is unique within a reference and
    the same in every run. `before` and `after` are the line without and with it.
    """

    name: str
    kind: str
    line: int
    before: str
    after: str
    source: str
    edit: Edit = field(compare=False, repr=False)
