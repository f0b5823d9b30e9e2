"""Text from a dataset stays text: literals, comments, names."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.rendering.python_text import (
    WIDTH,
    assignment,
    class_line,
    comment,
    literal,
)

NASTY = [
    '"""',
    "'''",
    "\\",
    "\\n",
    "a\nb\r\nc\rd",
    "\u2028\u2029\x85\x0b\x0c\x1c",
    "\x00\x1b[31m\x7f",
    "{{ x }} {% raw %}",
    "import os; os._exit(1)",
    "# noqa\n#!/bin/sh\n# -*- coding: latin-1 -*-",
    "\u202eevil\u202c",
    "🦙 größe",
    "soft\xadhyphen",
    "\t\ttab",
    '"' * 3 + "'" * 3 + "\\" * 3,
    "x" * 300,
    "word " * 60,
]
any_text = st.text(st.characters(exclude_categories=["Cs"]))


def with_examples(test):
    for text in NASTY:
        test = example(text)(test)
    return test


@with_examples
@given(any_text)
def test_a_literal_reads_back_as_the_text(text):
    written = literal(text)
    assert ast.literal_eval(written) == text
    # one line of printable characters: a reader and a terminal see what is there
    assert len(written.splitlines()) == 1
    assert written.isprintable()


@with_examples
@given(any_text)
def test_a_comment_is_nothing_but_comments(text):
    written = comment(text, indent="    ")
    for line in written.split("\n") if written else []:
        assert line.startswith("    #")
        assert line.isprintable()
    # nothing of it is executed, and no line of it ends early
    source = f"def f():\n{written}\n    return 1\n"
    kinds = {
        token.type
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.start[0] > 1 and token.string.startswith("#")
    }
    assert kinds <= {tokenize.COMMENT}
    (function,) = ast.parse(source).body
    assert [ast.unparse(node) for node in function.body] == ["return 1"]


@pytest.mark.parametrize("text", ["word " * 60, "x" * 300, "a\n\nb", "é" * 200])
def test_comments_are_wrapped(text):
    lines = comment(text, indent="  ").split("\n")
    assert len(lines) > 2
    assert all(len(line) <= WIDTH for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_a_comment_keeps_its_words():
    text = "eps is 1e-6, as in config.json; see model:gemma-3-27b."
    assert comment(text) == f"# {text}"
    assert comment("a\n\nb") == "# a\n#\n# b"
    assert comment("") == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a", '"a"'), ('say "a"', "'say \"a\"'"), ("it's", '"it\'s"'), ("\n", '"\\n"')],
)
def test_literals_have_the_quotes_of_a_formatter(text, expected):
    assert literal(text) == expected


def test_long_assignments_and_class_lines_are_wrapped():
    assert assignment("name", '"a"') == '    name = "a"'
    value = literal("v" * 76)
    assert assignment("name", value) == f"    name = (\n        {value}\n    )"
    assert class_line("TestA", "Base") == "class TestA(Base):"
    long = "T" * 80
    assert class_line(long, "Base") == f"class {long}(\n    Base\n):"
