"""Decide by running both whether a mutant of a kernel is equivalent to the kernel.

Both are called on inputs of the op that the judge did not ask, and on these with their
elements in another order and at other scales. A mutant whose compiled code is the kernel's
(PTX, without places in the source) is equivalent, as is one that returns the same bits
everywhere. One that returns other bits and is as near to the float64 oracle, within a
hundredth, rounds otherwise. All others are defects.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from generator.evaluation.arena import poison
from generator.evaluation.building import build
from generator.evaluation.rounds import Round, rounds_of
from generator.evaluation.solution import Solution
from generator.execution.child import Link
from generator.execution.forks import Forks
from generator.execution.outcome import DONE
from generator.rules.load import load_definitions
from kernel_judge.inputs.memory import dtype_of, shape_of, tensor_bytes
from kernel_judge.inputs.trial import as_tuple, seed

SAME_CODE, SAME_BITS = "same code", "same bits"
ROUNDING, DEFECT, UNKNOWN = "rounds otherwise", "defect", "unknown"

_PACKAGE = "solution_under_evaluation"
_FUZZ, _VARIANTS = 24, 12
_BYTES, _FEWEST = {"cpu": 2 << 20, "cuda": 256 << 20}, 8
_SECONDS = 150.0
_SEED = 2**20 + 7
# how much farther from the oracle one may be that rounds otherwise
_AS_NEAR = 1.01
_LEAST_NMSE = 1e-12
_PLACES = re.compile(
    r"^\s*(\.loc|\.file|//|\$L__tmp|\.section|\{|\}).*$|//.*$", re.MULTILINE
)


@dataclass(frozen=True)
class Fate:
    """Hold what a mutant that passed is, on how many inputs that was seen, and how."""

    kind: str
    inputs: int
    detail: str = ""


def fates(
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    device: str,
    jobs: int,
    secret: int,
) -> dict[str, Fate]:
    """Return name → fate of mutants; `pairs` are solutions, a kernel and its mutant."""
    known = {
        name: _rounds(name, device, secret)
        for name in {value["definition"] for value, _ in pairs}
    }

    def work(number: int, link: Link) -> tuple[str, int, str]:
        kernel, mutant = pairs[number]
        return _compared(kernel, mutant, known[kernel["definition"]], device)

    found = {}
    for number, outcome in Forks(jobs, _SECONDS, per_fork=1).run(
        work, range(len(pairs))
    ):
        made = Fate(*outcome.value) if outcome.status == DONE else None
        why = f"{outcome.status}: {outcome.why}"
        found[pairs[number][1]["name"]] = made or Fate(UNKNOWN, 0, why)
    return found


def _rounds(name: str, device: str, secret: int) -> list[Round]:
    """Return rounds of a definition with their inputs, fewer where these are large."""
    (definition,) = load_definitions(Path(), op_types=[], names=[name]).definitions
    cpu = torch.device("cpu")
    asked = rounds_of(definition, [], Path(), cpu, secret + 1, fuzz=_FUZZ)
    rounds = [one for _, of_case in asked.rounds for one in of_case[:2]]
    random.Random(secret).shuffle(rounds)
    kept: list[Round] = []
    left = _BYTES[device]
    for one in rounds:
        size = tensor_bytes(one.trial.definition, one.case)
        if size <= left or len(kept) < _FEWEST:
            left -= size
            _ = one.inputs
            kept.append(one)
    return kept


def _compared(
    kernel: Mapping[str, Any],
    mutant: Mapping[str, Any],
    rounds: Sequence[Round],
    device: str,
) -> tuple[str, int, str]:
    """Return what a mutant is, on how many inputs, and what differs."""
    calls, modules = zip(*map(_built, (kernel, mutant)), strict=True)
    count, differs, first = 0, 0, ""
    off = [0.0, 0.0]
    for one in rounds:
        for inputs in _variants(one.inputs, device):
            count += 1
            answers = [
                _called(call, value, inputs, one)
                for call, value in zip(calls, (kernel, mutant), strict=True)
            ]
            if all(_same(a, b) for a, b in zip(*answers, strict=True)):
                continue
            differs += 1
            first = first or f"{one.case.name}: {dict(one.case.axes)}"
            for place, nmse in enumerate(_distances(answers, inputs, one)):
                off[place] += nmse
    if not differs:
        codes = [_code(module) for module in modules]
        alike = codes[0] is not None and codes[0] == codes[1]
        return (SAME_CODE if alike else SAME_BITS), count, ""
    detail = (
        f"on {differs} of {count} inputs, first {first}; NMSE {off[1] / differs:.3g}"
    )
    detail += f", the kernel's {off[0] / differs:.3g}"
    is_as_near = off[1] <= _AS_NEAR * off[0] + _LEAST_NMSE * differs
    return (ROUNDING if is_as_near else DEFECT), count, detail


def _built(value: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Return a solution's function, and the modules of its sources."""
    folder = tempfile.mkdtemp()
    solution = Solution(dict(value), value["name"])
    path = list(sys.path)
    for name in [n for n in sys.modules if n.split(".")[0] == _PACKAGE]:
        del sys.modules[name]
    call = build({**solution.how(), "arguments": _arguments(value)}, folder)
    made = [m for n, m in sys.modules.items() if n.split(".")[0] == _PACKAGE]
    sys.path[:] = path
    return call, made


