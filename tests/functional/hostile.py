"""A corpus of hostile and broken datasets: each breaks a good one in one place.

A case is the rule that has to say so, and a function that gets the dataset's root.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.functional.test_validate import DEFINITION, FILE, WORKLOAD

LINES = "workloads/gemm/gemm_n8_k4.jsonl"
BLOB = "blob/workloads/gemm/gemm_n8_k4/a.safetensors"
SOLUTION = "solutions/baseline/gemm/gemm_n8_k4/fast.json"
TRACES = "traces/baseline/gemm/gemm_n8_k4.jsonl"
Break = Callable[[Path], Any]
SOLVED: dict[str, Any] = {
    "name": "fast",
    "definition": "gemm_n8_k4",
    "author": "baseline",
    "spec": {
        "language": "python",
        "target_hardware": ["cuda"],
        "entry_point": "main.py::run",
    },
    "sources": [
        {
            "path": "main.py",
            "content": "import flashinfer\ndef run(A, B, C):\n    C.copy_(A @ B.T)\n",
        }
    ],
}
TRACED: dict[str, Any] = {
    **WORKLOAD,
    "solution": "fast",
    "evaluation": {
        "status": "PASSED",
        "environment": {"hardware": "H100"},
        "timestamp": "2026-01-01T00:00:00",
        "correctness": {"max_relative_error": 0, "max_absolute_error": 0},
        "performance": {
            "latency_ms": 1,
            "reference_latency_ms": 2,
            "speedup_factor": 2,
        },
    },
}


def write(root: Path, path: str, content: Any) -> None:
    """Write bytes, text, or a value as JSON."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        target.write_bytes(content)
    else:
        target.write_text(content if isinstance(content, str) else json.dumps(content))


def make(root: Path) -> None:
    """Write the good dataset: a definition, a workload, a baseline and its trace."""
    write(root, FILE, DEFINITION)
    write(root, LINES, WORKLOAD)
    write(root, SOLUTION, SOLVED)
    write(root, TRACES, TRACED)


def holding(content: Any, path: str = FILE) -> Break:
    return lambda root: write(root, path, content)


def changing(**changes: Any) -> Break:
    return holding({**DEFINITION, **changes})


def _run(body: str) -> Break:
    return changing(reference=f"def run(A, B):\n{body}\n    return A\n")


def _constraint(text: str) -> Break:
    return changing(constraints=[text])


def _input(source: Any) -> Break:
    inputs = {"A": source, "B": {"type": "random"}}
    workload = {**WORKLOAD["workload"], "inputs": inputs}  # type: ignore[dict-item]
    return holding({**WORKLOAD, "workload": workload}, LINES)


def _path(path: str, key: str = "A") -> Break:
    return _input({"type": "safetensors", "path": path, "tensor_key": key})


def _blob(content: bytes, key: str = "A") -> Break:
    def breaks(root: Path) -> None:
        write(root, BLOB, content)
        _path(BLOB, key)(root)

    return breaks


def tensors(header: Any, body: bytes = b"") -> bytes:
    """Return a tensor file with any header: a value, or bytes as they stand."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def _entry(**changes: Any) -> bytes:
    entry = {"dtype": "F16", "shape": [3, 4], "data_offsets": [0, 24], **changes}
    return tensors({"A": entry}, bytes(24))


def link(path: str, target: str) -> Break:
    def breaks(root: Path) -> None:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(target)

    return breaks


def both(*steps: Break) -> Break:
    return lambda root: [step(root) for step in steps]


def pipe(path: str) -> Break:
    def breaks(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).unlink(missing_ok=True)
        os.mkfifo(root / path)

    return breaks


def sparse(path: str, head: bytes, size: int) -> Break:
    def breaks(root: Path) -> None:
        write(root, path, head)
        os.truncate(root / path, size)

    return breaks


def archive(member: str) -> bytes:
    """Return a zip file with one member of any name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr(member, "x")
    return stream.getvalue()


def _as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


DEEP = "(" * 5000 + "1" + ")" * 5000
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
TWICE = b'{"A": {"dtype": "F16"}, "A": {"dtype": "F16"}}'

