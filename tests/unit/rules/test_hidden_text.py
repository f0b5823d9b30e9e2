"""Codings that a reference names, names of other letters, pages that are not what is seen."""

from __future__ import annotations

import pytest

from generator.dataset.definition import build_definition
from generator.rules.hidden_text import check, is_shown_whole
from tests.functional.test_validate import DEFINITION


@pytest.mark.parametrize(
    ("begins", "line"),
    [
        ("# -*- coding: utf-7 -*-\n", 1),
        ("\n# vim: set fileencoding=rot13 :\n", 2),
        ("#\r# coding: utf-16\r", 2),
        ("# -*- coding: UTF-8 -*-\n", None),
        ("# coding: ascii\n", None),
        ('x = "coding: utf-7"\n', None),
        # Python looks at two lines
        ("\n\n# coding: utf-7\n", None),
    ],
)
def test_a_coding_that_readers_of_the_json_do_not_use(
    begins: str, line: int | None
) -> None:
    value = {**DEFINITION, "reference": begins + DEFINITION["reference"]}
    found = list(check(build_definition(value, "x.json", "0" * 64)))
    assert [problem.line for problem in found] == ([] if line is None else [line])


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("\uff52un = 1", True),
        ("\u0440ows = 1", True),
        ("rows = '\u03b1'  # χ² of rows", False),
        ("rows = 1", False),
        # what is no Python is another rule's
        ("rows = ('\u03b1'", False),
    ],
)
def test_a_name_is_of_letters_of_ascii(line: str, hidden: bool) -> None:
    value = {**DEFINITION, "reference": f"{DEFINITION['reference']}{line}\n"}
    problems = list(check(build_definition(value, "x.json", "0" * 64)))
    assert [problem.rule for problem in problems] == ["reference-hidden"] * hidden


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        ("Grüße \u26a0\ufe0f \U0001f468\u200d\U0001f4bb\r\n\tχ²\n".encode(), True),
        (b"", True),
        ("a\u202eb".encode(), False),
        (b"a\x1b[2J", False),
        (b"\xff", False),
        ("a\U000e0041".encode(), False),
    ],
)
def test_a_page_is_shown_whole(data: bytes, whole: bool) -> None:
    assert is_shown_whole(data) is whole
