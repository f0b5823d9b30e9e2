"""The lengths of a call's axes, from its inputs and the definition's constraints."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import product
from typing import Any

import torch

from generator.dataset.python_source import parse_expression
from generator.rules.constraints import names_in
from kernel_judge.constraints import evaluate
from kernel_judge.definition import Interface

_MOST = 1 << 24


def sizes_of(
    interface: Interface, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> dict[str, int]:
    """Return the lengths of all axes: the known ones, of the inputs and the constraints.

    An axis of an optional input that is None has the length that solves an equation of
    the constraints: `len_indptr == batch_size + 1`.
    """
    sizes = dict(axes)
    for name, spec in interface.input_specs.items():
        if spec.shape and isinstance(inputs[name], torch.Tensor):
            sizes |= zip(spec.shape, inputs[name].shape, strict=True)
    outputs = interface.output_specs.values()
    lacking = {axis for spec in outputs for axis in spec.shape or ()} - sizes.keys()
    known = -1
    # one may follow from another
    while known < len(sizes):
        known = len(sizes)
        for axis, constraint in product(
            sorted(lacking - sizes.keys()), interface.constraints
        ):
            if names_in(constraint) - sizes.keys() == {axis}:
                sizes |= _solved(constraint, axis, sizes)
    return sizes


def _solved(constraint: str, axis: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the least length of an axis that makes an equation true, if one does."""
    tree = parse_expression(constraint)
    if not isinstance(tree, ast.Compare) or not isinstance(tree.ops[0], ast.Eq):
        return {}
    most = max(*sizes.values(), 1)
    # an axis may be more than all others: `places == tokens * topk + 135`
    if isinstance(tree.left, ast.Name) and tree.left.id == axis:
        below = ast.Compare(tree.left, [ast.Lt()], tree.comparators)
        while most < _MOST and evaluate(below, {**sizes, axis: most}):
            most *= 2
    lengths = ({axis: length} for length in range(most + 1))
    return next((one for one in lengths if evaluate(tree, {**sizes, **one})), {})
