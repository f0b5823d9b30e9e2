"""Find the files that belong to definitions: workloads, solutions, traces, blobs."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path

from generator.dataset.paths import files, folders, inside, wrong_extension
from generator.problems import Problem, Rule, error, warning
from generator.problems.messages import quote

WORKLOAD_ORPHAN = error("""workload-orphan: A workload file belongs to no definition.
    Fix: Rename the file to its definition's op_type and name, or remove it.
    Finds: workloads/gemm/gone.jsonl without definitions/gemm/gone.json""")
SOLUTION_ORPHAN = error("""solution-orphan: A solution's path names a definition that
    the dataset does not have.
    Fix: Correct the folder, or add the definition.
    Finds: solutions/baseline/gemm/gone/x.json without definitions/gemm/gone.json""")
TRACE_PLACE = warning("""trace-place: Traces lie at traces/<op_type>/, without the
    author's folder.
    Fix: Move them to traces/<author>/<op_type>/<definition>.jsonl.
    Finds: traces/gemm/gemm_n8_k4.jsonl""")
TRACE_ORPHAN = error("""trace-orphan: A trace file's path names a definition that the
    dataset does not have.
    Fix: Correct the path, or add the definition.
    Finds: traces/baseline/gemm/gone.jsonl without definitions/gemm/gone.json""")
BLOB_UNUSED = warning("""blob-unused: No workload points to the blob.
    Fix: Remove the blob, or add the workload that it belongs to.
    Finds: a blob left behind after its line was removed""")

Key = tuple[str, str]
"""An op_type and the name of a definition, as paths say them."""

BLOBS = "blob/workloads"


@dataclass
class Artifacts:
    """The paths of what each definition has, and Problems.

    `blobs` are the definitions that have a folder of them.
    """

    workloads: dict[Key, list[str]] = field(default_factory=dict)
    solutions: dict[Key, list[str]] = field(default_factory=dict)
    traces: dict[Key, list[str]] = field(default_factory=dict)
    blobs: set[Key] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def discover_artifacts(root: Path, known: Container[Key] | None) -> Artifacts:
    """Find workloads/, solutions/, traces/ and blob/workloads/, where there are any.

    A file of a definition that is not `known` is an orphan; None knows all.
    """
    artifacts = Artifacts()
    problems = artifacts.problems

    def attach(
        table: dict[Key, list[str]] | None, orphan: Rule, path: str, key: Key
    ) -> None:
        if known is not None and key not in known:
            what = f"definition {quote(key[1])} in op_type {quote(key[0])}"
            problems.append(orphan.problem(path, f"There is no {what}."))
        elif table is not None:
            table.setdefault(key, []).append(path)

    for folder, (op_type,) in folders(root, "workloads", 1, problems):
        for path, name in files(root, folder, ".jsonl", problems):
            attach(artifacts.workloads, WORKLOAD_ORPHAN, path, (op_type, name))
    for folder, (_, op_type, name) in folders(root, "solutions", 3, problems):
        for path, _ in files(root, folder, ".json", problems):
            attach(artifacts.solutions, SOLUTION_ORPHAN, path, (op_type, name))
    for outer, (first,) in folders(root, "traces", 1, problems):
        # files right below the first level lie at traces/<op_type>/x.jsonl
        for entry, path in inside(root, outer, problems):
            if entry.is_folder:
                for file, name in files(root, path, ".jsonl", problems):
                    attach(artifacts.traces, TRACE_ORPHAN, file, (entry.name, name))
            elif entry.name.endswith(".jsonl"):
                message = "The traces lie without the folder of an author."
                problems.append(TRACE_PLACE.problem(path, message))
                key = (first, entry.name.removesuffix(".jsonl"))
                attach(artifacts.traces, TRACE_ORPHAN, path, key)
            else:
                problems.append(wrong_extension(path, ".jsonl"))
    for path, (op_type, name) in folders(root, BLOBS, 2, problems):
        artifacts.blobs.add((op_type, name))
        attach(None, BLOB_UNUSED, path, (op_type, name))
    return artifacts
