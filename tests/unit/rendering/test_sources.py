"""References one level deeper: the same tree, or a module of their own."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.ops.op_source import OP_FIELDS, op_source, op_tolerances
from generator.ops.op_values import op_of
from generator.ops.registry import op_folder, op_specs
from generator.rendering.embedding import can_be_nested, nest, source_lines
from generator.rendering.plan import RenderOptions, plan_tests
from generator.rendering.python_text import literal
from generator.rendering.render import render_test_file
from tests.builders import ROOT, definition_value

Q = '"""'
NESTABLE = {
    "odd indentation in a docstring": (
        f"def run(x):\n    {Q}First\n  second\nthird\n\t\tfourth\n    {Q}\n    return x\n"
    ),
    "a string of code": f"TEXT = {Q}\ndef run(y):\n  pass\n{Q}\ndef run(x):\n    return x\n",
    "single triple quotes": "A = '''a\n  b\n\n'''\ndef run(x):\n    return A\n",
    "f-string over lines": f"def run(x):\n    return f{Q}a\n {{x}}\n  b{{x!r:>{{x}}}}\n{Q}\n",
    "f-string within a bracket": f"def run(x):\n    return (f{Q}\n{{\nx\n}}\n{Q},\n  1)\n",
    "nested f-strings": "def run(x):\n    return f'''{f\"{x}\"}\n  tail'''\n",
    "raw and bytes": f"R = rb{Q}\\\n  \\d\n{Q}\ndef run(x):\n    return R\n",
    "backslash continuation": "def run(x):\n    return x + \\\n  1\n",
    "backslash within a string": "def run(x):\n    return 'a\\\nb'\n",
    "tabs": "def run(x):\n\tif x:\n\t\treturn 1\n\treturn 2\n",
    "decorators": "import torch\n@torch.no_grad()\n@staticmethod\ndef run(x):\n    return x\n",
    "comment at column 0": "def run(x):\n    y = x\n# odd\n    return y\n",
    "comment alone at the end": "def run(x):\n    return x\n# the end",
    "CRLF": "def run(x):\r\n    y = '''a\r\n b'''\r\n    return y\r\n",
    "CR": "def run(x):\r    return x\r",
    "blank lines with spaces": "def run(x):\n    y = 1\n   \n\t\n    return y\n",
    "form feed": "A = 1\n\x0c\ndef run(x):\n    return A\n",
    "separators that are no line ends": "A = 'a\u2028b\x85c'\ndef run(x):\n    return A\n",
    "no newline at the end": "def run(x): return x",
    "brackets over lines": "def run(\nx,\n  y=[\n1,\n],\n):\n    return x\n",
    "unicode names": "größe = 1\ndef run(x):\n    return größe\n",
    "lambda and helper": "def helper(x):\n    return x\nrun = lambda x: helper(x)\n",
}
NOT_NESTABLE = {
    "a form feed begins the columns anew": "\fdef run(x):\n    return x\n",
    "one level more is too many": "def run(x):\n"
    + "".join(f"{' ' * level}if x:\n" for level in range(1, 99))
    + f"{' ' * 99}return x\n",
    "global": "N = 0\ndef run(x):\n    global N\n    N += 1\n    return N\n",
    "nonlocal": "def f():\n    a = 1\n    def g():\n        nonlocal a\n        a = 2\n    g()\n",
    "star import": "from math import *\ndef run(x):\n    return floor(x)\n",
    "future": "from __future__ import annotations\ndef run(x: Undefined):\n    return x\n",
    "a builtin is shadowed": "max = max(1, 2)\ndef run(x):\n    return max\n",
    "globals()": "A = 1\ndef run(x):\n    return globals()['A']\n",
    "exec": "exec('def run(x): return x')\n",
    "locals": "locals()['run'] = lambda x: x\n",
    "a class that reads what it assigns": (
        "A = 1\nclass C:\n    A = A\ndef run(x):\n    return C.A\n"
    ),
}


def statements(text: str) -> list[str]:
    return [ast.dump(node) for node in ast.parse(text).body]


def wrapped(source: str) -> ast.FunctionDef:
    (function,) = ast.parse(f"def reference():\n{nest(source)}\n\n    return run").body
    return function


