"""The lines of two references that differ, as the page shows them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from generator.review.line_diff import (
    GAP,
    GONE,
    MOST,
    NEW,
    SAME,
    DiffLine,
    line_diff,
)

TEXT = "import torch\n\n\nEPS = 1e-6\n\n\ndef run(x):\n    return x\n"


def kinds(lines: tuple[DiffLine, ...] | None) -> list[str]:
    assert lines is not None
    return [line.kind for line in lines]


def test_a_changed_line_stands_twice_with_its_numbers() -> None:
    lines = line_diff(f"#\n{TEXT}", f"#\n{TEXT}".replace("1e-6", "1e-5"))
    assert kinds(lines) == [GAP, *[SAME] * 3, GONE, NEW, *[SAME] * 3]
    assert lines[4] == (GONE, 5, None, "EPS = 1e-6")
    assert lines[5] == (NEW, None, 5, "EPS = 1e-5")


def test_what_is_new_and_what_is_gone() -> None:
    assert kinds(line_diff("", "a\nb\n")) == [NEW, NEW]
    assert kinds(line_diff("a\n", "")) == [GONE]
    assert line_diff("a\n", "a\n") == ()


def test_texts_that_are_too_long_are_not_compared() -> None:
    assert line_diff("a\n" * MOST, "b\n") is None
    assert line_diff("a" * 1_000_000, "b") is None
    half = MOST // 2
    lines = line_diff("a\n" * half, "b\n" * half)
    assert kinds(lines) == [GONE] * half + [NEW] * half


LINES = st.lists(st.sampled_from(["a", "b", "  c", "\td", "e\x0b\u2028"]), max_size=30)


@given(LINES, LINES)
def test_a_text_with_what_changed_is_the_other(old: list[str], new: list[str]) -> None:
    lines = line_diff("\n".join([*old, "z"]), "\n".join([*new, "z"]))
    assert lines is not None
    was, now = ([line.expandtabs(4) for line in (*side, "z")] for side in (old, new))
    for line in lines:
        assert line.old is None or was[line.old - 1] == line.text
        assert line.new is None or now[line.new - 1] == line.text
    gone = {line.old for line in lines if line.kind == GONE}
    come = {line.new for line in lines if line.kind == NEW}
    kept = [text for n, text in enumerate(was, 1) if n not in gone]
    assert kept == [text for n, text in enumerate(now, 1) if n not in come]
