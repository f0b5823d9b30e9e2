"""Ask production kernels for all that the judge asks of solutions, by the same bounds.

`python -m tools.judge_kernels [--device cuda] [--kernels NAMES] [--jobs N] [--seconds S]
[--output FILE] DEFINITION...` calls the kernels that can be called here, or those of the
names that commas divide (`sglang/triton`), each in a process of its own, with the cases of
a verdict: those that only solutions are asked, lengths that nobody published,
inputs that agree with others in a part. A JSON line a kernel, as it comes: the calls that
were right, its worst error, the inputs that its adapter does not take, and what would be
refused. Exit status 1 where something would be.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from generator.dataset.definition import LoadedDefinition
from generator.dataset.paths import DatasetFile
from generator.evaluation.certification.judging import KernelJudge
from generator.evaluation.certification.process import kernel_session
from generator.evaluation.certification.task import callable_kernels
from generator.evaluation.rounds import EvaluationRounds, Round, rounds_of
from generator.evaluation.session import Allowed
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    OUT_OF_MEMORY,
    PASSED,
    SKIPPED,
    CaseVerdict,
    Refused,
)
from generator.problems import Failure
from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from kernel_judge.checks.available import source_name
from kernel_judge.definition import Backend
from kernel_judge.inputs.trial import Trial
from kernel_judge.provider import providers as known_providers
from kernel_judge.skipping import Skip

_SECRET = 21
# a first call may compile, and so may one with other dtypes
_ALLOWED = Allowed(call_seconds=240.0, build_seconds=300.0)
# how a kernel's process says that its adapter does not take the inputs
_NOT_TAKEN = f"{Skip.__name__}: "


@dataclass(kw_only=True)
class EveryCase(KernelJudge):
    """Ask for all cases, whatever a kernel raises; `checks` raises Skip for some inputs."""

    checks: Callable[[Trial], None] | None = None
    right: int = 0

    def _judged(
        self, name: str, one: Round, ask: Callable[[], Mapping[str, float]]
    ) -> None:
        try:
            if self.checks is not None:
                self.checks(one.trial)
            metrics = ask()
        except Skip as skipped:
            self._keep(CaseVerdict(name, SKIPPED, str(skipped)))
        except Refused as refused:
            why = refused.reason
            if refused.is_raised and why.startswith(_NOT_TAKEN):
                self._keep(CaseVerdict(name, SKIPPED, why))
                return
            self._keep(CaseVerdict(name, refused.verdict, why, refused.metrics))
            # whoever raised an error can be called again, who ended can't
            goes_on = refused.verdict in (INCORRECT_NUMERICAL, OUT_OF_MEMORY)
            if not (goes_on or refused.is_raised):
                raise
        else:
            self.right += 1
            self._keep(CaseVerdict(name, PASSED, "", metrics))


@dataclass
class Said:
    """What a kernel came to: a line of the results."""

    definition: str
    op_type: str
    kernel: str
    right: int = 0
    worst: dict[str, Any] = field(default_factory=dict)
    not_taken: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    seconds: float = 0.0


def said_of(
    definition: LoadedDefinition,
    providers: list[str],
    kernels: list[str],
    device: torch.device,
) -> Iterator[Said]:
    """Yield what each kernel of a definition came to, of those named where any are."""
    asked = rounds_of(definition, [], Path(), device, _SECRET)
    subject = subject_of(definition)
    for provider, backend in callable_kernels(subject, providers, device):
        name = source_name(provider, backend)
        if kernels and name not in kernels:
            continue
        said = Said(definition.name, subject.op_type, name)
        begun = time.monotonic()
        try:
            _ask(said, definition, asked, device, (provider, backend))
        except Refused as refused:
            said.refused.append(f"build: {refused}")
        said.seconds = round(time.monotonic() - begun, 1)
        yield said


def _ask(
    said: Said,
    definition: LoadedDefinition,
    asked: EvaluationRounds,
    device: torch.device,
    source: tuple[str, Backend],
) -> None:
    """Ask one kernel, in a process of its own. Raises Refused where it can't be built."""
    provider, backend = source
    file = DatasetFile(definition.op_type, definition.name, definition.path)
    how: dict[str, Any] = {"root": str(Path.cwd()), "file": asdict(file)}
    how |= {"provider": provider, "kernel": said.kernel}
    with closing(kernel_session(how, device.type, _ALLOWED)) as session:
        judge = EveryCase(
            session,
            asked,
            device,
            False,
            _SECRET,
            lacks=backend.lacks,
            kernel=said.kernel,
            checks=asked.subject.kernels[provider].check_inputs,
        )
        verdicts = judge.judge()
    said.right = judge.right
    for one in verdicts:
        if one.verdict == SKIPPED:
            said.not_taken.append(f"{one.case}: {one.reason}")
        elif one.verdict != PASSED:
            said.refused.append(f"{one.case}: {one.verdict}: {one.reason}")
        elif one.metrics.get("nmse", 0.0) >= said.worst.get("nmse", 0.0):
            said.worst = {"case": one.case, **one.metrics}


def _lines(name: str, options: argparse.Namespace, until: float) -> list[str]:
    """Return the lines of one definition, asked in a process that the time ends."""
    arguments = ["--device", options.device, "--providers", options.providers]
    arguments += ["--kernels", options.kernels]
    command = [sys.executable, "-m", "tools.judge_kernels", "--here", *arguments, name]
    left = max(until - time.monotonic(), 0.1)
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=left
        )
        out, why = done.stdout, done.stderr.strip()[-400:] if done.returncode else ""
    except subprocess.TimeoutExpired as over:
        # what it said until then, in bytes whatever `text` is
        out, why = (over.stdout or b"").decode(), "the time was over"
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if why:
        lines.append(json.dumps({"definition": name, "failed": why}))
    return lines


def main() -> int:
    """Print a line for each kernel; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("definitions", nargs="+", metavar="DEFINITION")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--providers", default=",".join(known_providers()))
    parser.add_argument("--kernels", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=86_400.0)
    parser.add_argument("--output", type=Path)
    # a process that the command starts for one definition
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        definitions = load_definitions(Path(), names=options.definitions).definitions
    except Failure as error:
        print(error, file=sys.stderr)
        return 2
    if options.here:
        torch.set_num_threads(1)
        for definition in definitions:
            providers = options.providers.split(",")
            kernels = [name for name in options.kernels.split(",") if name]
            device = torch.device(options.device)
            for said in said_of(definition, providers, kernels, device):
                print(json.dumps(asdict(said)), flush=True)
        return 0
    # what compiles is named first
    named = options.definitions
    definitions = tuple(sorted(definitions, key=lambda d: named.index(d.name)))
    until = time.monotonic() + options.seconds
    is_bad = False
    with ThreadPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(_lines, d.name, options, until) for d in definitions]
        for task in as_completed(tasks):
            for line in task.result():
                value = json.loads(line)
                is_bad |= "failed" in value or bool(value["refused"])
                print(line, flush=True)
                if options.output is not None:
                    with options.output.open("a", encoding="utf-8") as file:
                        file.write(f"{line}\n")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
