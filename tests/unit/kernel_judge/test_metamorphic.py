"""test_metamorphic itself: what it lists, records, and says where a relation breaks."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest
import torch

from generator.running.harness import Metamorphic
from generator.running.parametrize import _spread_relations
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition, Interface
from kernel_judge.relation import Bound, RelatedCase, Relation, alike
from kernel_judge.subject import Op

INTERFACE = Interface({"x": "float32[M, N]"}, {"y": "float32[M, N]"})
BOUNDS = {"y": Bound(Tolerance(rtol=0.0, atol=1e-3), "a reason")}
SHORT = RelatedCase("short", "small", {"M": 2})
LONG = RelatedCase("long", "medium", {"M": 9})


def made(definition, case, stream):
    return {"x": stream.values((case.axes["M"], definition.axes["N"]))}


def negated(subject):
    actual = subject.run({"x": -subject.inputs["x"]})
    yield from alike(subject.whole, {"y": -actual["y"]}, BOUNDS)


def as_the_peer(subject):
    yield from alike(subject.whole, subject.other()(subject.inputs), BOUNDS)


def relations(definition):
    return [
        Relation("negated", negated, [SHORT, LONG]),
        Relation("peer", as_the_peer, [SHORT], lambda other: other.name == "other"),
    ]


@pytest.fixture
def file(monkeypatch):
    """Return a function that adds a test class to a rendered file."""
    module = ModuleType("rendered_file")
    module.Base = Metamorphic
    monkeypatch.setitem(sys.modules, "rendered_file", module)

    def add(name, run):
        attributes = {
            "__module__": "rendered_file",
            "name": name,
            "op_type": "twice",
            "interface": INTERFACE,
            "reference": staticmethod(lambda: run),
            "op": Op(make_inputs=made, relations=relations, guesses_inputs=True),
            "axes": {"N": 3},
        }
        added = type(f"Test{name.title()}", (Metamorphic,), attributes)
        setattr(module, added.__name__, added)
        return added

    return add


def judged(cls, relation, case):
    """Return what one test records."""
    trial = cls.subject().trial(case)
    records = []
    try:
        cls().test_metamorphic(trial, relation, lambda _, text: records.append(text))
        text = ""
    except AssertionError as error:
        text = str(error)
    return [json.loads(record) for record in records], text


def test_relations_are_listed_case_by_case_and_a_peers_where_it_is(file):
    cls = file("twice", lambda x: 2 * x)
    names = [
        (r.name, case)
        for r, case in cls.file().relations(cls.subject(), ("small", "medium"))
    ]
    assert names == [("negated", SHORT), ("negated", LONG)]
    other = file("other", lambda x: 2 * x)
    names = [
        (r.name, case)
        for r, case in cls.file().relations(cls.subject(), ("small", "medium"))
    ]
    assert names == [("negated", SHORT), ("peer", SHORT), ("negated", LONG)]
    assert cls.file().peer(relations(None)[1]) is other.subject()
    assert [r.name for r, _ in cls.file().relations(cls.subject(), ("medium",))] == [
        "negated"
    ]
    assert cls.file().relations(cls.subject(), ("large",)) == []


def test_what_holds_is_recorded_with_its_source_and_reason(file):
    cls = file("twice", lambda x: 2 * x)
    ((record,), text) = judged(cls, relations(None)[0], SHORT)
    assert text == ""
    assert (record["source"], record["case"]) == ("metamorphic:negated", "short")
    assert (record["verdict"], record["output"]) == ("PASSED", "y")
    assert (record["reason"], record["max_abs"]) == ("a reason", 0.0)


def test_what_breaks_is_recorded_and_said_with_the_bound(file):
    cls = file("shifted", lambda x: x + 1)
    ((record,), text) = judged(cls, relations(None)[0], SHORT)
    assert record["verdict"] == "FAILED"
    assert "shifted 'y' against metamorphic:negated, short: FAILED" in text
    assert "the bound: a reason" in text


def test_of_siblings_that_disagree_both_are_named(file):
    cls = file("twice", lambda x: 2 * x)
    file("other", lambda x: 3 * x)
    _, text = judged(cls, relations(None)[1], SHORT)
    assert "metamorphic:peer" in text
    assert "this or other is wrong" in text


def test_the_users_tolerance_counts(file):
    cls = file("shifted", lambda x: x + 0.1)
    cls.run_tolerance = 0.3
    assert judged(cls, relations(None)[0], SHORT)[1] == ""


def test_a_relation_that_claims_nothing_is_red(file):
    cls = file("twice", lambda x: 2 * x)
    silent = Relation("silent", lambda subject: iter(()), [SHORT])
    assert "metamorphic:silent claims nothing of short" in judged(cls, silent, SHORT)[1]


def test_tests_are_named_after_relation_and_case(file):
    cls, given = file("twice", lambda x: 2 * x), []

    class Metafunc:
        def parametrize(self, names, params, **options):
            given.append((names, params, options))

    _spread_relations(Metafunc(), cls, ("small", "medium", "large"), ())
    _spread_relations(Metafunc(), cls, ("large",), ())
    (names, params, options), (_, (skipped,), _) = given
    assert (names, options["indirect"]) == (["related", "relation"], ["related"])
    assert [p.id for p in params] == ["negated-short", "negated-long"]
    assert params[0].values[0] is SHORT
    assert skipped.id == "no-relation"
    assert str(skipped.values[0]) == "no relation is listed for it"


def test_a_definition_is_that_of_the_class(file):
    cls = file("twice", lambda x: torch.relu(x))
    assert cls.definition() == Definition("twice", "twice", INTERFACE, {"N": 3})
