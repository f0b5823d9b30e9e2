"""Ask workloads with the values that flashinfer-bench draws: are outputs finite?

    python tools/runner_draws.py [--plain] [--each-reference] [--mebibytes N] [--over N]
                                 [--seconds N] [--device cuda] [OP_TYPE ...]

A line for each definition of which some are not, then counts, also of a run that is
interrupted. `--plain` leaves out the domains that definitions state, as that runner does;
`--each-reference` asks the smallest workload of each reference's text alone. The exit
status is 1 where a workload is not finite and no definition says that outputs are
infinite by the operation.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    # Python put this script's folder on the path, not the repository.
    sys.path.insert(0, str(ROOT))

import torch

from generator.dataset.definition import LoadedDefinition
from generator.dataset.workload_files import workloads_of
from generator.evaluation.checkers.drawn_workload import not_finite
from generator.rules.load import load_definitions
from generator.rules.subjects import declared_definition
from kernel_judge.definition import Case
from kernel_judge.inputs.memory import tensor_bytes

INFINITE = ("top_k_mask_logits", "token_bitmask")
"""How names of operations begin whose outputs are infinite whatever they are given."""


class _TimeIsUp(Exception):
    pass


class Asked(NamedTuple):
    """A workload of a definition, and how many bytes its tensors have."""

    size: int
    definition: LoadedDefinition
    workload: Any


def workloads(op_types: Sequence[str] = ()) -> Iterator[Asked]:
    """Yield the workloads of the dataset's definitions."""
    for definition in load_definitions(ROOT, op_types=op_types).definitions:
        known = declared_definition(definition)
        for workload in workloads_of(ROOT, definition.op_type, definition.name):
            case = Case("workload", "medium", workload["axes"])
            yield Asked(tensor_bytes(known, case), definition, workload)


def smallest(op_types: Sequence[str] = ()) -> list[Asked]:
    """Return the smallest workload of each reference text."""
    least: dict[tuple[str, str], Asked] = {}
    for asked in workloads(op_types):
        key = asked.definition.op_type, asked.definition.text
        if key not in least or asked.size < least[key].size:
            least[key] = asked
    return [*least.values()]


def _stop(*_: Any) -> None:
    raise _TimeIsUp


def _within(seconds: int, one: Asked, plain: bool, device: str) -> dict[str, float]:
    """Return what is not finite of a workload, or raise _TimeIsUp."""
    signal.alarm(seconds)
    try:
        return not_finite(
            one.definition, one.workload, ROOT, domains=not plain, device=device
        )
    finally:
        # may raise as well: what comes late is no answer
        signal.alarm(0)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("op_types", nargs="*", metavar="OP_TYPE")
    parser.add_argument("--plain", action="store_true", help="without domains")
    parser.add_argument(
        "--each-reference", action="store_true", help="the smallest of each text"
    )
    parser.add_argument("--mebibytes", type=int, default=256, help="largest workload")
    parser.add_argument("--over", type=int, default=0, help="MiB of those left out")
    parser.add_argument("--seconds", type=int, default=20, help="for each workload")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGALRM, _stop)
    choose = smallest if options.each_reference else workloads
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    try:
        for one in choose(options.op_types):
            if one.size < options.over << 20:
                continue
            name = one.definition.name
            if one.size > options.mebibytes << 20:
                counts["large"] += 1
                continue
            try:
                found = _within(options.seconds, one, options.plain, options.device)
            except (_TimeIsUp, torch.OutOfMemoryError) as error:
                counts["slow"] += 1
                print(f"{name}: no answer, {type(error).__name__}", flush=True)
                continue
            counts["asked"] += 1
            if found and name.startswith(INFINITE):
                counts["by_operation"] += 1
            elif found:
                shares = ", ".join(f"{n} {share:.2%}" for n, share in found.items())
                wrong.setdefault(name, []).append(f"{one.workload['axes']}: {shares}")
    except KeyboardInterrupt:
        print("interrupted")
    for name, cases in wrong.items():
        print(f"{name}: {len(cases)}, for one {cases[0]}")
    bad = sum(map(len, wrong.values()))
    print(
        f"{counts['asked']} workloads asked, {bad} not finite, {counts['by_operation']} "
        f"infinite by the operation; {counts['large']} larger than {options.mebibytes} "
        f"MiB, {counts['slow']} over {options.seconds} s or the memory"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
