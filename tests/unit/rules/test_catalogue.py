"""The catalogue has every declared rule once, and names can be chosen from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import generator
from generator.dataset.paths import UnknownName
from generator.rules.catalogue import GROUPS, RULES
from tests.validating import validate


def _declared_rules() -> Iterator[str]:
    """Yield the id of every rule of `validate` that a module of the package declares.

    Those of a review, on the paths of a change, are its own.
    """
    package = Path(generator.__file__).parent
    for path in package.glob("**/*.py"):
        if path.parent.name == "review":
            continue
        for statement in ast.parse(path.read_text()).body:
            match statement:
                case ast.Assign(
                    value=ast.Call(
                        func=ast.Name("blocking" | "error" | "warning" | "note"),
                        args=[ast.Constant(str(rule)), *_],
                    )
                ):
                    yield rule.partition(":")[0]


def test_the_catalogue_has_every_declared_rule_once() -> None:
    assert sorted(_declared_rules()) == sorted(
        rule.id for group in GROUPS.values() for rule in group
    )
    assert len(RULES) > 100


def test_unknown_selection_names_the_nearest(dataset: Any) -> None:
    with pytest.raises(UnknownName, match=r"'gemm_n8_k5'.*mean 'gemm_n8_k4'"):
        validate(dataset.root, names=["gemm_n8_k5"])
    with pytest.raises(UnknownName, match=r"No op_type .* mean 'gemm'"):
        validate(dataset.root, op_types=["gem"])
