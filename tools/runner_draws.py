"""Ask every workload with the values that flashinfer-bench draws: are outputs finite?

    python tools/runner_draws.py [--plain] [--mebibytes N] [--device cuda] [OP_TYPE ...]

A line for each definition of which some are not, then counts. `--plain` leaves out the
domains that definitions state, as that runner does. The exit status is 1 where a workload
is not finite and no definition says that outputs are infinite by the operation.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    # Python put this script's folder on the path, not the repository.
    sys.path.insert(0, str(ROOT))

import torch

from generator.dataset.json_file import read_json_lines
from generator.evaluation.checkers.drawn_workload import not_finite
from generator.rules.load import load_definitions
from generator.rules.subjects import declared_definition
from kernel_judge.definition import Case
from kernel_judge.inputs.memory import tensor_bytes

_SECONDS = 20
INFINITE = ("top_k_mask_logits", "token_bitmask")
"""How names of operations begin whose outputs are infinite whatever they are given."""


class _TimeIsUp(Exception):
    pass


def _stop(*_: Any) -> None:
    raise _TimeIsUp


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("op_types", nargs="*", metavar="OP_TYPE")
    parser.add_argument("--plain", action="store_true", help="without domains")
    parser.add_argument("--mebibytes", type=int, default=256, help="largest workload")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGALRM, _stop)
    asked = bad = large = slow = by_operation = 0
    for definition in load_definitions(ROOT, op_types=options.op_types).definitions:
        known = declared_definition(definition)
        path = f"workloads/{definition.op_type}/{definition.name}.jsonl"
        wrong: list[str] = []
        for _, line in read_json_lines(ROOT, path).lines:
            workload = line["workload"]
            size = tensor_bytes(known, Case("workload", "medium", workload["axes"]))
            if size > options.mebibytes << 20:
                large += 1
                continue
            signal.alarm(_SECONDS)
            try:
                found = not_finite(
                    definition,
                    workload,
                    ROOT,
                    domains=not options.plain,
                    device=options.device,
                )
            except (_TimeIsUp, torch.OutOfMemoryError):
                slow += 1
                continue
            finally:
                signal.alarm(0)
            asked += 1
            if found and definition.name.startswith(INFINITE):
                by_operation += 1
            elif found:
                shares = ", ".join(f"{n} {share:.2%}" for n, share in found.items())
                wrong.append(f"{workload['axes']}: {shares}")
        bad += len(wrong)
        if wrong:
            print(f"{definition.name}: {len(wrong)}, for one {wrong[0]}", flush=True)
    print(
        f"{asked} workloads asked, {bad} not finite, {by_operation} infinite by the "
        f"operation; {large} larger than {options.mebibytes} MiB, {slow} over "
        f"{_SECONDS} s or the memory"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
