"""Values in messages: short, on one line, and suggestions that make sense."""

from __future__ import annotations

import pytest

from generator.problems import pointer
from generator.problems.messages import (
    did_you_mean,
    listing,
    nearest,
    one_line,
    plural,
    quote,
)


def test_pointers_escape_by_rfc_6901() -> None:
    assert pointer(("a/b", 0, "~")) == "/a~1b/0/~0"
    assert pointer(()) == ""


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31m", "\u202e", "\ud800", "\u2028"])
def test_one_line_escapes_what_does_not_print(text: str) -> None:
    assert one_line(text).isprintable()
    assert quote(text).isprintable()
    assert one_line("plain é") == "plain é"


def test_long_text_is_clipped() -> None:
    assert one_line("x" * 1000) == "x" * 297 + "..."
    assert len(quote("x" * 1000)) == 62
    assert len(listing(["name"] * 1000)) == 200


def test_plural() -> None:
    assert [plural(n, "error") for n in (0, 1, 2)] == [
        "0 errors",
        "1 error",
        "2 errors",
    ]


def test_nearest_ignores_case_and_gives_up() -> None:
    assert nearest("GEMM", ["gemm", "rmsnorm"]) == "gemm"
    assert nearest("rmsnrm", ["gemm", "rmsnorm"]) == "rmsnorm"
    assert nearest("zzz", ["gemm"]) is None
    assert nearest("g" * 100_000, ["gemm"]) is None
    assert did_you_mean("gem", ["gemm"]) == " Did you mean 'gemm'?"
    assert did_you_mean("zzz", ["gemm"]) == ""
