"""One test function becomes one test a case, and one a backend of its provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.running.harness import ReferenceTests
from generator.running.recorded_cases import recorded_cases
from generator.running.skipped_test import Broken
from generator.running.workloads import NO_WORKLOADS, Workloads
from kernel_judge.checks.available import too_few, usable_sources
from kernel_judge.definition import LIMITS, WORKLOAD, Case
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.providers import backend_obstacle, provider_obstacle
from kernel_judge.recording.recording_file import recording_path
from kernel_judge.recording.replay import missing
from kernel_judge.relation import Relation
from kernel_judge.subject import Subject

# of an op that counts its bytes: making so many takes a CPU about 20 seconds, and two
# workers at a time stay below 10 GiB with the others
SLOW_BYTES = 9 * 2**29


_SMALL = ("test_strided_inputs", "test_matches_cpu")
"""Tests of small cases alone: what they would show in others shows there."""


def spread(
    metafunc: pytest.Metafunc,
    cls: type[ReferenceTests],
    sizes: Sequence[str],
    device: torch.device,
    recordings: Path,
    seeds: Sequence[int] = (),
    workloads: Workloads = NO_WORKLOADS,
) -> None:
    """Parametrise `trial`, and `backend` where a test takes it, over the cases.

    What can't run here becomes one skipped test with the reason, not one a case. Where
    a function of the op raises, the test fails with that, and others are collected.
    """
    try:
        _spread(metafunc, cls, sizes, device, recordings, seeds, workloads)
    except Exception as error:  # noqa: BLE001 - whatever an op's functions raise
        what = f"{cls.op_type} has no cases for it: {type(error).__name__}: {error}"
        names = {"trial", "related", "backend", "relation"} & set(metafunc.fixturenames)
        first, *others = sorted(
            names, reverse=True, key=("trial", "related").__contains__
        )
        params = [pytest.param(Broken(what), *(None for _ in others), id="no-cases")]
        metafunc.parametrize([first, *others], params, indirect=[first], scope="class")


def _spread(
    metafunc: pytest.Metafunc,
    cls: type[ReferenceTests],
    sizes: Sequence[str],
    device: torch.device,
    recordings: Path,
    seeds: Sequence[int],
    workloads: Workloads,
) -> None:
    subject = cls.subject()
    cases = subject.cases(sizes)
    name = metafunc.function.__name__
    if name in _SMALL:
        cases = [case for case in cases if case.size == "small"] or cases[:1]
    elif name.startswith("test_matches_"):
        cases += subject.cases((LIMITS,)) if "medium" in sizes else []
        cases += workloads.of(subject)
    with_backend = "backend" in metafunc.fixturenames
    if not cases:
        obstacle = Obstacle(Kind.NO_CASE, f"no case is {' or '.join(sizes)}")
        params = [_skipped(obstacle, "no-case", *([None] if with_backend else []))]
    elif with_backend:
        provider = name.removeprefix("test_matches_")
        params = _over_backends(subject, provider, cases, device)
    elif "relation" in metafunc.fixturenames:
        _spread_relations(metafunc, cls, sizes, seeds)
        return
    elif name == "test_ground_truths_agree":
        usable = usable_sources(subject, device)
        params = (
            [_case(subject, case) for case in cases]
            if len(usable) > 1
            else [_skipped(too_few(usable), "unavailable")]
        )
    elif name == "test_matches_cpu" and device.type != "cuda":
        obstacle = Obstacle(Kind.NEEDS_CUDA, "it compares a GPU with the CPU")
        params = [_skipped(obstacle, "unavailable")]
    elif name == "test_matches_recorded":
        params = _over_recorded(subject, cases, recordings)
    else:
        params = [_case(subject, case) for case in cases]
    names = ["trial", "backend"] if with_backend else ["trial"]
    params = _seeded(params, seeds)
    metafunc.parametrize(names, params, indirect=["trial"], scope="class")


def _spread_relations(
    metafunc: pytest.Metafunc,
    cls: type[ReferenceTests],
    sizes: Sequence[str],
    seeds: Sequence[int],
) -> None:
    """Parametrise `related` and `relation` over the relations that a class lists."""
    subject = cls.subject()
    listed = cls.file().relations(subject, sizes)
    params = [_case(subject, case, relation) for relation, case in listed]
    if not params:
        obstacle = Obstacle(Kind.NO_ADAPTER, "no relation is listed for it")
        params = [_skipped(obstacle, "no-relation", None)]
    names = ["related", "relation"]
    params = _seeded(params, seeds)
    metafunc.parametrize(names, params, indirect=["related"], scope="class")


def _seeded(params: list[Any], seeds: Sequence[int]) -> list[Any]:
    """Return parameter sets once for each seed; one seed alone changes no id."""
    if not seeds:
        return params
    rebuilt = [param for param in params if not isinstance(param.values[0], Case)]
    for seed in seeds:
        for param in params:
            case, *others = param.values
            if isinstance(case, Case):
                name = param.id if len(seeds) == 1 else f"{param.id}-seed{seed}"
                values = replace(case, seed=seed), *others
                rebuilt.append(pytest.param(*values, id=name, marks=param.marks))
    return rebuilt


def _over_recorded(subject: Subject, cases: list[Case], recordings: Path) -> list[Any]:
    if not recording_path(recordings, subject.op_type, subject.name).exists():
        obstacle = Obstacle(Kind.NOT_RECORDED, missing(subject, recordings))
        return [_skipped(obstacle, "missing")]
    recorded = recorded_cases(subject, recordings, cases)
    if not recorded:
        obstacle = Obstacle(Kind.NOT_RECORDED, "recorded: none of these cases")
        return [_skipped(obstacle, "no-case")]
    return [_case(subject, case) for case in recorded]


def _over_backends(
    subject: Subject,
    provider: str,
    cases: Sequence[Case],
    device: torch.device,
) -> list[Any]:
    params = []
    for backend in subject.backends(provider):
        obstacle = backend_obstacle(provider, backend, device)
        if obstacle is None:
            params += [_case(subject, case, backend) for case in cases]
        else:
            name = "-".join(filter(None, ("unavailable", backend.name)))
            why = Obstacle(obstacle.kind, f"{provider}: {obstacle}")
            params.append(_skipped(why, name, backend))
    if not params:
        # a provider that is not there brings no adapters
        obstacle = provider_obstacle(provider, device)
        why = Obstacle(Kind.NO_ADAPTER, f"{provider}: has nothing for {subject.name}")
        if obstacle is not None and provider not in subject.kernels:
            why = Obstacle(obstacle.kind, f"{provider}: {obstacle}")
        params.append(_skipped(why, "no-backend", None))
    return params


def _case(subject: Subject, case: Case, other: Any = None) -> Any:
    """Return a parameter set; a large case, or one of large tensors, is marked slow.

    `other` is a backend, whose name follows the case's, or a relation, the other way.
    """
    values = [case] if other is None else [case, other]
    names = [case.name, other.name if other else ""]
    if isinstance(other, Relation):
        names.reverse()
    name = "-".join(filter(None, names))
    peak_bytes = subject.op.peak_bytes
    slow = case.size == "large" or (
        peak_bytes is not None
        and case.size != WORKLOAD
        and peak_bytes(subject.definition, case) > SLOW_BYTES
    )
    marks = [pytest.mark.slow] if slow else []
    return pytest.param(*values, id=name, marks=marks)


def _skipped(obstacle: Obstacle, name: str, *others: Any) -> Any:
    """Return a parameter set by which the fixture of the case skips the test."""
    return pytest.param(obstacle, *others, id=name)
