"""Hostile datasets by place and way: each file that is read, replaced in each way."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.functional.hostile import (
    FILE,
    LINES,
    SOLUTION,
    SOLVED,
    TRACED,
    TRACES,
    Break,
    link,
    pipe,
    sparse,
    write,
)
from tests.functional.test_validate import DEFINITION, WORKLOAD

PLACES: Mapping[str, tuple[str, Any]] = {
    "definition": (FILE, DEFINITION),
    "workloads": (LINES, WORKLOAD),
    "solution": (SOLUTION, SOLVED),
    "traces": (TRACES, TRACED),
}


def _folder(path: str) -> Break:
    def breaks(root: Path) -> None:
        (root / path).unlink()
        write(root, f"{path}/inside.txt", "x")

    return breaks


def _content(make: Callable[[bytes], bytes]) -> Callable[[str, Any], Break]:
    def way(path: str, value: Any) -> Break:
        data = make(json.dumps(value).encode())
        return lambda root: write(root, path, data)

    return way


_DEEP = b"[" * 2000 + b"]" * 2000
_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
WAYS: Mapping[str, tuple[str, Callable[[str, Any], Break]]] = {
    "is a pipe": ("file-not-regular", lambda path, _: pipe(path)),
    "is a folder": ("file-not-regular", lambda path, _: _folder(path)),
    "links to /dev/zero": ("path-link", lambda path, _: link(path, "/dev/zero")),
    "links to /proc": ("path-link", lambda path, _: link(path, "/proc/self/environ")),
    "links to nothing": ("path-link", lambda path, _: link(path, "nowhere")),
    "links to itself": ("path-link", lambda path, _: link(path, Path(path).name)),
    "has 8 GiB": ("file-too-large", lambda path, _: sparse(path, b"{", 1 << 33)),
    "is a pointer of LFS": ("file-lfs-pointer", _content(lambda _: _LFS)),
    "is deep": ("json-depth", _content(lambda _: _DEEP)),
    "is a deep member": (
        "json-depth",
        _content(lambda data: data[:-1] + b', "x": ' + _DEEP + b"}"),
    ),
    "has a NUL": ("json-syntax", _content(lambda data: data[:9] + b"\0" + data[9:])),
    "is cut": ("json-syntax", _content(lambda data: data[: len(data) // 2])),
    "is twice": ("json-syntax", _content(lambda data: data + b" " + data)),
    "is XML": ("json-syntax", _content(lambda _: b"<?xml version='1.0'?><x/>")),
    "is a bomb of entities": (
        "json-syntax",
        _content(lambda _: b'<!DOCTYPE x [<!ENTITY a "' + b"&b;" * 9999 + b'">]>'),
    ),
    "is UTF-16": ("json-encoding", _content(lambda d: d.decode().encode("utf-16"))),
    "has a byte of no text": (
        "json-encoding",
        _content(lambda d: d[:9] + b"\xff" + d[9:]),
    ),
    "has a BOM": ("json-bom", _content(lambda data: b"\xef\xbb\xbf" + data)),
    "has a key twice": (
        "json-duplicate-key",
        _content(lambda d: b'{"a":1,"a":2,' + d[1:]),
    ),
    "has NaN": ("json-nan", _content(lambda d: d[:-1] + b', "x": NaN}')),
    "has Infinity": ("json-nan", _content(lambda d: d[:-1] + b', "x": -Infinity}')),
    "has a number of 100,000 digits": (
        "json-number",
        _content(lambda d: d[:-1] + b', "x": ' + b"9" * 100_000 + b"}"),
    ),
    "has half of a pair": (
        "json-surrogate",
        _content(lambda d: d[:-1] + b', "x": "\\ud800"}'),
    ),
    "is an array": ("schema-type", _content(lambda _: b"[]")),
    "is a number": ("schema-type", _content(lambda _: b"1")),
    "is an array of itself": ("schema-type", _content(lambda d: b"[" + d + b"]")),
    "has a key of a terminal's commands": (
        "schema-unknown-field",
        _content(lambda d: d[:-1] + b', "\\u001b[2J::error::": 1}'),
    ),
    "has a million commas": (
        "file-too-large",
        _content(lambda d: d[:-1] + b', "x": [' + b"1," * 1_000_000 + b"1]}"),
    ),
}

CASES = {
    f"{place} {way}": (rule, make(path, value))
    for place, (path, value) in PLACES.items()
    for way, (rule, make) in WAYS.items()
}
