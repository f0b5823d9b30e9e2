"""Make the test class of a definition in memory, as its rendered file has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.dataset.definition import Definition as Loaded
from generator.ops.op_source import OP_FUNCTIONS
from generator.ops.registry import op_module
from generator.rendering.plan import RenderOptions, TestClass, plan_tests
from generator.testing.definition import Interface
from generator.testing.metamorphic import Metamorphic
from generator.testing.replay import MatchesRecorded


class AllTests(MatchesRecorded, Metamorphic):
    """Hold the tests of a rendered class that need no live kernel."""


def rendered_class(
    definition: Loaded,
    axes: Mapping[str, int] | None = None,
    tolerance: float | None = None,
) -> type[AllTests]:
    """Return the class with the tests of one definition, without its reference.

    Tests against live kernels are left out: they need a GPU. `axes` replace constant
    axes of the definition, `tolerance` every atol and rtol.
    """
    plan = plan_tests(
        definition.op_type, [definition], RenderOptions(tolerance=tolerance)
    )
    (interface,), (planned,) = plan.interfaces, plan.classes
    attributes: dict[str, Any] = {
        "name": definition.name,
        "op_type": definition.op_type,
        "interface": Interface(
            interface.inputs, interface.outputs, interface.constraints
        ),
        "constants": tuple(constant.name for constant in planned.constants),
        "unresolved": planned.unresolved,
        "run_tolerance": tolerance,
        **{c.name.upper(): c.value for c in planned.constants},
        **_axes(planned, axes or {}),
        **(_op_attributes(definition.op_type) if plan.op is not None else {}),
    }
    return type(planned.class_name, (AllTests,), attributes)


def _axes(planned: TestClass, changed: Mapping[str, int]) -> dict[str, int]:
    upper = {name.upper(): length for name, length in changed.items()}
    return {name: upper.get(name, length) for name, length in planned.axes.items()}


def _op_attributes(op_type: str) -> dict[str, Any]:
    """Return what a rendered class takes from the op's module."""
    module = vars(op_module(op_type))
    functions = {
        name: staticmethod(module[name]) for name in OP_FUNCTIONS if name in module
    }
    return {
        **functions,
        "tolerances": module["TOLERANCES"],
        "policies": module.get("POLICIES", {}),
    }
