"""Line ends in a definition: of the file, and of the text of `run()` in it.

A definition is known by the bytes of its file, so that a copy with other line ends is
another text, on every system the same one. What is rendered of it has one kind of line
ends, and no rule sees more or less.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.review.definition_diff import compare
from generator.rules.load import load_definitions
from tests.forking import run_module
from tests.functional.test_validate import validate

NAME = "rmsnorm_h4096"
FILE = f"definitions/rmsnorm/{NAME}.json"
GOOD = (Path(__file__).parents[2] / FILE).read_bytes()


def _in_text(end: str) -> bytes:
    value = json.loads(GOOD)
    value["reference"] = value["reference"].replace("\n", end)
    return json.dumps(value, indent=2).encode()


WAYS = {
    "the file, CRLF": GOOD.replace(b"\n", b"\r\n"),
    "the file, CR": GOOD.replace(b"\n", b"\r"),
    "the text, CRLF": _in_text("\r\n"),
    "the text, CR": _in_text("\r"),
    "both": _in_text("\r\n").replace(b"\n", b"\r\n"),
}


def _rendered(root: Path, data: bytes) -> str:
    (root / FILE).parent.mkdir(parents=True)
    (root / FILE).write_bytes(data)
    done = run_module("generator.cli.gen_tests", "--all", "--dataset", str(root))
    assert done.returncode == 0, done.stderr
    text = (root / "tests/references/test_rmsnorm.py").read_bytes()
    assert b"\r" not in text
    return text.decode()


def _problems(root: Path) -> list[tuple[str, int | None]]:
    found = json.loads(validate(root, "--format", "json", "--notes").stdout)
    return [(problem["rule"], problem.get("line")) for problem in found["problems"]]


@pytest.mark.parametrize("way", WAYS)
def test_line_ends_change_nothing(tmp_path: Path, way: str) -> None:
    roots = tmp_path / "lf", tmp_path / "other"
    texts = [_rendered(roots[0], GOOD), _rendered(roots[1], WAYS[way])]
    assert texts[0] == texts[1]
    assert _problems(roots[0]) == _problems(roots[1])
    (old,), (new,) = (load_definitions(root).definitions for root in roots)
    assert not any(difference.computes for difference in compare(old, new))
