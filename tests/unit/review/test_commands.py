"""The commands that a review proposes run tests of the definitions alone."""

from __future__ import annotations

import pytest

from generator.review.checklist import ChecklistAnswer
from generator.review.commands import commands

GEMM = "tests/references/test_gemm.py"
HEAD = ("definitions/gemm/a.json", "workloads/norm/a.jsonl", "definitions/norm/b.json")


@pytest.mark.parametrize(
    ("names", "tested"),
    [
        (("a",), f"{GEMM} --definition a"),
        (
            ("b", "a"),
            f"{GEMM} tests/references/test_norm.py --definition b --definition a",
        ),
        (("gone",), "tests/references --definition gone"),
        (tuple(map(str, range(21))), "tests/references"),
    ],
)
def test_the_files_of_the_definitions_are_named(
    names: tuple[str, ...], tested: str
) -> None:
    answers = [ChecklistAnswer(name, "a point", "unknown", "nothing") for name in names]
    _, run, *_ = commands(answers, HEAD)
    assert run == f"pytest {tested} --device cuda --results results.jsonl"


def test_a_folder_of_their_own_is_named_by_each_command_that_asks_for_it() -> None:
    answers = [ChecklistAnswer("a", "a point", "unknown", "nothing")]
    head = [*HEAD, "tests/rendered/SHA256SUMS", "tests/references/test_theirs.py"]
    lines = list(commands(answers, head))
    assert lines[0].endswith(" --output tests/rendered")
    assert lines[1].startswith("pytest tests/rendered/test_")
    assert lines[-1].endswith(" --tests tests/rendered")
    # where both are there, the default's are meant
    both = [*head, "tests/references/SHA256SUMS"]
    assert next(commands(answers, both)).endswith("--definition-name a")
