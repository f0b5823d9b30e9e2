"""Codings that a reference names, which a file with its text would have."""

from __future__ import annotations

import pytest

from generator.dataset.definition import build_definition
from generator.rules.hidden_text import check
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
