"""The task of a worker of the executor: ask a definition's kernels under conditions."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

import generator
from generator.dataset.paths import DatasetFile
from generator.evaluation.certification.judging import KernelJudge
from generator.evaluation.certification.process import kernel_session
from generator.evaluation.conditions.ask import ask
from generator.evaluation.conditions.asking import Asking, ConditionSkipped, is_small
from generator.evaluation.conditions.condition import SKIPPED, Condition
from generator.evaluation.rounds import EvaluationRounds, rounds_of
from generator.evaluation.sanitizing.tool import plain, sanitized
from generator.evaluation.session import Allowed, Session
from generator.evaluation.sharing import free_gpu
from generator.evaluation.verdict import Refused
from generator.execution.child import Link
from generator.execution.gpus import bind
from generator.execution.outcome import CannotRun
from generator.rules.load import load_file
from generator.rules.subjects import subject_of
from generator.running.provider_versions import version
from kernel_judge.checks.available import source_name
from kernel_judge.definition import Backend
from kernel_judge.providers import backend_obstacle
from kernel_judge.skipping import Skip
from kernel_judge.subject import Subject

_WATCHED = "generator.evaluation.sanitizing.kernel"
# a stack in a message of torch.compile has it, and a record is published
_PLACE = f"{Path(generator.__file__).resolve().parents[1]}{os.sep}"
# the folders above a library's own, and above what it compiled
_PLACES = re.compile(r"/(?:[\w.+-]+/)+(?=(?:flashinfer|sglang|torch|triton)/)")
# what an adapter raises, as the kernel's process says it
_NOT_TAKEN = f"{Skip.__name__}: "


def certify(task: Mapping[str, Any], link: Link) -> dict[str, Any]:
    """Return the conditions of each kernel of a definition that can be called here."""
    file, root = DatasetFile(**task["file"]), Path(task["root"])
    definition, problems = load_file(root, file)
    if definition is None:
        raise CannotRun(str(problems[0]) if problems else "it can't be read")
    if task["gpus"]:
        bind(free_gpu(task["gpus"]))
    device = torch.device(task["device"])
    kernels: dict[str, Any] = {}
    alone = len(set(task["gpus"])) == len(task["gpus"])
    for provider, backend in callable_kernels(
        subject_of(definition), task["providers"], device
    ):
        kernel = source_name(provider, backend)
        link.at(kernel, within=3600.0)
        how = {"root": str(root), "file": task["file"]}
        how |= {"provider": provider, "kernel": kernel}
        draw = random.Random(f"{task['secret']} {file.name} {kernel}")
        asked = rounds_of(definition, [], root, device, draw.randrange(2**62))
        allowed = _allowed(task["timeout"])
        opened = partial(kernel_session, how, task["device"], allowed)
        try:
            session = opened()
        except Refused as refused:
            kernels[kernel] = _all(task["conditions"], refused.reason)
            continue
        about = (asked, device, False, draw.randrange(2**62), opened, task["soak"])
        judges = partial(KernelJudge, lacks=backend.lacks, kernel=kernel)
        asking = Asking(session, *about, judges=judges, has_gpu_alone=alone)
        asking.checks = asked.subject.kernels[provider].check_inputs
        kernels[kernel] = _conditions(asking, task["conditions"])
        for tool in task["sanitizers"]:
            link.at(f"{kernel}, {tool}", within=3600.0)
            watched = sanitized(asking, tool, how, plain(_WATCHED))
            kernels[kernel]["conditions"][tool] = watched.as_dict()
        kernels[kernel]["versions"] = {
            "torch": str(torch.__version__),
            provider: version(provider),
        }
    gpu = torch.cuda.get_device_name(0) if task["device"] == "cuda" else ""
    return {"kernels": kernels, "gpu": gpu}


def _allowed(timeout: float) -> Allowed:
    """Return limits by which a first call, which may compile, has as long as any."""
    return Allowed(timeout, max(timeout, Allowed.build_seconds))


def callable_kernels(
    subject: Subject, providers: list[str], device: torch.device
) -> list[tuple[str, Backend]]:
    """Return the kernels that can be called here, each with its provider."""
    return [
        (provider, backend)
        for provider in providers
        for backend in subject.backends(provider)
        if subject.why_unresolved(provider) is None
        and backend_obstacle(provider, backend, device) is None
    ]


def _conditions(asking: Asking, names: list[str]) -> dict[str, Any]:
    """Return the verdicts of a kernel whose ordinary calls are right."""
    try:
        with closing(_Sessions(asking)):
            asking.asked = _taken(_checked(asking), asking)
            conditions = {name: without_places(ask(asking, name)) for name in names}
            return {
                "conditions": {name: one.as_dict() for name, one in conditions.items()}
            }
    except ConditionSkipped as skipped:
        return _all(names, str(skipped))
    except Refused as refused:
        return _all(names, f"an ordinary call is not right: {refused}")


def _checked(asking: Asking) -> EvaluationRounds:
    """Return what is asked without inputs of which the kernel reads outside, say."""
    asked = asking.asked
    rounds = [
        (name, rounds) for name, rounds in asked.rounds if asking.takes(rounds[0].trial)
    ]
    relations = [(r, one) for r, one in asked.relations if asking.takes(one.trial)]
    return replace(asked, rounds=rounds, relations=relations)


def _taken(asked: EvaluationRounds, asking: Asking) -> EvaluationRounds:
    """Call a kernel with each small case once; return what is asked without some.

    An adapter says that its kernel does not take them: more queries than keys, for one.
    Raises Refused for a wrong answer.
    """
    taken = []
    for name, rounds in asked.rounds:
        try:
            if is_small(rounds[0], asking.device):
                asking.called(rounds[0])
        except Refused as refused:
            if refused.is_raised and refused.reason.startswith(_NOT_TAKEN):
                continue
            raise
        taken.append((name, rounds))
    return replace(asked, rounds=taken)


def without_places(condition: Condition) -> Condition:
    """Return a condition whose reason does not say where software is installed."""
    reason = _PLACES.sub("", condition.reason.replace(_PLACE, ""))
    return replace(condition, reason=reason)


def _all(names: list[str], why: str) -> dict[str, Any]:
    """Return that nothing was asked, and why."""
    return {"conditions": {name: Condition(SKIPPED, why).as_dict() for name in names}}


class _Sessions:
    """End the session that is the last one then."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def close(self) -> None:
        """End its process."""
        session: Session = self._asking.session
        session.close()
