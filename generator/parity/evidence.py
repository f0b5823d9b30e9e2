"""Evidence of definitions from a comparison with transformers, as a dataset keeps it."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from generator.dataset.paths import Discovered
from generator.parity.process import DTYPES, TRANSFORMERS
from generator.parity.report import ComparedModel, failures
from generator.results.evidence import DefinitionEvidence, Run, SourceEvidence
from generator.results.sources import MODEL
from generator.rules.basis import basis_in

# at real geometry these have a part of the vocabulary
_PARTIAL = ("embed", "lm_head")


def evidence(
    root: Path, discovered: Discovered, models: Iterable[ComparedModel]
) -> Run:
    """Return what stages at real geometry say of the dataset's definitions.

    Only a definition at its own sizes counts, in both dtypes and every layer. Raises
    OSError where a definition can't be read.
    """
    files = {file.name: file for file in discovered.files}
    of: dict[str, dict[str, SourceEvidence]] = {}
    for one in models:
        entries: dict[str, list[Mapping[str, Any]]] = {}
        # what kernels and solutions did in a stage says nothing of its definition
        for dtype in DTYPES:
            for entry in one.found.get(dtype, {}).get("stage", ()):
                name = entry.get("definition")
                if name in one.there and entry["stage"] not in _PARTIAL:
                    entries.setdefault(name, []).append(entry)
        for name, stages in entries.items():
            of.setdefault(name, {})[f"{MODEL}:{one.model}"] = _verdict(stages)
    definitions = {
        name: DefinitionEvidence(basis_in(root, files[name].path), sources)
        for name, sources in of.items()
    }
    machine = {
        "device": "cpu",
        "cpu": platform.machine(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": TRANSFORMERS.partition("==")[2],
    }
    today = datetime.now(timezone.utc).date().isoformat()
    return Run(today, machine, definitions)


def _verdict(stages: Sequence[Mapping[str, Any]]) -> SourceEvidence:
    errors = [entry["nmse"] for entry in stages]
    worst = math.nan if any(map(math.isnan, errors)) else max(errors)
    why = next(failures("stage", stages), "")
    verdict = "FAILED" if why else "PASSED"
    return SourceEvidence(verdict, cases=len(stages), reason=why, nmse=worst)
