"""Turn planted defects into solutions and list those that the judge lets pass.

`python tools/evaluate_mutants.py [--jobs N] [--lanes N] [--generic N] [--seconds S]
[--output FILE] [--op-type NAME]... [DEFINITION]...` takes the first definition of each
reference text unless some are named, N of them at once, and up to N generic defects of each.
The judge asks what it asks of any solution; the defects are called in forks of this process,
since they are functions and no files. One that passes and is what a production kernel does,
as its family or `tools/rounded_by_kernels.py` says, counts as such; one without an answer
within two minutes is refused, and named. FILE gets a JSON line for each definition; what is
there already is not asked again. Exit status 1 where another domain defect passes, or more
than 1 % of the generic ones that are not equivalent, where the judge itself failed, or where
the time was over before all were asked.

`--kernels [--device cuda] [--jobs N] [--most N] [--seconds S] [--output FILE] [EXAMPLE]...`
mutates the sources of the examples instead: Triton, CUDA, C++ and PyTorch
(`tools/kernel_mutants.py`), judged confined, N at once, with results as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from generator.dataset.definition import LoadedDefinition
from generator.evaluation.arena import Layout, Slices
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import rounds_of
from generator.evaluation.session import CallAnswer
from generator.evaluation.verdict import (
    INCORRECT_DTYPE,
    INCORRECT_SHAPE,
    PASSED,
    RUNTIME_ERROR,
    CaseVerdict,
    Refused,
)
from generator.execution.child import Link
from generator.execution.forks import Forks
from generator.execution.outcome import DONE, RAISED, TIMED_OUT
from generator.mutation.audit_job import DOMAIN, AuditJob, prepare
from generator.ops.domain_mutants import domain_mutants
from generator.problems import Failure
from generator.rules.load import load_definitions
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.trial import as_tuple, same_bits, seed
from tools.judge_kernel_mutants import judge_kernel_mutants
from tools.rounded_by_kernels import rounding_of

_SECONDS = 120.0
_SECRET = 21


class InProcess:
    """Call a function as a session calls a solution, without a sandbox."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self._given: list[Any] = []
        self._written: Mapping[str, Any] = {}

    def write(
        self,
        slot: int,
        inputs: Mapping[str, Any],
        outputs: Any,
        axes: Any,
        slices: Slices | None = None,
    ) -> Layout:
        """Keep copies of the inputs for the next call."""
        assert slices is None, "conditions are asked in a sandbox"
        self._written, self._declared = inputs, (outputs, axes)
        self._given = [
            v.clone() if isinstance(v, torch.Tensor) else v for v in inputs.values()
        ]
        return Layout((), (), 0)

    def call(
        self,
        slot: int,
        layout: Layout,
        *,
        seed: int,
        passes_outputs: bool,
        under: str = "",
    ) -> None:
        """Call the function, and hold its outputs against the declaration."""
        assert not under, "conditions are asked in a sandbox"
        _seed(seed)
        try:
            self._outputs = as_tuple(self._run(*self._given))
        except Exception as error:  # noqa: BLE001 - whatever a defect raises
            raise Refused(RUNTIME_ERROR, repr(error)) from None
        specs, axes = self._declared
        if len(self._outputs) != len(specs):
            raise Refused(INCORRECT_SHAPE, f"{len(self._outputs)} values")
        for spec, value in zip(specs.values(), self._outputs, strict=True):
            if spec.shape is None:
                continue
            if not isinstance(value, torch.Tensor):
                raise Refused(INCORRECT_DTYPE, "no tensor")
            if tuple(value.shape) != shape_of(spec, axes):
                raise Refused(INCORRECT_SHAPE, str(tuple(value.shape)))
            if value.dtype != dtype_of(spec.dtype):
                raise Refused(INCORRECT_DTYPE, str(value.dtype))

    def fetch(self, slot: int, layout: Layout) -> CallAnswer:
        """Return the outputs, and which inputs were written to."""
        pairs = enumerate(zip(self._written.values(), self._given, strict=True))
        changed = [number for number, (a, b) in pairs if not same_bits(a, b)]
        outputs = (
            v.clone() if isinstance(v, torch.Tensor) else v for v in self._outputs
        )
        return CallAnswer(tuple(outputs), tuple(changed))

    def input(self, slot: int, layout: Layout, number: int) -> torch.Tensor:
        """Return an input as the call left it."""
        found: torch.Tensor = self._given[number]
        return found


_seed = seed


class Wrong(Exception):
    """Say that a case is wrong, and why."""

    def __init__(self, verdict: CaseVerdict) -> None:
        super().__init__(verdict.case)
        self.reason = f"{verdict.case}: {verdict.verdict}: {verdict.reason}"


class UntilWrong(Judge):
    """Ask until a case is wrong: nobody looks at the others."""

    def _keep(self, verdict: CaseVerdict) -> None:
        super()._keep(verdict)
        if verdict.verdict != PASSED:
            raise Wrong(verdict)


