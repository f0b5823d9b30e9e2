"""Docstrings are comments where nothing can read them."""

from __future__ import annotations

import pytest

from generator.review.definition_diff import compare_code

HEAD = "import numpy\nimport torch\n\n\n"
RUN = "@torch.no_grad()\ndef run(x):\n    '''{}'''\n    return x\n"


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        (HEAD + RUN, True),
        (HEAD + "def scale():\n    '''{}'''\n    return 1\n\n\ny = scale()\n", True),
        (HEAD + RUN + "numpy.info(run)\n", False),
        (HEAD + RUN.replace("torch.no_grad()", "numpy.info"), False),
        (HEAD + RUN + "\ny = [run]\n", False),
        (HEAD + "class A:\n    '''{}'''\n", False),
        (HEAD + "class A:\n    def f(self):\n        '''{}'''\n\n\nA().f\n", False),
        ("import numpy as torch\n" + RUN, False),
        ("'''{}'''\n" + HEAD + RUN, True),
    ],
)
def test_a_docstring_counts_where_its_function_is_handed_on(
    text: str, is_same: bool
) -> None:
    assert (
        compare_code(*(text.replace("{}", word) for word in ("one", "two")))[0]
        is is_same
    )


def test_a_docstring_more_is_none_that_anything_reads() -> None:
    old = HEAD + "def run(x):\n    return x\n"
    new = HEAD + "def run(x):\n    '''Return x.'''\n    return x\n"
    assert compare_code(old, new)[0]
