"""Agreement with kernels by GPU architecture, and versions that are newer since."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from generator.dataset.libraries import libraries, versioned_as
from generator.reports.report import Row, Section, Table
from generator.results.evidence import Run
from generator.results.sources import is_kernel, is_recorded
from generator.results.verification import VerificationLine

ARCHITECTURES = ("SM80", "SM89", "SM90", "SM100", "SM120", "ROCm")
"""The GPUs that FlashInfer and SGLang have kernels for."""

_PREFACE = (
    "Definitions of which a live kernel agreed on each architecture, as they are now. An "
    "empty cell says that nobody ran them there. A recording counts where it was made, "
    "not here."
)


def architecture(machine: Mapping[str, str]) -> str:
    """Return the architecture of a run's GPU: `SM90`, `ROCm`, empty for none.

    What torch calls the capability of an AMD GPU is no SM.
    """
    if machine.get("device") != "cuda":
        return ""
    if "rocm" in machine.get("torch", "") or machine.get("hip"):
        return "ROCm"
    return f"SM{machine['sm']}" if machine.get("sm") else ""


def architectures_section(lines: Iterable[VerificationLine]) -> Section:
    """Return the table of op_types by architectures, empty cells included."""
    agreed: dict[str, dict[str, set[str]]] = {}
    known: dict[str, set[str]] = {}
    for line in lines:
        known.setdefault(line.op_type, set()).add(line.definition)
        place = architecture(line.run.machine)
        live = is_kernel(line.source) and not is_recorded(line.source)
        if line.verdict == "PASSED" and not line.stale and live and place:
            of_op = agreed.setdefault(line.op_type, {})
            of_op.setdefault(place, set()).add(line.definition)
    others = {place for of_op in agreed.values() for place in of_op}
    places = [*ARCHITECTURES, *sorted(others - {*ARCHITECTURES})]
    rows = []
    for op_type, names in known.items():
        by_version = agreed.get(op_type, {})
        counts = [str(len(by_version[p])) if p in by_version else "" for p in places]
        rows.append(Row((op_type, str(len(names)), *counts)))
    columns = ("op_type", "definitions", *places)
    table = Table(rows, columns, words=("op_type",))
    return Section("Architectures", [table], preface=_PREFACE)


def newest_versions(runs: Iterable[Run]) -> dict[str, str]:
    """Return library → its newest version that a run on record had on a GPU."""
    newest: dict[str, str] = {}
    for run in runs:
        for name in (*libraries(), "torch") if run.is_on_gpu else ():
            version = run.machine.get(name, "")
            if version and _order(version) > _order(newest.get(name, "")):
                newest[name] = version
    return newest


def stale_versions(line: VerificationLine, newest: Mapping[str, str]) -> Iterator[str]:
    """Yield `stale-version: …` for what a line's kernel came from, and is newer now."""
    if not is_kernel(line.source) or is_recorded(line.source) or line.figures is None:
        return
    provider = line.source.partition("/")[0]
    name = versioned_as(provider)
    version = line.run.machine.get(name, "")
    if version and _order(version) < _order(newest.get(name, version)):
        yield f"stale-version: {name} {version}, {newest[name]} is on record"


def _order(version: str) -> tuple[tuple[int, int | str], ...]:
    """Return what versions are compared by: 0.6.18.post1 is after 0.6.18."""
    public = version.partition("+")[0]
    return tuple(
        (1, int(part)) if part.isdigit() else (0 if part != "post" else 2, part)
        for part in re.findall(r"\d+|[a-z]+", public.lower())
    )
