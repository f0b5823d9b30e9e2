"""A small dataset with everything that a review looks at, out of a real one.

Two definitions of one op_type are in it from the start, with tests, evidence, audit and
recording; a third one is for pull requests to add. What the dataset lacks of these is
made up: the review is what is under test.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from generator.dataset.atomic_write import write_atomically
from generator.dataset.changes import UNRECORDED
from generator.dataset.definition import LoadedDefinition
from generator.dataset.file_reading import is_file, read_bytes
from generator.dataset.paths import AUDIT, CHECKERS_KEPT, discover_definitions
from generator.ops.op_source import op_tolerances
from generator.ops.registry import op_packages
from generator.problems import Failure
from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.review.settings import SETTINGS
from generator.rules.basis import basis_of_bytes
from generator.rules.load import load_definitions
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.recording.recording_file import METADATA_KEY, content_digest

Files = dict[str, bytes]
"""Path → content; the mode is an ordinary file's unless a pull request says otherwise."""

TESTS = "tests/references"
EVIDENCE = "verification/2026-01-01_audit.json"
_FEWEST = 3
_LARGEST = 64 * 1024
_MACHINE = {"device": "cuda", "gpu": "a GPU", "flashinfer": "0"}


@dataclass(frozen=True)
class AuditedDataset:
    """The files of the dataset, and the names that pull requests are about.

    `first` and `second` are in it; `third` is the file of a definition that is not, and
    `third_files` are all of that definition.
    """

    op_type: str
    first: str
    second: str
    third: str
    files: Mapping[str, bytes]
    third_files: Mapping[str, bytes]

    def definition(self, name: str) -> str:
        """Return the path of a definition."""
        return f"definitions/{self.op_type}/{name}.json"

    def workloads(self, name: str) -> str:
        """Return the path of a definition's workloads."""
        return f"workloads/{self.op_type}/{name}.jsonl"

    def recording(self, name: str) -> str:
        """Return the path of a definition's recording."""
        return f"blob/ground_truth/{self.op_type}/{name}.safetensors"

    @property
    def test(self) -> str:
        """Return the path of the rendered test."""
        return f"{TESTS}/test_{self.op_type}.py"

    @property
    def solution(self) -> str:
        """Return the path of the solution that the first definition has."""
        return f"solutions/audit/{self.op_type}/{self.first}/audit.json"

    @property
    def traces(self) -> str:
        """Return the path of the traces that the first definition has."""
        return f"traces/audit/{self.op_type}/{self.first}.jsonl"


def make_subject(dataset: Path) -> AuditedDataset:
    """Return the subject made of a dataset's smallest fitting definitions.

    Those of an op_type with tolerances come first: more can be changed for the worse.
    Raises Failure where it has no three definitions of one op_type with workloads.
    """
    names = [d.name for d in _fitting(dataset)]
    op_type = _fitting(dataset)[0].op_type
    first, second, third = names
    files: Files = {}
    third_files: Files = {}
    for name in names:
        of = third_files if name == third else files
        for path in (
            f"definitions/{op_type}/{name}.json",
            f"workloads/{op_type}/{name}.jsonl",
        ):
            of[path] = read_bytes(dataset, path)
    if is_file(dataset, SETTINGS):
        files[SETTINGS] = read_bytes(dataset, SETTINGS)
    subject = AuditedDataset(op_type, first, second, third, files, third_files)
    files[subject.recording(first)] = a_recording("of the first")
    files[UNRECORDED] = _json({second: "No GPU has it."})
    files[CHECKERS_KEPT] = _json({"format": 1, "definitions": {}})
    files[EVIDENCE] = evidence(files, subject, first, second)
    files[AUDIT] = audit(files, subject, first, second)
    files[subject.solution] = _json(solution(subject))
    files[subject.traces] = _trace(subject)
    files["LICENSE"] = b"A licence.\n"
    files |= rendered(files)
    return subject


def _fitting(dataset: Path) -> list[LoadedDefinition]:
    discovered = discover_definitions(dataset)
    by_op: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for file in discovered.files:
        lines = dataset / f"workloads/{file.op_type}/{file.name}.jsonl"
        is_known = file.op_type in op_packages() and lines.is_file()
        if is_known and not _has_blobs(dataset, str(lines.relative_to(dataset))):
            size = os.path.getsize(dataset / file.path) + lines.stat().st_size
            by_op[file.op_type].append((size, file.name))
    fitting = {
        op_type: sorted(sizes)[:_FEWEST]
        for op_type, sizes in by_op.items()
        if len(sizes) >= _FEWEST
    }
    for op_type in sorted(
        fitting,
        key=lambda op: (_is_exact(op), sum(size for size, _ in fitting[op])),
    ):
        names = [name for _, name in fitting[op_type]]
        loaded = load_definitions(dataset, names=names)
        if len(loaded.definitions) == _FEWEST:
            by_name = {d.name: d for d in loaded.definitions}
            return [by_name[name] for name in names]
    raise Failure(
        "An audit of reviews needs three definitions of one known op_type that have "
        "workloads without blobs."
    )


