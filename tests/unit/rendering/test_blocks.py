"""A reference with its definitions: what they share, and the tables of tolerances."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from generator.ops.op_source import op_source, op_tolerances
from generator.ops.registry import op_specs
from generator.rendering.blocks import blocks
from generator.rendering.descriptions import grouped, shared_description
from generator.rendering.plan import RenderOptions, plan_tests
from generator.rendering.render import render_test_file
from generator.rendering.tolerance_table import table_bounds
from generator.rules.load import load_definitions
from kernel_judge.comparison.tolerance import choose_tolerance, of_definition
from tests.builders import ROOT, definition_value

RUN = "def run(x):\n    return x\n"


@cache
def plan_of(op_type: str) -> Any:
    found = load_definitions(ROOT, op_types=[op_type]).definitions
    return plan_tests(op_type, found, RenderOptions())


@pytest.mark.parametrize("op_type", op_specs())
def test_each_definition_is_in_one_block_that_has_its_reference(op_type: str) -> None:
    plan = plan_of(op_type)
    found = [
        (row.planned.definition.name, block.reference.source)
        for block in blocks(plan, {})
        for row in block.rows
    ]
    expected = [(c.definition.name, c.definition.reference) for c in plan.classes]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("op_type", op_specs())
def test_a_class_and_its_block_have_all_axes_tags_and_constants(op_type: str) -> None:
    for block in blocks(plan_of(op_type), {}):
        for row in block.rows:
            planned = row.planned
            assert {**block.axes, **row.axes} == dict(planned.axes)
            assert not block.axes.keys() & row.axes.keys()
            both = {c.name: c.value for c in (*block.constants, *row.constants)}
            assert both == {c.name: c.value for c in planned.constants}
            for constant in row.constants:
                assert constant in planned.constants
            assert sorted((*block.tags, *row.tags)) == sorted(planned.definition.tags)


@pytest.mark.parametrize("op_type", op_specs())
def test_the_first_row_that_applies_is_the_tolerance_that_judges(op_type: str) -> None:
    """In every case that an override names, and in others, against every source."""
    plan, overrides = plan_of(op_type), op_tolerances(op_type)
    sources = ("oracle", *op_source(op_type).providers)
    cases = {"any", *(o.case for o in overrides if o.case)}
    for constants, output, dtype in {
        (frozenset(c.constant_names), name, tensor.dtype)
        for c in plan.classes
        for name, tensor in c.definition.outputs.items()
    }:
        own = of_definition(overrides, constants)
        # a condition on sizes is a function: here it never holds
        own = tuple(o for o in own if o.where is None)
        rows = list(table_bounds(own, output, dtype, sources))
        # of calls on other places a table has those alone that have a bound of their own
        named = {*sources, *(source for row in rows for source in row.sources)}
        stated = {o.source for o in overrides if o.source}
        asked = {*sources, *(s for s in stated if {s, s.split("/")[0]} & named)}
        for source in asked:
            for case in cases:
                row = next(
                    row
                    for row in rows
                    if {source, source.split("/")[0]} & set(row.sources)
                    and row.condition in ("", f"in {case}")
                )
                chosen = choose_tolerance(
                    own, output, dtype, source, case=case, constants=constants
                )
                assert replace(row.tolerance, bias=chosen.bias) == chosen


def described(*texts: str) -> list[Any]:
    return [
        replace(definition_value(RUN, name=f"d{i}"), description=text)
        for i, text in enumerate(texts)
    ]


def test_numbers_that_differ_are_named_by_the_axis_that_has_them() -> None:
    texts = ("32 heads share 8. Base 2.", "40 heads share 40. Base 2.")
    values = [{"heads": 32, "kv": 8}, {"heads": 40, "kv": 40}]
    text, rest = shared_description(described(*texts), values)
    assert text == "heads heads share kv. Base 2."
    assert rest == ["", ""]


def test_a_number_without_a_name_stays_with_its_definition() -> None:
    texts = ("A layer of 128 experts. Base 2.", "A layer of 64 experts. Base 2.")
    text, rest = shared_description(described(*texts), [{"k": 1}, {"k": 2}])
    assert text == "Base 2."
    assert rest == ["A layer of 128 experts.", "A layer of 64 experts."]


def test_a_sentence_that_one_lacks_stays_with_the_other() -> None:
    text, rest = shared_description(described("One. Two.", "One."), [{}, {}])
    assert (text, rest) == ("One.", ["Two.", ""])


def test_equal_texts_stand_together_with_their_numbers_named() -> None:
    texts = ("128 of 4.", "", "64 of 4.", "Another.", "8 of 5.", "Another.")
    values = [{"n": 128}, {}, {"n": 64}, {}, {"n": 7}, {}]
    assert grouped(texts[:4], values[:4]) == [
        ("", [1]),
        ("n of 4.", [0, 2]),
        ("Another.", [3]),
    ]
    # 5 has no name: numbers are left as they are
    assert grouped(texts, values)[1:] == [
        ("128 of 4.", [0]),
        ("64 of 4.", [2]),
        ("8 of 5.", [4]),
        ("Another.", [3, 5]),
    ]


@pytest.mark.parametrize("op_type", op_specs())
def test_a_description_counts_the_definitions_that_it_is_of(op_type: str) -> None:
    for block in blocks(plan_of(op_type), {}):
        covered = 0
        for row in block.rows:
            assert not (covered and row.description), row.planned.definition.name
            if match := re.match(r"The next (\d+): ", row.description):
                covered = int(match[1])
            covered = max(0, covered - 1)
        assert covered == 0


def test_a_table_that_was_printed_is_named() -> None:
    text = render_test_file(plan_of("gqa_paged"))
    printed = re.findall(r"^# Tolerances[^\n]*:$", text, re.MULTILINE)
    named = re.findall(r"^# Tolerances.*: those of (\w+)", text, re.MULTILINE)
    assert 3 < len(printed) < len(named)
    assert all(f"def {name}():" in text for name in named if name.startswith("ref"))
