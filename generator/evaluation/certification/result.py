"""Verdicts of production kernels under conditions: `verification/conditions.json`.

One line a definition. A definition is known by the hash of what a run of it depends on:
a result for another text of it is stale.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import is_absent, is_file, read_text
from generator.dataset.lock import locked
from generator.dataset.paths import CONDITIONS_KEPT, DatasetFile
from generator.evaluation.conditions.condition import SKIPPED
from generator.execution.definition_task import DefinitionTask
from generator.execution.outcome import Outcome
from generator.problems import Failure
from generator.rules.basis import basis_in

_WORK = "generator.evaluation.certification.task:certify"
_SECONDS = 3600.0
_FIX = "Take the file from git, or delete it and run trace-dataset certify --record."


@dataclass(frozen=True)
class Certified:
    """A definition's kernels, and of each the conditions and the versions.

    `error` says why nothing was asked. `sha256` is of what a run depends on.
    """

    definition: str
    op_type: str
    path: str
    kernels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gpu: str = ""
    sha256: str = ""
    key: str = ""
    seconds: float = 0.0
    error: str = ""


def certify_task(
    dataset: Path, arguments: Mapping[str, Any]
) -> DefinitionTask[Certified]:
    """Return the task that asks a definition's kernels."""

    def made(value: Mapping[str, Any]) -> Certified:
        return Certified(**{**value, "sha256": basis_in(dataset, value["path"])})

    def failed(file: DatasetFile, outcome: Outcome) -> Certified:
        why = f"{outcome.status}: {outcome.why}"
        return Certified(file.name, file.op_type, file.path, error=why)

    parts = ("definitions",)
    how = (dataset, arguments, None, made, failed, parts)
    return DefinitionTask(_WORK, _SECONDS, *how)


def read_lines(path: Path) -> list[Certified]:
    """Return the results of a file of `certify --output`. Raises Failure."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}.") from None
    results = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                results.append(Certified(**json.loads(line)))
            except (ValueError, TypeError, RecursionError):
                raise Failure(
                    f"{path} line {number} is no result of trace-dataset certify --output."
                ) from None
    return results


def kept(dataset: Path) -> dict[str, Certified]:
    """Return definition → what is kept of it. Raises Failure where the file is broken."""
    if is_absent(dataset, CONDITIONS_KEPT):
        return {}
    try:
        read = json.loads(read_text(dataset, CONDITIONS_KEPT))["definitions"]
        return {name: Certified(**value) for name, value in read.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        why = f"{CONDITIONS_KEPT} is no record of conditions. {_FIX}"
        raise Failure(why) from None


def current(dataset: Path) -> list[Certified]:
    """Return what is kept of definitions as they are now."""
    return [one for one in kept(dataset).values() if _is_current(dataset, one)]


def record(dataset: Path, certified: Sequence[Certified]) -> list[str]:
    """Add results to the dataset's record; return the definitions that were recorded.

    Nothing is kept of a kernel of which all was skipped. Kernels that were not asked
    stay, as long as the definition is the same, and of one the conditions that were
    not, as long as its versions are.
    """
    with locked(dataset):
        values = kept(dataset)
        names = []
        for one in certified:
            asked = {n: k for n, k in one.kernels.items() if _is_asked(k)}
            if one.error or not asked or not _is_current(dataset, one):
                continue
            before = values.get(one.definition)
            same = before is not None and before.sha256 == one.sha256
            old = before.kernels if before is not None and same else {}
            values[one.definition] = Certified(
                one.definition,
                one.op_type,
                one.path,
                {**old, **{n: _added(old.get(n), k) for n, k in asked.items()}},
                one.gpu,
                one.sha256,
            )
            names.append(one.definition)
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(_plain(one))}"
            for name, one in sorted(values.items())
        )
        text = f'{{"format": 1, "definitions": {{\n{lines}\n}}}}\n'
        write_below(dataset, CONDITIONS_KEPT, text.encode("ascii"))
    return names


def _is_asked(kernel: Mapping[str, Any]) -> bool:
    """Return whether a kernel came to a verdict on any condition."""
    return any(c["verdict"] != SKIPPED for c in kernel["conditions"].values())


def _added(
    old: Mapping[str, Any] | None, kernel: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a kernel with the conditions that it was asked before."""
    if old is None or old.get("versions") != kernel.get("versions"):
        return kernel
    return {**kernel, "conditions": {**old["conditions"], **kernel["conditions"]}}


def _is_current(dataset: Path, one: Certified) -> bool:
    """Return whether the dataset has the definition as it was asked."""
    return is_file(dataset, one.path) and basis_in(dataset, one.path) == one.sha256


def _plain(one: Certified) -> dict[str, Any]:
    names = ("definition", "op_type", "path", "kernels", "gpu", "sha256")
    return {name: getattr(one, name) for name in names}
