"""Whether runs on record agree with a definition as it is.

`verification/*.json` has runs; a run maps a definition's name to the hash of what
the run depended on, `rules.basis`, and to a verdict for each source. A record of another
text of the definition does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from generator.results.evidence import SKIPPED, Run, runs_in
from generator.results.sources import backs_verified, is_live_kernel
from kernel_judge.definition import WORKLOAD
from kernel_judge.source_names import is_pair


class KernelEvidence:
    """The runs of one dataset with kernels; its records are read at the first call."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, name: str, basis: str) -> bool:
        """Return whether a production kernel passed and none failed on this text."""
        verdicts = set()
        for run in self._runs:
            entry = run.definitions.get(name)
            if entry is None or entry.sha256 != basis:
                continue
            for source, evidence in entry.sources.items():
                verdict = evidence.verdict
                if verdict == "PASSED" and (evidence.not_given or evidence.rewritten):
                    # nobody has seen the outputs that it does not give, or what
                    # the kernel makes of the inputs as they are
                    continue
                # kernels that agree with each other say nothing of the reference;
                # where they don't, nobody knows which of them it should agree with
                against = is_pair(source) and verdict != "PASSED"
                if verdict != SKIPPED and (backs_verified(source) or against):
                    verdicts.add(verdict)
        return verdicts == {"PASSED"}

    @cached_property
    def _runs(self) -> list[Run]:
        return runs_in(self.root)


def compared_workloads(runs: Iterable[Run], name: str, basis: str) -> frozenset[str]:
    """Return the workloads at which a live kernel on a GPU agreed with this text.

    They are named as `dataset.workload_identity` does. A kernel that gives only some of
    the outputs, or whose adapter computes a part of the operation, does not count.
    """
    compared: set[str] = set()
    for run in runs:
        entry = run.definitions.get(name)
        if not run.is_on_gpu or entry is None or entry.sha256 != basis:
            continue
        for source, of_source in entry.sources.items():
            is_whole = not (of_source.not_given or of_source.rewritten)
            if is_live_kernel(source) and is_whole and of_source.verdict == "PASSED":
                compared.update(of_source.compared.get(WORKLOAD, ()))
    return frozenset(compared)
