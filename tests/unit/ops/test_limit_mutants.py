"""Mutants of limits: right within the limit, wrong beyond it."""

from __future__ import annotations

import inspect

import pytest
import torch

from generator.ops.limit_mutants import Maxima, limit_mutants
from kernel_judge.definition import Definition, Interface

INTERFACE = Interface(
    {
        "x": "bfloat16[rows, width]",
        "table": "float8_e4m3fn[slots, width]",
        "places": "int32[rows]",
        "row_indptr": "int32[ends]",
        "count": "int64",
    },
    {"y": "float32[rows, width]", "total": "float32[ends]"},
)
DEFINITION = Definition("made_up", "made_up", INTERFACE, {"width": 2})


def run(x, table, places, row_indptr, count):
    y = x.float() + table[places.long()].float() + count
    return y, row_indptr.float()


def inputs(rows=6, slots=9):
    return (
        torch.ones(rows, 2, dtype=torch.bfloat16),
        torch.ones(slots, 2).to(torch.float8_e4m3fn),
        torch.arange(rows, dtype=torch.int32) + slots - rows,
        torch.tensor([0, 1, rows], dtype=torch.int32),
        3,
    )


def mutant(name, maxima):
    found = {m.name: m for m in limit_mutants(DEFINITION, maxima)}
    return found[name].wrap(run)


def test_there_is_a_mutant_for_each_power_of_two_below_the_maximum():
    names = [m.name for m in limit_mutants(DEFINITION, Maxima(axes={"rows": 9}))]
    assert names == [f"right for the first {n} of rows alone" for n in (8, 4, 2)]


@pytest.mark.parametrize(("largest", "count"), [(2, 0), (3, 1), (4, 1), (5, 2)])
def test_the_maximum_itself_lies_beyond_every_limit(largest, count):
    assert len(limit_mutants(DEFINITION, Maxima(axes={"rows": largest}))) == count


def test_constant_axes_and_axes_of_no_tensor_have_none():
    assert limit_mutants(DEFINITION, Maxima(axes={"width": 64, "other": 64})) == ()


def test_float_inputs_and_unknown_ones_have_no_limit_of_values():
    assert limit_mutants(DEFINITION, Maxima(values={"x": 64, "other": 64})) == ()


def test_outputs_are_zero_beyond_the_length_and_right_before_it():
    wrong = mutant("right for the first 4 of rows alone", Maxima(axes={"rows": 6}))
    expected, _ = run(*inputs())
    actual, total = wrong(*inputs())
    assert torch.equal(actual[:4], expected[:4])
    assert not actual[4:].any()
    assert torch.equal(total, run(*inputs())[1])


def test_within_the_limit_nothing_changes():
    wrong = mutant("right for the first 8 of rows alone", Maxima(axes={"rows": 9}))
    assert all(map(torch.equal, wrong(*inputs()), run(*inputs())))


def test_an_axis_of_inputs_alone_is_cut_there():
    wrong = mutant("right for the first 8 of slots alone", Maxima(axes={"slots": 9}))
    actual, _ = wrong(*inputs())
    expected, _ = run(*inputs())
    # the last row alone reads slot 8
    assert torch.equal(actual[:-1], expected[:-1])
    assert torch.equal(actual[-1] + 1, expected[-1])


def test_greater_values_are_taken_as_the_limit():
    wrong = mutant("places above 4 taken as 4", Maxima(values={"places": 8}))
    values = list(inputs())
    values[1] = (torch.arange(9)[:, None] * torch.ones(2)).to(torch.float8_e4m3fn)
    actual, _ = wrong(*values)
    assert actual[:, 0].tolist() == [3 + 4, *[4 + 4] * 5]


def test_a_number_is_limited_like_a_tensor():
    wrong = mutant("count above 2 taken as 2", Maxima(values={"count": 3}))
    assert torch.equal(wrong(*inputs())[0] + 1, run(*inputs())[0])


def test_entries_of_a_segment_beyond_the_limit_are_ignored():
    maxima = Maxima(segments={"row_indptr": 5})
    wrong = mutant("row_indptr: the first 2 of a segment alone", maxima)
    values = list(inputs())
    values[0] = torch.arange(12, dtype=torch.bfloat16).reshape(6, 2)
    actual, total = wrong(*values)
    expected, ends = run(*values)
    # segments of 1 and 5 rows: the first keeps its row, the second its first two
    assert torch.equal(actual[:3], expected[:3])
    assert not actual[3:].any()
    assert torch.equal(total, ends)


def test_integers_beyond_a_segment_s_limit_are_those_of_its_first_entry():
    seen = []

    def spy(x, table, places, row_indptr, count):
        seen.append(places.tolist())
        return run(x, table, places, row_indptr, count)

    maxima = Maxima(segments={"row_indptr": 5})
    (m,) = [m for m in limit_mutants(DEFINITION, maxima) if "first 2" in m.name]
    m.wrap(spy)(*inputs())
    assert seen == [[3, 4, 5, 4, 4, 4]]


def test_the_signature_stays():
    wrong = mutant("right for the first 2 of rows alone", Maxima(axes={"rows": 3}))
    assert inspect.signature(wrong) == inspect.signature(run)


def test_an_unread_input_has_no_mutants():
    maxima = Maxima(axes={"rows": 6, "slots": 9}, values={"places": 8, "count": 3})
    every = [m.name for m in limit_mutants(DEFINITION, maxima)]
    some = [m.name for m in limit_mutants(DEFINITION, maxima, {"places", "table"})]
    # rows are an output's as well; of slots the table is the only tensor
    assert {*every} - {*some} == {n for n in every if "places" in n or "slots" in n}
