"""The test class of a definition: what its rendered file would have, made in memory."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from generator.definition import Definition as Loaded
from generator.ops import OPS
from generator.plan import Options, TestClass, plan_tests
from generator.sources import OP_FUNCTIONS
from generator.support.definition import Interface
from generator.support.metamorphic import Metamorphic
from generator.support.recorded import MatchesRecorded


class AllTests(MatchesRecorded, Metamorphic):
    """Have the tests of a rendered class that need no live kernel."""


def rendered_class(
    definition: Loaded,
    axes: Mapping[str, int] | None = None,
    tolerance: float | None = None,
) -> type[AllTests]:
    """Return the class with the tests of one definition, without its reference.

    The tests against live kernels are not among them: those need a GPU. `axes` replace
    constant axes of the definition, `tolerance` every atol and rtol.
    """
    plan = plan_tests(definition.op_type, [definition], Options(tolerance=tolerance))
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
        **_of_the_op(definition.op_type),
    }
    return type(planned.class_name, (AllTests,), attributes)


def _axes(planned: TestClass, changed: Mapping[str, int]) -> dict[str, int]:
    upper = {name.upper(): length for name, length in changed.items()}
    return {name: upper.get(name, length) for name, length in planned.axes.items()}


def _of_the_op(op_type: str) -> dict[str, Any]:
    """Return what a rendered file has of the op's module; nothing without a module."""
    if op_type not in OPS:
        return {}
    module = vars(importlib.import_module(f"generator.ops.{op_type}"))
    functions = {
        name: staticmethod(module[name]) for name in OP_FUNCTIONS if name in module
    }
    return {
        **functions,
        "tolerances": module["TOLERANCES"],
        "policies": module.get("POLICIES", {}),
    }
