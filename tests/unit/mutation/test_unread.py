"""Which inputs a reference's text never names."""

from __future__ import annotations

import pytest

from generator.mutation.unread import unread_inputs

RUN = "def run(x, last_page_len, *, scale=1.0):\n    return x{use}\n"


@pytest.mark.parametrize(
    ("use", "unread"),
    [
        ("", {"last_page_len", "scale"}),
        (" * scale", {"last_page_len"}),
        (" + len(last_page_len)", {"scale"}),
        (" * locals()['scale']", set()),
        (" * eval('scale')", set()),
    ],
)
def test_an_input_is_unread_where_its_name_stands_nowhere_in_the_body(use, unread):
    assert unread_inputs(RUN.format(use=use)) == unread


def test_a_text_without_one_run_has_none():
    assert unread_inputs("x = 1\n") == frozenset()


def test_a_function_within_run_counts_as_its_body():
    text = (
        "def run(x, y):\n    def inner():\n        return y\n    return x + inner()\n"
    )
    assert unread_inputs(text) == frozenset()
