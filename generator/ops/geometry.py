"""Smaller geometries of the large families, so that hundreds of mutants can be run.

What a defect does shows in few heads, experts' columns or tokens as well as in many:
the references read these lengths from their inputs. Lengths that a tolerance is derived
from, and constants of the interface, stay as they are. An op_type says in its module
`audit` which lengths it has shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from generator.ops.axes import Axes
from generator.ops.registry import optional_op_module

Fit = Callable[[Mapping[str, Any]], dict[str, Any]]


def reduced(op_type: str, axes: Axes) -> dict[str, int]:
    """Return the axes of an op_type that are audited shorter than they are."""
    return _shorter(op_type, axes, "reduced")


def tiny(op_type: str, axes: Axes) -> dict[str, int]:
    """Return the axes on which hundreds of random cases are run within seconds."""
    return _shorter(op_type, axes, "tiny", "reduced")


def for_limits(op_type: str, axes: Axes) -> dict[str, int]:
    """Return the axes that are shorter where mutants are right up to a limit.

    Not one that bounds an input's values: within the shorter one they cross no limit.
    """
    return _shorter(op_type, axes, "for_limits", "reduced")


def fitting(op_type: str, axes: Axes) -> Fit | None:
    """Return what makes a workload's values such as shorter axes take, None without any.

    A file may state numbers of tokens, of which a shorter vocabulary has fewer.
    """
    fit = getattr(optional_op_module(op_type, "audit"), "fit", None)
    return None if fit is None else partial(fit, axes)


def unrounded(op_type: str, axes: Axes) -> dict[str, int]:
    """Return the axes that a run in float64 has shorter, of families of large weights."""
    return _shorter(op_type, axes, "unrounded")


def _shorter(op_type: str, axes: Axes, *functions: str) -> dict[str, int]:
    """Return what the first of the functions that the op_type has says."""
    module = optional_op_module(op_type, "audit")
    shrink = next(
        filter(None, (getattr(module, name, None) for name in functions)), None
    )
    if shrink is None:
        return {}
    try:
        wanted: Axes = shrink(axes)
    except (KeyError, IndexError, ZeroDivisionError):
        # an interface of another shape: as it is
        return {}
    return {
        name: length
        for name, length in wanted.items()
        if name in axes and length < axes[name]
    }
