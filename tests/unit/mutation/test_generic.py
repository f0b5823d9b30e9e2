"""Generic mutants: which defects are planted in which text, and what is left alone."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from generator.mutation.generic import generic_mutants
from generator.mutation.generic.mutant import Mutant
from tests.builders import REFERENCES, loaded


@cache
def mutants_of(text: str) -> tuple[Mutant, ...]:
    """Return the mutants of a reference, made once for all tests."""
    return generic_mutants(text)


def changes(source: str, kind: str | None = None) -> set[str]:
    """Return what the mutants of one line make of it, in one way of writing."""
    mutants = [m for m in generic_mutants(source) if kind in (None, m.kind)]
    return {ast.unparse(ast.parse(m.source)).strip() for m in mutants}


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("constant", "EPS = 1e-06", {"EPS = 1e-05"}),
        ("constant", "SCALE = 0.5", {"SCALE = 1.0"}),
        ("constant", "ZERO = 0.0", {"ZERO = 1.0"}),
        ("constant", "BLOCK = 128", {f"BLOCK = {n}" for n in (127, 129, 64, 256)}),
        ("constant", "K = 0", {"K = -1", "K = 1"}),
        ("flag", "y = x.mean(keepdim=True)", {"y = x.mean(keepdim=False)"}),
        ("axis", "y = x.sum(dim=-1)", {"y = x.sum(dim=-2)", "y = x.sum(dim=0)"}),
        ("axis", "y = f(x, axis=1)", {"y = f(x, axis=0)", "y = f(x, axis=2)"}),
        ("operator", "y = a + b", {"y = a - b"}),
        ("operator", "y = a * b + c", {"y = a / b + c", "y = a * b - c"}),
        ("operator", "y += a", {"y -= a"}),
        ("comparison", "m = a < b", {"m = a <= b", "m = a >= b"}),
        ("comparison", "m = a == b", {"m = a != b"}),
        ("logic", "m = a and b", {"m = a or b"}),
        ("sign", "m = ~a", {"m = a"}),
        ("sign", "y = -a * b", {"y = a * b"}),
        (
            "dropped",
            "y = (x - m) * s",
            {"y = x - m", "y = s", "y = x * s", "y = m * s"},
        ),
        ("dropped", "y = x.exp()", {"y = x"}),
        ("dropped", "y = torch.exp(x)", {"y = x"}),
        ("slice", "y = x[:n]", {"y = x[1:n]", "y = x[:n - 1]", "y = x[:n + 1]"}),
        ("slice", "y = x[n:]", {"y = x[n + 1:]", "y = x[n:-1]"}),
        ("slice", "y = x[:]", set()),
        ("range", "y = range(n)", {"y = range(1, n)", "y = range(n - 1)"}),
        (
            "range",
            "y = torch.arange(n)",
            {
                "y = torch.arange(1, n)",
                "y = torch.arange(n - 1)",
                "y = torch.arange(n) + 1",
            },
        ),
        ("index", "y = x[i]", {"y = x[i - 1]"}),
        ("index", "y = x[:, i]", {"y = x[:, i - 1]"}),
        ("swapped", "y = a @ b", {"y = b @ a"}),
        ("swapped", "y = a + b", set()),
        ("swapped", "y = f(a, b, c)", {"y = f(b, a, c)", "y = f(a, c, b)"}),
        ("swapped", "y = max(a, b)", set()),
        ("swapped", "up, gate = y", {"gate, up = y"}),
        ("swapped", "y = x[:, None, i]", {"y = x[:, i, None]"}),
        ("transpose", "y = a.T", {"y = a"}),
        (
            "transpose",
            "y = torch.einsum('ij,jk->ik', a, b)",
            {
                "y = torch.einsum('ji,jk->ik', a, b)",
                "y = torch.einsum('ij,kj->ik', a, b)",
                "y = torch.einsum('ij,jk->ki', a, b)",
            },
        ),
        ("function", "y = torch.log(x)", {"y = torch.log2(x)"}),
        ("function", "y = min(a, b)", {"y = max(a, b)"}),
        ("order", "y = x.topk(k)", {"y = x.topk(k, largest=False)"}),
        ("order", "y = x.sort(descending=True)", set()),
        ("flag", "y = x.sort(descending=True)", {"y = x.sort(descending=False)"}),
        ("mask", "y = x.masked_fill(m, 0)", {"y = x.masked_fill(~m, 0)"}),
        (
            "mask",
            "y = x.masked_fill(m, z)",
            {"y = x.masked_fill(~m, z)", "y = x.masked_fill(m, 0.0)"},
        ),
        ("precision", "y = x.float()", {"y = x.bfloat16().float()"}),
        (
            "precision",
            "y = x.to(torch.float32)",
            {"y = x.bfloat16().to(torch.float32)"},
        ),
        ("precision", "y = a @ b", {"y = (a @ b).bfloat16().float()"}),
        (
            "precision",
            "y = torch.zeros(n, dtype=torch.float32)",
            {"y = torch.zeros(n, dtype=torch.bfloat16)"},
        ),
        ("precision", "y = x.to(torch.bfloat16)", set()),
        ("statement", "x.relu_()", {"pass"}),
        ("statement", "y += x", {"pass", "y = x"}),
        ("statement", "y = x", set()),
        (
            "condition",
            "y = a if b else c",
            {"y = a if True else c", "y = a if False else c"},
        ),
    ],
)
def test_a_defect_is_planted(kind, source, expected):
    assert changes(source, kind) == expected


def test_an_assignment_is_left_out_only_where_the_name_has_a_value_before():
    text = "def run(x):\n    y = x + x\n    x = y\n    return x\n"
    (mutant,) = [m for m in generic_mutants(text) if m.kind == "statement"]
    assert (mutant.line, mutant.before, mutant.after) == (3, "x = y", "pass")


@pytest.mark.parametrize(
    "source",
    [
        '"""Add 1 and 2."""',
        "import torch",
        "assert x.shape[0] == 128",
        "if n % 2 == 1:\n    raise ValueError(n + 1)",
        "def run(x: list[1]) -> list[2]:\n    pass",
        "@no_grad(True)\ndef run(x):\n    pass",
        'y = f"{1 + 2}"',
        "class State:\n    size: 'int[1]'",
    ],
)
def test_what_computes_nothing_is_left_alone(source):
    assert changes(source) == set()


def test_a_check_with_another_branch_is_code():
    source = "if a < b:\n    raise ValueError\nelse:\n    c()"
    assert {m.kind for m in generic_mutants(source)} >= {"comparison", "condition"}


def test_a_number_whose_attribute_is_taken_stands_in_brackets():
    changed = [m.source for m in generic_mutants("y = torch.rand(4).abs()\n")]
    assert "y = (4).abs()\n" in changed


def test_text_behind_wide_characters_is_changed_in_the_right_place():
    assert changes('y = ("éé→", a - b)', "operator") == {"y = ('éé→', a + b)"}


def test_an_expression_over_several_lines_is_changed_whole():
    source = "y = (\n    a\n    - b\n)\nz = 1\n"
    (mutant,) = [m for m in generic_mutants(source) if m.kind == "operator"]
    assert ast.unparse(ast.parse(mutant.source)) == "y = a + b\nz = 1"


def test_comments_and_other_lines_stay_as_they_are():
    source = "# one\ny = a < b  # two\nz = 3\n"
    mutant = next(m for m in generic_mutants(source) if m.kind == "comparison")
    assert mutant.source == "# one\ny = (a <= b)  # two\nz = 3\n"
    assert (mutant.before, mutant.after) == ("y = a < b  # two", "y = (a <= b)  # two")
    assert mutant.name == "comparison 2:4 a < b → (a <= b)"


def test_two_ways_to_the_same_text_are_one_mutant():
    names = [m.name for m in generic_mutants("y = x[0 - 1]")]
    texts = [ast.unparse(ast.parse(m.source)) for m in generic_mutants("y = x[0 - 1]")]
    assert len(texts) == len(set(texts)) > 3
    assert len(names) == len(set(names))


@pytest.mark.parametrize("text", REFERENCES.values(), ids=list(REFERENCES))
def test_mutants_of_a_reference_are_python_and_all_differ(text):
    mutants = mutants_of(text)
    texts = {m.source for m in mutants} | {text}
    assert len(texts) == len(mutants) + 1 == len({m.name for m in mutants}) + 1


def test_the_same_text_has_the_same_mutants():
    text = REFERENCES["rmsnorm"]
    assert generic_mutants(text) == mutants_of(text)


def test_every_kind_is_planted_in_some_reference():
    kinds = {mutant.kind for text in REFERENCES.values() for mutant in mutants_of(text)}
    assert kinds == {
        *("constant", "flag", "axis", "operator", "comparison", "logic", "sign"),
        *("swapped", "dropped", "slice", "range", "index", "transpose", "function"),
        *("order", "mask", "precision", "statement", "condition"),
    }


@pytest.mark.parametrize("source", ["def run(:", "\0", "1" + "+1" * 100_000])
def test_what_is_no_python_is_refused(source):
    with pytest.raises((SyntaxError, ValueError, RecursionError, MemoryError)):
        generic_mutants(source)


def test_definitions_have_the_mutants_of_their_own_text():
    (eps,) = [
        m
        for m in generic_mutants(loaded("rmsnorm_h4096").reference)
        if m.kind == "constant"
    ]
    assert eps.after == "EPS = 0.0001"