@pytest.mark.parametrize("source", NESTABLE.values(), ids=NESTABLE)
def test_nesting_keeps_the_tree(source):
    assert can_be_nested(source)
    *body, returned = wrapped(source).body
    assert [ast.dump(node) for node in body] == statements(source)
    assert ast.unparse(returned) == "return run"


@pytest.mark.parametrize("source", NOT_NESTABLE.values(), ids=NOT_NESTABLE)
def test_what_would_mean_something_else_is_not_nested(source):
    assert not can_be_nested(source)


@pytest.mark.parametrize(
    "name", ["global", "star import", "future", "a builtin is shadowed", "globals()"]
)
def test_it_is_embedded_as_a_module_of_its_own(name):
    source = NOT_NESTABLE[name]
    text = render_test_file(
        plan_tests("twice", [definition_value(source)], RenderOptions())
    )
    assert "from kernel_judge.reference import load_reference" in text
    assert embedded_lines(text) == source_lines(source)
    assert not any(
        isinstance(node, ast.FunctionDef) and node.name.startswith("reference_")
        for node in ast.parse(text).body
    )


def embedded_lines(text: str) -> list[str]:
    (lines,) = (
        ast.literal_eval(node.args[0])
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "load_reference"
    )
    return lines


@pytest.mark.parametrize("source", NESTABLE.values(), ids=NESTABLE)
def test_a_rendered_file_holds_the_tree_of_its_reference(source):
    text = render_test_file(
        plan_tests("twice", [definition_value(source)], RenderOptions())
    )
    functions = {
        node.name: node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
    (name,) = (n for n in functions if n.startswith("reference_"))
    *body, _ = functions[name].body
    assert [ast.dump(node) for node in body] == statements(source)


def test_every_reference_of_the_repository_is_nested():
    references = {
        json.loads(path.read_text("utf-8"))["reference"]
        for path in (ROOT / "definitions").glob("*/*.json")
    }
    assert len(references) > 10
    for source in references:
        assert can_be_nested(source)
        assert [ast.dump(n) for n in wrapped(source).body[:-1]] == statements(source)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"))


@settings(deadline=None)
@given(texts, st.sampled_from(['"', "'"]), st.sampled_from(["", "r", "f"]))
def test_any_string_survives_nesting(content, quote, prefix):
    content = content.replace("\\", "/").replace(quote, "_")
    if prefix == "f":
        content = content.replace("{", "{{").replace("}", "}}")
    source = (
        f"def run(x):\n    y = {prefix}{quote * 3}{content}{quote * 3}\n    return y"
    )
    assert can_be_nested(source)
    assert [ast.dump(n) for n in wrapped(source).body[:-1]] == statements(source)


@settings(deadline=None)
@given(texts)
def test_any_literal_survives_nesting(content):
    source = f"TEXT = {literal(content)}\ndef run(x):\n    return TEXT"
    (assigned, *_) = wrapped(source).body
    assert ast.literal_eval(assigned.value) == content


@pytest.mark.parametrize("op_type", op_specs())
def test_an_ops_module_is_read_as_text(op_type):
    source = op_source(op_type)
    text = (op_folder(op_type) / "op.py").read_text("utf-8")
    assert source.body in text
    assert source.fields == tuple(f for f in OP_FIELDS if f in source.fields)
    declared = op_of(op_type)
    assert source.providers == tuple(declared.kernels)
    assert set(source.policies) == set(declared.policies)
    assert {"cases", "make_inputs", "oracle"} <= set(source.fields)


def _bounds(overrides):
    # functions are made anew by each reading: their names stand for them
    return [
        (
            replace(o, where=None, growth=None),
            o.where is None,
            getattr(o.growth, "__name__", None),
        )
        for o in overrides
    ]


@pytest.mark.parametrize("op_type", op_specs())
def test_bounds_that_are_read_are_those_of_the_op(op_type):
    """The renderer executes a few statements of op.py; the tests import all of it."""
    assert _bounds(op_tolerances(op_type)) == _bounds(op_of(op_type).tolerances)


def test_bounds_are_read_without_torch():
    """So that rendering takes as long as it does."""
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from generator.ops.op_source import op_tolerances\n"
        "from generator.ops.registry import op_specs\n"
        "print(sum(len(op_tolerances(op_type)) for op_type in op_specs()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) == sum(len(op_of(o).tolerances) for o in op_specs())