def measured(
    definition: LoadedDefinition, jobs: int, most_generic: int
) -> tuple[Counter[str], list[str]]:
    """Return counts of defects by kind and fate, and a line on each not refused."""
    job: AuditJob = prepare(definition, None, None)
    cpu = torch.device("cpu")
    asked = rounds_of(definition, [], Path(), cpu, _SECRET, axes=job.axes)
    for _, rounds in asked.rounds:
        for one in rounds:
            # made before the forks: once for all
            _ = one.inputs, one.expected
    generic = [n for n, p in enumerate(job.planned) if p.result.kind != DOMAIN]
    if len(generic) > most_generic:
        generic = sorted(random.Random(_SECRET).sample(generic, most_generic))
    domain = [n for n, p in enumerate(job.planned) if p.result.kind == DOMAIN]
    as_kernel = {
        f"{DOMAIN}: {m.name}": m.as_kernel
        for m in domain_mutants(job.runner.subject.definition)
    }
    places = [*domain, *generic]

    def work(number: int, link: Link) -> str:
        planned = job.planned[places[number]]
        try:
            session = InProcess(planned.load())
        except Exception:  # noqa: BLE001 - it can't be loaded
            return "refused"
        try:
            UntilWrong(session, asked, cpu, False, _SECRET).judge()
        except Wrong:
            return "refused"
        # random cases are small: what a test of references sees in others is a defect
        alike = job._prove_equivalence(planned.load).equivalent
        return (
            "equivalent" if alike and not job.runner.judge(planned.load) else "passed"
        )

    counts, lines = Counter[str](), []
    op_type = job.runner.subject.definition.op_type
    for number, outcome in Forks(jobs, _SECONDS).run(work, range(len(places))):
        result = job.planned[places[number]].result
        kind = "domain" if result.kind == DOMAIN else "generic"
        # one that hangs or dies is refused; what the judge raises is its own defect
        fate = {
            DONE: outcome.value,
            RAISED: "not judged",
            TIMED_OUT: "without an answer",
        }.get(outcome.status, "refused")
        why = outcome.why
        known = as_kernel.get(result.name) or rounding_of(op_type, result.name)
        if fate == "passed" and known:
            fate, why = "as a kernel", f"({known})"
        counts[f"{kind} {fate}"] += 1
        if fate not in ("refused", "equivalent"):
            lines.append(f"{kind} {fate}: {result.name} {why}".rstrip())
    return counts, lines


def main() -> int:
    """Print a line for each definition; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("definitions", nargs="*", metavar="DEFINITION")
    parser.add_argument("--op-type", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--generic", type=int, default=150)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=86_400.0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.kernels:
        return judge_kernel_mutants(
            device=options.device,
            jobs=options.jobs,
            most=options.most,
            names=options.definitions,
            seconds=options.seconds,
            output=options.output,
        )
    torch.set_num_threads(1)
    try:
        definitions = load_definitions(
            Path(), op_types=options.op_type, names=options.definitions
        ).definitions
    except Failure as error:
        print(error, file=sys.stderr)
        return 2
    if not options.definitions:
        definitions = tuple({d.reference: d for d in definitions[::-1]}.values())[::-1]
    total = Counter[str]()
    done = 0
    for line in _asked(definitions, options):
        total += Counter(line["counts"])
        done += 1
        counts = dict(sorted(line["counts"].items()))
        print(line["definition"], f"{line['seconds']:.0f} s", counts, flush=True)
        for one in line["lines"]:
            print(f"  {one}", flush=True)
    print(f"{done} of {len(definitions)}", "total", dict(sorted(total.items())))
    generic = total["generic refused"] + total["generic passed"]
    share = total["generic passed"] / max(generic, 1)
    broken = total["domain not judged"] + total["generic not judged"]
    is_bad = total["domain passed"] > 0 or share > 0.01 or broken > 0
    return int(is_bad or done < len(definitions))


def _asked(
    definitions: Sequence[LoadedDefinition], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield a line for each definition: those of the file, then others as they come."""
    names = {d.name for d in definitions}
    known = {}
    if options.output is not None and options.output.exists():
        lines = map(json.loads, options.output.read_text("utf-8").splitlines())
        known = {line["definition"]: line for line in lines}
    yield from (line for name, line in known.items() if name in names)
    left = [d for d in definitions if d.name not in known]
    until = time.monotonic() + options.seconds

    def work(number: int, link: Link) -> dict[str, Any]:
        begun = time.monotonic()
        about = {"definition": left[number].name}
        counts, lines = measured(left[number], options.jobs, options.generic)
        seconds = time.monotonic() - begun
        return {**about, "seconds": seconds, "counts": counts, "lines": lines}

    # each defect has its own limit: a definition has as long as all of its defects
    forks = Forks(options.lanes, 86_400.0, per_fork=1)
    for number, outcome in forks.run(work, range(len(left))):
        line = outcome.value
        if outcome.status != DONE:
            counts = {"domain not judged": 1}
            about = {"definition": left[number].name, "seconds": outcome.seconds}
            line = {**about, "counts": counts, "lines": [outcome.why]}
        elif options.output is not None:
            with options.output.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(line)}\n")
        yield line
        if time.monotonic() > until:
            return


if __name__ == "__main__":
    sys.exit(main())
