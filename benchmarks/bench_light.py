"""Whether a production kernel is ever timed faster than light.

    python benchmarks/bench_light.py [--timings 10000] [--output FILE] [DEFINITION ...]

Needs a GPU to itself. The production kernels of each definition are timed as rivals of a
solution are, on up to four of its workloads, or cases, again and again until it has its
share of as many single timings as asked. A line a definition says how many lay below the light's time and below
what is possible, and the nearest to it; FILE gets a JSON line a kernel and workload.
Without names: one definition each of kernels that are soon there. On a CPU, whose light
nobody knows, `--device cpu` only tries the script.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation.clock.contender import Contender
from generator.evaluation.clock.fresh_inputs import FreshInputs
from generator.evaluation.clock.light import light_of
from generator.evaluation.clock.page import Silent
from generator.evaluation.clock.rivals import NoRival
from generator.evaluation.clock.session_result import SessionResult, Untimed
from generator.evaluation.clock.timed_calls import TimedCalls
from generator.evaluation.clock.timing_session import TimingSession
from generator.evaluation.rounds import Round, rounds_of, workloads_of
from generator.evaluation.timing import Field, layout_of, timed_rounds
from generator.evaluation.verdict import RUNTIME_ERROR, Refused
from generator.rules.load import load_file
from kernel_judge.inputs.lazy_weights import fresh
from kernel_judge.inputs.memory import tensor_bytes

ROOT = Path(__file__).resolve().parents[1]
_DEFINITIONS = (
    *("rmsnorm_h4096", "rmsnorm_h128", "gemma_rmsnorm_h128", "layernorm_h128"),
    *("gemm_n4096_k4096", "gemm_bf16_n8_k6144", "residual_add_h1280", "bias_add_n1280"),
    *("silu_and_mul_i512", "silu_and_mul_i14336", "embedding_v32000_h4096"),
    *("argmax_rows_v128256", "split_qkv_h64_kv8_d64", "int8_mm_n4096_k4096"),
    *("w8a8_fp8_n1280_k8192", "w4a16_int4pack_n1536_k4096", "cross_entropy_v50257"),
    *("merge_state_h64_d64", "rope_with_cos_sin_cache_neox_style_d128_rd64"),
    "gelu_tanh_backward_i3072",
)
# processes that start beside each other, before any of theirs is timed
_GROUP = 10
_ROUNDS = 4
# of one definition
_SITTINGS = 12
_MOST_BYTES = 1 << 30


class Counts:
    """What all timings came to."""

    def __init__(self, output: Path | None) -> None:
        self.timings = self.faster = self.impossible = 0
        self.kernels: set[str] = set()
        self.nearest = (0.0, "")
        self._output = output

    def add(self, name: str, case: str, result: SessionResult, light: Any) -> None:
        """Count the single timings of each kernel of a session."""
        for kernel, figures in result.figures.items():
            if not figures:
                continue
            self.kernels.add(f"{name} {kernel}")
            self.timings += len(figures)
            line: dict[str, Any] = {
                "definition": name,
                "case": case,
                "kernel": kernel,
                "timings": len(figures),
                "least_ms": min(figures),
                "median_ms": statistics.median(figures),
            }
            if light is not None:
                bound = light.milliseconds
                line["light_ms"], line["possible_ms"] = bound, light.least
                line["faster"] = sum(one < bound for one in figures)
                line["impossible"] = sum(one < light.least for one in figures)
                line["fraction_of_light"] = bound / max(line["median_ms"], 1e-9)
                self.faster += line["faster"]
                self.impossible += line["impossible"]
                near = (line["fraction_of_light"], f"{kernel} of {name}, {case}")
                self.nearest = max(self.nearest, near)
            if self._output is not None:
                with self._output.open("a") as file:
                    file.write(f"{json.dumps(line)}\n")

    def __str__(self) -> str:
        return (
            f"{self.timings} timings of {len(self.kernels)} kernels: {self.faster} "
            f"faster than light, {self.impossible} than possible; the nearest median "
            f"{self.nearest[0]:.3f} of light ({self.nearest[1]})"
        )


def measured(field: Field, one: Round, secret: int) -> SessionResult:
    """Return a session in which the first kernel stands where a solution does.

    Raises Refused, Untimed, Silent.
    """
    calls = TimedCalls(field.device, layout_of(one), _filled(one))
    on = torch.device(field.device)
    draws = []
    for shift in (one.shift, one.shift + 1):
        this = Round(one.subject, one.case, shift, one.device, one.workload)
        draws.append({n: fresh(v, on) for n, v in this.trial.inputs.items()})
    links = [(one, one.link(calls, calls.memory)) for one in field.processes]
    try:
        contenders = [
            Contender(name, link, number)
            for process, link in links
            for number, name in enumerate(process.names, 1)
        ]
        if not contenders:
            raise Refused(RUNTIME_ERROR, "no kernel runs here")
        session = TimingSession(
            calls,
            FreshInputs(draws, field.device, secret),
            contenders[0],
            contenders[1:],
            links[0][1],
            False,
            secret,
            field.telemetry,
            lambda silent: Refused(RUNTIME_ERROR, str(silent)),
        )
        return session.run()
    finally:
        for process, link in links:
            process.end(link)
        calls.close()


def _filled(one: Round) -> list[int]:
    names = list(one.inputs)
    return [names.index(name) for name in one.filled]


def rounds_to_time(file: DatasetFile, device: torch.device) -> list[tuple[str, Round]]:
    """Return up to four rounds of a definition that are timed, of different sizes."""
    definition, problems = load_file(ROOT, file)
    if definition is None:
        raise SystemExit(str(problems[0]))
    workloads = workloads_of(ROOT, file)
    asked = rounds_of(definition, workloads, ROOT, device, random.randrange(2**62))

    def size(one: Round) -> int:
        return tensor_bytes(one.subject.definition, one.case)

    found = [(n, r) for n, r in timed_rounds(asked).items() if _is_fit(r, size(r))]
    found.sort(key=lambda pair: size(pair[1]))
    step = max(len(found) // _ROUNDS, 1)
    return found[::-step][:_ROUNDS]


def _is_fit(one: Round, size: int) -> bool:
    return 0 < size <= _MOST_BYTES and all(one.case.axes.values())


def files_of(names: Sequence[str]) -> Iterator[DatasetFile]:
    """Yield the definitions of some names."""
    for name in names:
        (path,) = ROOT.glob(f"definitions/*/{name}.json")
        relative = path.relative_to(ROOT)
        yield DatasetFile(relative.parent.name, name, str(relative))


def main() -> int:
    """Time kernels until there are as many timings as asked, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("definitions", nargs="*", metavar="DEFINITION")
    parser.add_argument("--timings", type=int, default=10_000)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args()
    device, counts = torch.device(options.device), Counts(options.output)
    files = list(files_of(options.definitions or _DEFINITIONS))
    share = -(-options.timings // len(files))
    for begin in range(0, len(files), _GROUP):
        _timed_group(files[begin : begin + _GROUP], device, counts, share)
    print(f"{device}: {counts}")
    return int(bool(counts.faster) or not counts.kernels)


def _timed_group(
    files: Sequence[DatasetFile], device: torch.device, counts: Counts, share: int
) -> None:
    with ExitStack() as stack:
        fields = []
        for file in files:
            rounds = rounds_to_time(file, device)
            field = Field(ROOT, file, device.type, None)
            stack.enter_context(closing(field))
            fields.append((file, field, rounds))
        for file, field, rounds in fields:
            try:
                field.begin([layout_of(one) for _, one in rounds])
            except NoRival as error:
                print(f"{file.name}: {error}", flush=True)
        for file, field, rounds in fields:
            wanted = counts.timings + share
            for name, one in islice(
                cycle(rounds if field.processes else ()), _SITTINGS
            ):
                if counts.timings >= wanted:
                    break
                try:
                    of_case = measured(field, one, random.randrange(2**62))
                except (Refused, Untimed, Silent) as error:
                    print(f"{file.name}, {name}: {error}", flush=True)
                    break
                of = (one.subject.definition, one.case.axes, one.inputs)
                light = light_of(*of, device.type)
                counts.add(file.name, name, of_case, light)
            field.close()
            print(f"{file.name}: {counts}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
