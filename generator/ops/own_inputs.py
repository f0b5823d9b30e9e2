"""A case that only solutions are asked, with inputs that its op draws in no other one.

An op's own inputs are part of what recordings and audits rest on; these are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_judge.definition import Case
from kernel_judge.inputs.trial import MakeInputs


@dataclass(frozen=True)
class OwnInputs(Case):
    """A case whose inputs a function of its own makes, called as an op's is."""

    make_inputs: MakeInputs = field(kw_only=True)