CASES: dict[str, tuple[str, Break]] = {
    # paths
    "name leads upwards": ("name-unsafe", changing(name="../../etc/passwd")),
    "op_type leads upwards": ("name-unsafe", changing(op_type="../x")),
    "axis leads upwards": ("name-unsafe", changing(axes={"../x": {"type": "var"}})),
    "path leads upwards": ("workload-path", _path("blob/../../x.safetensors")),
    "path is absolute": ("workload-path", _path("/etc/passwd.safetensors")),
    "path has a drive": ("workload-path", _path("C:/x.safetensors")),
    "path has backslashes": ("workload-path", _path("blob\\..\\x.safetensors")),
    "path is an address": ("workload-path", _path("https://x/y.safetensors")),
    "path has a NUL": ("workload-path", _path("blob/a\0.safetensors")),
    "path has a line break": ("workload-path", _path("blob/a\n.safetensors")),
    "path is too long": ("workload-blob-missing", _path("a" * 900 + ".safetensors")),
    "path is a device": ("workload-path", _path("/dev/zero")),
    "key leads upwards": ("blob-key", _blob(_entry(), "../../etc/passwd")),
    "definition links out": (
        "path-link",
        link("definitions/gemm/x.json", "/etc/hosts"),
    ),
    "folder links out": ("path-link", link("definitions/out", "/etc")),
    "blob links out": (
        "workload-path",
        both(link(BLOB, "/etc/passwd"), _path(BLOB)),
    ),
    "solutions link out": ("path-link", link("solutions/x", "/etc")),
    "traces link out": ("path-link", link("traces/x", "/etc")),
    "blobs link out": ("path-link", link("blob/workloads/x", "/etc")),
    "definition links to itself": (
        "path-link",
        link("definitions/gemm/x.json", "x.json"),
    ),
    "folder links to its parent": ("path-link", link("definitions/gemm/up", "..")),
    "blob links to itself": (
        "workload-path",
        both(link(BLOB, "a.safetensors"), _path(BLOB)),
    ),
    "name for Windows": ("path-unportable", holding("", "definitions/gemm/con.txt")),
    "name with escapes": ("path-unportable", holding("", "blob/workloads/\x1b[2J/x/y")),
    # files that are no files
    "definition is a pipe": ("file-not-regular", pipe("definitions/gemm/x.json")),
    "workloads are a pipe": ("file-not-regular", pipe(LINES)),
    "blob is a pipe": ("workload-blob-missing", both(pipe(BLOB), _path(BLOB))),
    "definition is huge": ("file-too-large", sparse(FILE, b"{", 1 << 33)),
    "workloads are huge": ("file-too-large", sparse(LINES, b"{", 1 << 33)),
    "solution is huge": ("file-too-large", sparse(SOLUTION, b"{", 1 << 33)),
    "traces are huge": ("file-too-large", sparse(TRACES, b"{", 1 << 33)),
    "definition is a pointer": ("file-lfs-pointer", holding(LFS)),
    "blob is a pointer": ("workload-blob-lfs", _blob(LFS)),
    # tensor files
    "blob is empty": ("blob-format", _blob(b"")),
    "blob is short": ("blob-format", _blob(b"1234567")),
    "header claims all": ("blob-format", _blob(b"\xff" * 8 + b"{}")),
    "header claims a gigabyte": ("blob-format", _blob((1 << 30).to_bytes(8, "little"))),
    "header is a gigabyte": (
        "blob-format",
        both(sparse(BLOB, (1 << 30).to_bytes(8, "little"), 1 << 31), _path(BLOB)),
    ),
    "header is deep": ("blob-format", _blob(tensors(b"[" * 9000 + b"]" * 9000))),
    "header is an array": ("blob-format", _blob(tensors([]))),
    "header is not UTF-8": ("blob-format", _blob(tensors(b'"\xff"'))),
    "header has a key twice": ("blob-format", _blob(tensors(TWICE))),
    "header has NaN": ("blob-format", _blob(tensors(b'{"A": NaN}'))),
    "tensor is a number": ("blob-format", _blob(tensors({"A": 1}))),
    "dtype is unknown": ("blob-format", _blob(_entry(dtype="F128"))),
    "dtype is an object": ("blob-format", _blob(_entry(dtype={}))),
    "shape is enormous": ("blob-format", _blob(_entry(shape=[1 << 62, 1 << 62]))),
    "shape is negative": ("blob-format", _blob(_entry(shape=[-3, -4]))),
    "shape is of bools": ("blob-format", _blob(_entry(shape=[True, 12]))),
    "shape has many axes": ("blob-format", _blob(_entry(shape=[1] * 100_000))),
    "offsets go backwards": ("blob-format", _blob(_entry(data_offsets=[24, 0]))),
    "offsets are fractions": ("blob-format", _blob(_entry(data_offsets=[0.0, 24.0]))),
    "offsets go too far": ("blob-format", _blob(_entry(data_offsets=[24, 48]))),
    "tensors overlap": (
        "blob-format",
        _blob(
            tensors(
                {
                    key: {"dtype": "F16", "shape": [3, 4], "data_offsets": [0, 24]}
                    for key in "AB"
                },
                bytes(24),
            )
        ),
    ),
    "bytes to spare": ("blob-format", _blob(_entry() + b"PK\x03\x04")),
    "blob is an archive": ("blob-format", _blob(archive("../../../etc/passwd"))),
    "blob is a pickle": ("blob-format", _blob(b"\x80\x04cposix\nsystem\n(S'x'\ntR.")),
    # JSON
    "JSON has a BOM": ("json-bom", holding(b"\xef\xbb\xbf" + _as_bytes(DEFINITION))),
    "JSON has a key twice": (
        "json-duplicate-key",
        holding(b'{"name": "other", ' + _as_bytes(DEFINITION)[1:]),
    ),
    "JSON has CRLF inside of a text": (
        "json-syntax",
        holding(_as_bytes(DEFINITION).replace(b"\\n", b"\r\n")),
    ),
    "scalar is NaN": ("json-nan", _input({"type": "scalar", "value": float("nan")})),
    "integer has many digits": (
        "json-number",
        _input({"type": "scalar", "value": 10**99}),
    ),
    "name has a NUL": ("name-unsafe", changing(name="gemm\0_n8_k4")),
    "axis is a dunder": (
        "name-unsafe",
        changing(axes={**DEFINITION["axes"], "__class__": {"type": "var"}}),
    ),
    "names differ by case": (
        "name-case",
        holding(
            {**DEFINITION, "name": "GEMM_n8_k4"}, "definitions/gemm/GEMM_n8_k4.json"
        ),
    ),
    "paths differ by case": (
        "path-case",
        holding("{}", SOLUTION.replace("fast", "Fast")),
    ),
    "JSON is deep": ("json-depth", holding("[" * 100_000 + "]" * 100_000)),
    "JSON is cut": ("json-syntax", holding('{"name": "x')),
    "JSON has a comment": ("json-syntax", holding("{/* */}")),
    "JSON is UTF-16": ("json-encoding", holding('{"name": "x"}'.encode("utf-16"))),
    "JSON is NULs": ("json-syntax", holding(b"\0" * 1000)),
    "JSON has a million keys": (
        "file-too-large",
        holding({f"k{i}": i for i in range(100_000)}),
    ),
    "JSON has many wrong keys": (
        "too-many-problems",
        holding({f"k{i}": i for i in range(40_000)}),
    ),
    "JSON laughs": ("schema-type", changing(tags=[["lol"] * 100] * 100)),
    "number has many digits": (
        "json-number",
        holding('{"name": ' + "9" * 100_000 + "}"),
    ),
    "number is infinite": ("json-number", holding('{"name": 1e99999}')),
    "key is a megabyte": ("schema-unknown-field", changing(**{"k" * 1_000_000: 1})),
    "value is null": ("schema-type", holding("null")),
    "line is an array": ("schema-type", holding("[]\n", LINES)),
    "lines are empty": (
        "jsonl-blank-line",
        holding("\n" * 500 + json.dumps(WORKLOAD), LINES),
    ),
    # Python that is read, never run
    "reference is deep": ("reference-syntax", _run(f"    x = {DEEP}")),
    "reference has a NUL": ("reference-syntax", _run("    x = '\0'")),
    "reference has a surrogate": ("json-surrogate", _run("    x = '\ud800'")),
    "reference has a huge number": (
        "reference-syntax",
        _run(f"    x = {'9' * 10_000}"),
    ),
    "reference of a norm is no Python": (
        "reference-syntax",
        holding(
            {**DEFINITION, "op_type": "rmsnorm", "reference": "def run(A, B"},
            FILE.replace("/gemm/", "/rmsnorm/"),
        ),
    ),
    "reference is tabs and spaces": (
        "reference-syntax",
        _run("\tx = 1\n        y = 2"),
    ),
    "reference imports os": ("reference-import", _run("    import os; os._exit(0)")),
    "reference patches torch": ("reference-global", _run("    torch.allclose = print")),
    "constraint imports": (
        "constraint-name",
        _constraint("__import__('os').system('x')"),
    ),
    "constraint climbs": (
        "constraint-unchecked",
        _constraint("M.__class__.__base__.__subclasses__() == 1"),
    ),
    "constraint is a tower": ("constraint-unchecked", _constraint("9**9**9**9 > M")),
    "constraint is long": ("constraint-unchecked", _constraint("len([0] * 10**9) > M")),
    "constraint loops": (
        "constraint-unchecked",
        _constraint("all(i >= 0 for i in range(10**15))"),
    ),
    "constraint is deep": (
        "constraint-syntax",
        _constraint("(" * 900 + "M" + ")" * 900),
    ),
    "constraint shifts": ("constraint-unchecked", _constraint("(1 << 10**9) > M")),
    "constraint is no condition": ("constraint-syntax", _constraint("lambda: M")),
    "constraint divides by zero": ("constraint-unchecked", _constraint("M // 0 == 1")),
    "shape has many axes of a large size": (
        "workload-size",
        both(
            changing(
                inputs={
                    "A": {"shape": ["M"] * 1100, "dtype": "float16"},
                    "B": {"shape": ["N", "K"], "dtype": "float16"},
                }
            ),
            holding(
                {
                    **WORKLOAD,
                    "workload": {
                        **WORKLOAD["workload"],  # type: ignore[dict-item]
                        "axes": {"M": 9999},
                    },
                },
                LINES,
            ),
        ),
    ),
    # claims
    "tp has many digits": ("tag-value", changing(tags=["tp:" + "9" * 900])),
    "tag is long": ("schema-value", changing(tags=["tp:" + "9" * 9000])),
    "tp is no ASCII": ("tag-value", changing(tags=["tp:\u0663"])),
}
