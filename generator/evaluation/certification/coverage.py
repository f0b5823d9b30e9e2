"""Production kernels that one Hopper GPU can call, and those that are on record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from generator.dataset.paths import discover_definitions
from generator.evaluation.certification.result import Certified
from generator.rules.load import load_file
from generator.rules.subjects import subject_of
from kernel_judge.checks.available import source_name

_HOPPER = 90


class HopperKernel(NamedTuple):
    """A kernel: what an op_type calls of a provider, by which backend.

    `symbol` is the backend's, or what the definition's fi_api names, or empty where the
    op_type calls one function alone. Definitions of other sizes have the same kernel.
    """

    op_type: str
    symbol: str
    source: str


def of_hopper(dataset: Path) -> dict[HopperKernel, set[str]]:
    """Return the kernels of a dataset that one GPU of SM 90 can call → definitions.

    An adapter that computes what the kernel is handed or returns is none: what it holds
    under a condition says nothing of the kernel.
    """
    kernels: dict[HopperKernel, set[str]] = defaultdict(set)
    for file in discover_definitions(dataset).files:
        definition, _ = load_file(dataset, file)
        if definition is None:
            continue
        subject, named = subject_of(definition), definition.tag_values("fi_api")
        for provider in subject.op.kernels:
            if subject.why_unresolved(provider) is not None:
                continue
            for one in subject.backends(provider):
                is_here = one.min_sm <= _HOPPER <= one.max_sm and one.gpus == 1
                if is_here and not one.limit and not one.rewrites:
                    symbol = one.symbol or ", ".join(sorted(named))
                    source = source_name(provider, one)
                    kernels[HopperKernel(file.op_type, symbol, source)].add(file.name)
    return kernels


def missing(
    kernels: Mapping[HopperKernel, set[str]], recorded: Iterable[Certified]
) -> list[HopperKernel]:
    """Return the kernels that are on record of none of their definitions."""
    known = {(one.definition, name) for one in recorded for name in one.kernels}
    return sorted(
        kernel
        for kernel, names in kernels.items()
        if not any((name, kernel.source) in known for name in names)
    )
