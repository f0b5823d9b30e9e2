"""The examples of docs/judge.md do what the page says of them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.builders import ROOT
from tools.judge_examples import FOLDER, examples, passed

EXAMPLES = examples()
PAGE = (ROOT / "docs" / "judge.md").read_text("utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_right_kernel_passes_and_each_defect_is_refused(name):
    example = EXAMPLES[name]
    assert passed(example, example.right, 40)[1] == 40
    assert len(example.wrong) == 3
    let_pass = 0
    for kernel in example.wrong.values():
        theirs, ours = passed(example, kernel, 10)
        assert ours == 0
        let_pass += theirs
    # of the thread's own bound some of them hide
    assert let_pass > 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_shows_the_example_as_it_is(name):
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    assert f"```python\n{text}```" in PAGE
    assert len(text.splitlines()) <= 50


def test_what_the_page_types_runs():
    (first, *_) = re.findall(r"```python\n(import torch.*?)```", PAGE, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-P", "-c", first],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert done.stdout == shown.group(1)
