"""Runs on record of one text: the kernels that agreed with it, and what failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from generator.dataset.definition import LoadedDefinition
from generator.problems.messages import one_line, plural
from generator.results.evidence import DefinitionEvidence, Run
from generator.results.sources import (
    ORACLE,
    is_layer,
    is_live_kernel,
    is_recorded,
)
from generator.rules.basis import basis_of

BAD_VERDICTS = ("FAILED", "ERROR")


def lesser_agreements(run: Run, entry: DefinitionEvidence) -> Iterator[str]:
    """Yield the sources that agreed without a kernel on a GPU, in words."""
    for source, verdict in entry.sources.items():
        if verdict.verdict == "PASSED" and verdict.cases:
            what = f"{source_on_machine(run, source)}, {plural(verdict.cases, 'case')}"
            if source == ORACLE:
                yield f"{what} (the oracle, no kernel)"
            elif is_layer(source):
                yield f"{what} (a PyTorch layer, no kernel)"
            elif is_recorded(source):
                yield f"{what} (a recording of a kernel)"


def runs_of(
    definition: LoadedDefinition, runs: Iterable[Run]
) -> Iterator[tuple[Run, DefinitionEvidence]]:
    """Yield the runs of exactly this text, each with its entry for it."""
    basis = basis_of(definition)
    for run in runs:
        entry = run.definitions.get(definition.name)
        if entry is not None and entry.sha256 == basis:
            yield run, entry


def failures(run: Run, entry: DefinitionEvidence) -> list[str]:
    """Return the sources and tests that failed, in words."""
    bad = [source for source, v in entry.sources.items() if v.verdict in BAD_VERDICTS]
    return [source_on_machine(run, what) for what in (*bad, *entry.failed)]


def agreements(run: Run, entry: DefinitionEvidence) -> Iterator[str]:
    """Yield the live kernels on a GPU that agreed with every output, in words."""
    for source, verdict in entry.sources.items():
        is_good = run.is_on_gpu and verdict.verdict == "PASSED" and verdict.cases
        # a kernel without an output, or with inputs of its adapter's, shows too little
        is_whole = not (verdict.not_given or verdict.rewritten)
        if is_live_kernel(source) and is_good and is_whole:
            where = source_on_machine(run, source)
            yield f"{where} passed, {plural(verdict.cases, 'case')}"


def source_on_machine(run: Run, source: str) -> str:
    """Return a source, the machine that ran it and the date, on one line."""
    gpu = run.machine.get("gpu") or run.machine.get("device") or "unknown machine"
    return one_line(f"{source} on {gpu}, {run.date}")