def _arguments(value: Mapping[str, Any]) -> int:
    name = value["definition"]
    (definition,) = load_definitions(Path(), op_types=[], names=[name]).definitions
    passes = Solution(dict(value), "").passes_outputs
    return len(definition.inputs) + (len(definition.outputs) if passes else 0)


def _variants(inputs: Mapping[str, Any], device: str) -> Iterator[dict[str, Any]]:
    """Return inputs, then these with elements of floats in another order, scaled."""
    own = {
        n: v.to(device) if isinstance(v, torch.Tensor) else v for n, v in inputs.items()
    }
    yield own
    draw = torch.Generator(device).manual_seed(_SEED)
    for number in range(_VARIANTS):
        scale = 2.0 ** (number % 5 - 2)
        yield {n: _moved(v, draw, scale) for n, v in own.items()}


def _moved(value: Any, draw: torch.Generator, scale: float) -> Any:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if value.dtype.itemsize == 1 or value.numel() == 0:
        return value
    order = torch.randperm(value.numel(), generator=draw, device=value.device)
    return (value.flatten()[order] * scale).view(value.shape)


def _called(
    call: Any, value: Mapping[str, Any], inputs: Mapping[str, Any], one: Round
) -> list[torch.Tensor]:
    """Return copies of what a solution wrote or returned."""
    given = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs.values()]
    axes = {**one.subject.definition.axes, **one.case.axes}
    seed(_SEED)
    with torch.no_grad():
        if not Solution(dict(value), "").passes_outputs:
            found = as_tuple(call(*given))
        else:
            device = next(v.device for v in given if isinstance(v, torch.Tensor))
            found = tuple(
                torch.empty(shape_of(s, axes), dtype=dtype_of(s.dtype), device=device)
                for s in one.subject.interface.output_specs.values()
            )
            for output in found:
                poison(output)
            call(*given, *found)
    if any(v.is_cuda for v in given if isinstance(v, torch.Tensor)):
        torch.cuda.synchronize()
    # what it filled counts as well
    filled = [v for n, v in zip(inputs, given, strict=True) if n in one.filled]
    return [torch.as_tensor(v) for v in (*found, *filled)]


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    bits = (t.contiguous().flatten().view(torch.uint8) for t in (first, second))
    return torch.equal(*bits)


def _distances(
    answers: Sequence[Sequence[torch.Tensor]], inputs: Mapping[str, Any], one: Round
) -> list[float]:
    """Return how far both are from the oracle: the greatest NMSE of an output."""
    oracle = one.subject.op.oracle
    assert oracle is not None
    expected = as_tuple(oracle(one.trial.definition, dict(inputs)))
    found = []
    for answer in answers:
        off = 0.0
        for actual, wanted in zip(answer, expected, strict=False):
            a, e = actual.double(), torch.as_tensor(wanted).to(actual.device).double()
            a, e = torch.nan_to_num(a, 1e30), torch.nan_to_num(e, 1e30)
            power = float(e.square().sum())
            off = max(off, float((a - e).square().sum()) / max(power, 1e-30))
        found.append(min(off, 1e30))
    return found


def _code(modules: Sequence[Any]) -> frozenset[str] | None:
    """Return the compiled code of Triton's kernels, None where there is none to see."""
    found = set()
    for module in modules:
        for kernel in vars(module).values():
            for cache in getattr(kernel, "device_caches", {}).values():
                compiled = cache[0] if isinstance(cache, tuple) else cache
                for one in compiled.values():
                    asm = getattr(one, "asm", {})
                    if "ptx" in asm:
                        found.add(_PLACES.sub("", asm["ptx"].split(".debug_")[0]))
    return frozenset(found) or None
