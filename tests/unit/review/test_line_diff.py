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


def test_a_changed_line_has_its_middle_marked() -> None:
    lines = line_diff(TEXT, TEXT.replace("1e-6", "1e-5"))
    assert kinds(lines) == [*[SAME] * 3, GONE, NEW, *[SAME] * 3, GAP]
    assert lines[3] == DiffLine(GONE, 4, None, "EPS = 1e-", "6", "")
    assert lines[4] == DiffLine(NEW, None, 4, "EPS = 1e-", "5", "")
    assert lines[-1].old == 1


def test_what_is_new_and_what_is_gone() -> None:
    assert kinds(line_diff("", "a\nb\n")) == [NEW, NEW]
    assert kinds(line_diff("a\n", "")) == [GONE]
    assert line_diff("a\n", "a\n") == (DiffLine(GAP, 1, None, ""),)


def test_texts_that_are_too_long_are_not_compared() -> None:
    assert line_diff("a\n" * MOST, "b\n") is None
    assert line_diff("a" * 1_000_000, "b") is None
    half = MOST // 2
    lines = line_diff("a\n" * half, "b\n" * half)
    assert kinds(lines) == [GONE] * half + [NEW] * half


LINES = st.lists(st.sampled_from(["a", "b", "  c", "\td", "e\x0b\u2028"]), max_size=30)


@given(LINES, LINES)
def test_both_texts_are_in_their_difference(old: list[str], new: list[str]) -> None:
    lines = line_diff("\n".join([*old, "z"]), "\n".join([*new, "z"]))
    assert lines is not None
    for side, texts, kind in (("old", [*old, "z"], GONE), ("new", [*new, "z"], NEW)):
        for line in lines:
            if line.kind in (SAME, kind):
                text = line.before + line.middle + line.after
                assert text == texts[getattr(line, side) - 1].expandtabs(4)
        shown = sum(line.kind in (SAME, kind) for line in lines)
        left = sum(line.old or 0 for line in lines if line.kind == GAP)
        assert shown + left == len(texts)
