"""Judge whether what a GPU kernel returns is right: bounds, comparisons, checks.

Needs torch and numpy; recordings need safetensors. Imports no pytest.

    import kernel_judge
    kernel_judge.assert_matches(actual, expected, terms=4096)

asserts that two tensors agree up to the arithmetic that is named, and says on failure
which element is off, by how much, and where the bound comes from. `docs/judge.md` has
runnable examples.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel_judge.checked import Checked
    from kernel_judge.comparison.arithmetic import Bounds, assert_matches, bounds
    from kernel_judge.comparison.compare import Comparison, compare
    from kernel_judge.comparison.metrics import Metrics
    from kernel_judge.comparison.tolerance import Override, Tolerance
    from kernel_judge.definition import Backend, Case, Definition, Interface, TensorSpec
    from kernel_judge.inputs.seeded_inputs import Stream
    from kernel_judge.inputs.trial import Trial
    from kernel_judge.relation import Relation
    from kernel_judge.subject import Kernel, Op, Subject, SubjectFile

_PLACES = {
    "checked": ("Checked",),
    "comparison.arithmetic": ("Bounds", "assert_matches", "bounds"),
    "comparison.compare": ("Comparison", "compare"),
    "comparison.metrics": ("Metrics",),
    "comparison.tolerance": ("Override", "Tolerance"),
    "definition": ("Backend", "Case", "Definition", "Interface", "TensorSpec"),
    "inputs.seeded_inputs": ("Stream",),
    "inputs.trial": ("Trial",),
    "relation": ("Relation",),
    "subject": ("Kernel", "Op", "Subject", "SubjectFile"),
}
# each name is imported when it is asked for: constraints and interfaces need no torch
__all__ = [
    "Backend",
    "Bounds",
    "Case",
    "Checked",
    "Comparison",
    "Definition",
    "Interface",
    "Kernel",
    "Metrics",
    "Op",
    "Override",
    "Relation",
    "Stream",
    "Subject",
    "SubjectFile",
    "TensorSpec",
    "Tolerance",
    "Trial",
    "assert_matches",
    "bounds",
    "compare",
]


def __getattr__(name: str) -> Any:
    """Import a public name. Raises AttributeError for another."""
    place = next((module for module, names in _PLACES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"kernel_judge has no {name}; it has {', '.join(__all__)}")
    return getattr(import_module(f"kernel_judge.{place}"), name)


def __dir__() -> list[str]:
    return [*__all__, *globals()]
