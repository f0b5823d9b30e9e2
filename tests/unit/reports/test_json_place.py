"""A pointer's line in a JSON text."""

from __future__ import annotations

import pytest

from generator.reports.json_place import line_of

TEXT = """{
  "name": "x",
  "axes": {
    "a/b": {"type": "const",
      "value": 3},
    "~": [1,
      {"x": 2}, [
      ]]
  }
}
"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("", 1),
        ("/name", 2),
        ("/axes", 3),
        ("/axes/a~1b/value", 5),
        ("/axes/~0/0", 6),
        ("/axes/~0/1/x", 7),
        ("/axes/~0/2", 7),
        ("/axes/~0/3", None),
        ("/nothing", None),
        ("/name/x", None),
    ],
)
def test_the_line_of_a_pointer(pointer: str, line: int | None) -> None:
    assert line_of(TEXT, pointer) == line


@pytest.mark.parametrize("text", ["", "{", '{"a"', '{"a": ', "[" * 100_000, "nul"])
def test_what_is_no_json_has_no_line(text: str) -> None:
    assert line_of(text, "/a/b") is None
