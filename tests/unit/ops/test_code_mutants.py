"""Codes of 8 bits at the ends of their dtype are planted, and moved inputs reach them."""

from __future__ import annotations

import pytest
import torch

from generator.ops.code_mutants import code_mutants
from generator.ops.far_factors import far_codes
from kernel_judge.definition import Case, Definition, Interface
from kernel_judge.inputs.lazy_weights import Tiled, base_length
from kernel_judge.inputs.moved import moved
from tests.unit.ops.geometries import definition_and_run, reduced
from tests.unit.ops.survivors import Caught

INTERFACE = Interface(
    {
        "x": "float8_e4m3fn[rows]",
        "codes": "int8[rows]",
        "mx_scale": "int8[rows]",
        "wide": "float32[rows]",
    },
    {"y": "float32[rows]"},
)
DEFINITION = Definition("made_up", "made_up", INTERFACE, {})
VALUES = torch.tensor([-448.0, 416.0, 2.0**-7, -(2.0**-9), 2.0**-6])


def taken(name):
    """Return what run() gets in a mutant."""
    (mutant,) = (m for m in code_mutants(DEFINITION) if m.name == name)
    seen = []
    codes = torch.tensor([-128, -127, 0, 1, 127], dtype=torch.int8)
    given = VALUES.to(torch.float8_e4m3fn), codes, codes, VALUES
    mutant.wrap(lambda *given: seen.extend(given))(*given)
    return seen


def test_the_ends_of_codes_are_taken_as_their_neighbours():
    assert [m.name.partition(":")[0] for m in code_mutants(DEFINITION)] == [
        *("x", "x", "codes")
    ]
    flushed = taken("x: subnormal codes taken as 0")[0].float()
    assert flushed.tolist() == [-448.0, 416.0, 0.0, 0.0, 2.0**-6]
    largest = taken("x: the largest code taken as the one before")[0].float()
    assert largest.tolist() == [-416.0, 416.0, *VALUES[2:].tolist()]
    least = taken("codes: the least code taken as the next")
    assert least[1].tolist() == [-127, -127, 0, 1, 127]
    assert least[2].tolist()[0] == -128


def test_moved_codes_are_subnormal_or_the_largest_with_any_torch():
    small, large = far_codes(Case("some", "small", {}), x=1, scale=-1)
    codes = torch.tensor([100.0, -150.0]).to(torch.float8_e4m3fn)
    given = {"x": codes, "scale": 1.0}
    smaller = moved(given, small.moved)
    assert smaller["scale"] == 2.0**13
    assert 0 < smaller["x"].float().abs().max() < 2.0**-5
    assert moved(given, large.moved)["x"].float().tolist() == [384.0, -448.0]


def test_stand_ins_of_weights_are_changed_where_they_are_drawn():
    base = torch.full((base_length((2, 3)),), 448.0).to(torch.float8_e4m3fn)
    named = Interface({"x": "float8_e4m3fn[rows, columns]"}, {})
    seen = []
    for mutant in code_mutants(Definition("made_up", "made_up", named, {})):
        mutant.wrap(lambda *given: seen.extend(given))(Tiled(base, (2, 3)))
    assert [given.base.float().max().item() for given in seen] == [448.0, 416.0]


@pytest.mark.parametrize("name", ["int8_mm_n4096_k4096", "bmm_fp8_b128_n128_k512"])
def test_no_case_but_those_of_the_ends_shows_them(name):
    usual = ["one-row", "odd-rows", "rows", "factors-up", "factors-down"]
    caught = Caught(*definition_and_run(name, reduced(name)), cases=usual)
    planted = {mutant.name for mutant in code_mutants(caught_definition(name))}
    assert {*caught.survivors} & planted


def caught_definition(name):
    """Return the definition on the axes that tests have."""
    return definition_and_run(name, reduced(name))[0]
