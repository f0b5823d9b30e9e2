"""Inputs have the bits that are fixed here, whatever numpy and torch make them.

update_input_hashes.py writes the file. Every recording depends on these bits.
"""

from __future__ import annotations

import json

import pytest

from generator.ops import OPS
from tests.builders import known
from tests.unit.ops.test_inputs import INTERFACES
from tests.unit.ops.update_input_hashes import FILE, hashes_of

HASHES = json.loads(FILE.read_text("utf-8"))


def test_every_op_type_is_among_these():
    assert {known(name).op_type for name in HASHES} == set(OPS)
    assert set(HASHES) == set(INTERFACES), (
        "python tests/unit/ops/update_input_hashes.py"
    )


@pytest.mark.parametrize("name", HASHES)
def test_inputs_are_those_of_the_first_release(name):
    assert hashes_of(name) == HASHES[name]
