"""Inputs have the bits that are kept, whatever numpy and torch make them.

tests/golden/update.py writes the files. Every recording depends on these bits.
"""

from __future__ import annotations

import pytest

from generator.ops.family import every_spec
from tests.golden.op_types import INTERFACES, KEPT, hashes_of, kept

INPUTS = kept("inputs")


def test_every_op_type_with_definitions_has_its_file():
    assert set(KEPT) == {spec.op_type for spec in every_spec()}, (
        "python tests/golden/update.py"
    )


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_are_those_of_the_first_release(name):
    assert hashes_of(name, INTERFACES[name]) == INPUTS[name]["cases"]