def _is_exact(op_type: str) -> bool:
    """Return whether an op_type states no tolerance that a pull request could widen."""
    return all(override.tolerance == EXACT for override in op_tolerances(op_type))


def _has_blobs(dataset: Path, lines: str) -> bool:
    try:
        data = read_bytes(dataset, lines, _LARGEST)
    except OSError:
        return True
    return b"safetensors" in data


def rendered(
    files: Mapping[str, bytes], change: Callable[[Path], Any] | None = None
) -> Files:
    """Return the tests that are rendered of files, with SHA256SUMS."""
    with TemporaryDirectory(prefix="trace-dataset-audit-") as name:
        root = Path(name)
        for path, data in files.items():
            if path.startswith(("definitions/", f"{TESTS}/SHA256SUMS")):
                write_atomically(root / path, data)
        output = root / TESTS
        loaded = load_definitions(root)
        generate(root, loaded, output, RenderOptions(), everything=True, force=True)
        if change is not None:
            change(output)
        paths = (path for path in output.rglob("*") if path.is_file())
        return {p.relative_to(root).as_posix(): p.read_bytes() for p in paths}


def entry(
    files: Mapping[str, bytes], subject: AuditedDataset, name: str, **sources: Any
) -> dict[str, Any]:
    """Return an entry of evidence that is about a definition's text as it is."""
    usual = {
        "flashinfer": {"verdict": "PASSED", "cases": 5},
        "recorded:flashinfer": {"verdict": "PASSED", "cases": 5},
        "oracle": {"verdict": "PASSED", "cases": 5},
    }
    path = subject.definition(name)
    digest = basis_of_bytes(files[path], path)
    return {"sha256": digest, "sources": sources or usual}


def evidence(
    files: Mapping[str, bytes], subject: AuditedDataset, *names: str, **machine: str
) -> bytes:
    """Return a file of evidence on definitions as they are."""
    entries = {name: entry(files, subject, name) for name in names}
    run = {
        "date": "2026-01-01",
        "machine": {**_MACHINE, **machine},
        "definitions": entries,
    }
    return _json({"format": 1, "runs": [run]})


def audit(files: Mapping[str, bytes], subject: AuditedDataset, *names: str) -> bytes:
    """Return an audit.json in which one defect of each definition survived."""
    counts = {"caught": 40, "equivalent": 2, "survived": 1, "timed out": 0}
    entries = {
        name: {
            "sha256": basis_of_bytes(
                files[subject.definition(name)], subject.definition(name)
            ),
            "counts": counts,
            "survivors": [{"name": "a", "before": "x", "after": "y"}],
            "reduced": {},
            "gen_tests": "0",
            "torch": "0",
            "date": "2026-01-01",
        }
        for name in names
    }
    return _json({"format": 1, "definitions": entries})


def solution(subject: AuditedDataset) -> dict[str, Any]:
    """Return a solution of the first definition."""
    text = "def run(*arguments):\n    return arguments[0]\n"
    return {
        "name": "audit",
        "definition": subject.first,
        "author": "audit",
        "spec": {
            "language": "python",
            "target_hardware": ["cpu"],
            "entry_point": "main.py::run",
            "destination_passing_style": False,
        },
        "sources": [{"path": "main.py", "content": text}],
    }


def _trace(subject: AuditedDataset) -> bytes:
    first = subject.files[subject.workloads(subject.first)].splitlines()[0]
    line = {
        **json.loads(first),
        "solution": "audit",
        "evaluation": {
            "status": "PASSED",
            "environment": {"hardware": "a GPU"},
            "timestamp": "2026-01-01T00:00:00",
            "correctness": {"max_relative_error": 0, "max_absolute_error": 0},
            "performance": {
                "latency_ms": 1,
                "reference_latency_ms": 2,
                "speedup_factor": 2,
            },
        },
    }
    return json.dumps(line).encode() + b"\n"


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def a_recording(of: str) -> bytes:
    """Return a recording of no tensor, with the digest that belongs to it."""
    body = {"of": of}
    digest = content_digest(json.dumps(body, separators=(",", ":")), b"")
    about = json.dumps({"sha256": digest, "body": body})
    header = json.dumps({"__metadata__": {METADATA_KEY: about}}).encode()
    return len(header).to_bytes(8, "little") + header
