"""Put references where FlashInfer's trace_apply finds them, and call its API.

    python tools/apply_check.py [NAME ...]      # on a GPU, with FlashInfer 0.6.18 or later

Of each definition whose name is asked for, the API is called as the tests call it, first
alone and then with the reference registered under the definition's name. A line says
whether the call reached it (`hit`), whether results agree within the op's tolerances,
what was raised, and whether the call can be captured into a CUDA graph. What the API alone
does not repeat is drawn: it is not compared, and the call is not captured, since a
reference that draws leaves the generator in the middle of a capture. Exit status 1
where a call that reached a reference raised, or differs, and route-interface did not say
so.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from generator.ops.registry import op_module
from generator.rendering.plan import RenderOptions, plan_tests
from generator.rules.load import load_definitions
from generator.rules.route_calls import check as check_calls
from generator.rules.routes import installed_as, routes_to
from kernel_judge.comparison.compare import compare
from kernel_judge.comparison.tolerance import choose_tolerance
from kernel_judge.definition import Definition, Interface
from kernel_judge.inputs.trial import Trial, as_tuple
from kernel_judge.providers import backend_obstacle
from kernel_judge.skipping import Skip

ROOT = Path(__file__).parent.parent
HIT = "hit"


def main(names: Sequence[str]) -> int:
    """Check the definitions that are named, or all that are asked for."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    failed = 0
    for loaded in load_definitions(ROOT, names=list(names)).definitions:
        if not [*routes_to(loaded)]:
            continue
        told = any(p.rule == "route-interface" for p in check_calls(loaded))
        outcome = checked(loaded, device)
        wrong = outcome.startswith(("raised", "differs")) and not told
        failed += wrong
        note = " (route-interface says so)" if told else ""
        line = f"{'FAILED' if wrong else 'ok    '} {loaded.name}: {outcome}{note}"
        # as they come: what was seen before a time limit counts
        print(line, flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


def checked(loaded: Any, device: torch.device) -> str:
    """Return what became of one definition's call in words."""
    definition, op = as_tested(loaded), op_module(loaded.op_type)
    backends = getattr(op, "flashinfer_backends", lambda _: ())(definition)
    usable = [b for b in backends if not backend_obstacle("flashinfer", b, device)]
    if not usable:
        return "no kernel here"
    apply = importlib.import_module("flashinfer.trace_apply")
    case = next(c for c in op.cases(definition) if c.size == "small")
    trial = Trial(definition, case, device, op.make_inputs, lambda: None)
    backend = usable[0]

    def call(given: dict[str, Any] | None = None) -> tuple[Any, ...]:
        given = trial.fresh_inputs() if given is None else given
        return as_tuple(op.flashinfer_ground_truth(definition, given, backend.name))

    try:
        expected = call()
        drawn = {*differences(definition, op, case, call(), expected)}
    except Skip as reason:
        return f"not compared: {reason}"
    before = hits(apply)
    apply.enable_apply({installed_as(loaded.name): run_of(loaded.reference)})
    try:
        actual = call()
        if hits(apply) == before:
            return "the call did not ask for it"
        unlike = differences(definition, op, case, actual, expected)
        differing = [name for name in unlike if name not in drawn]
        if drawn and not differing:
            return (
                f"{HIT}, nothing raised; {', '.join(sorted(drawn))} drawn, not compared"
            )
        graph = captured(call, trial.fresh_inputs(), device)
        again = [] if graph.outputs is None else graph.outputs
        if again and [*differences(definition, op, case, again, expected)]:
            return "differs when a captured call is replayed"
    except Exception as error:  # noqa: BLE001
        return f"raised {type(error).__name__}: {error}"
    finally:
        apply.disable_apply()
    if differing:
        return f"differs in {', '.join(differing)}"
    return f"{HIT}, equal within tolerances; {graph.what}"


def differences(
    definition: Definition, op: Any, case: Any, actual: Any, expected: Any
) -> Iterator[str]:
    """Yield the outputs that are not within the op's tolerances."""
    specs = definition.interface.output_specs
    if len(actual) != len(expected):
        yield f"number: {len(actual)}, not {len(expected)}"
        return
    for (name, spec), a, e in zip(specs.items(), actual, expected, strict=False):
        if a is None and e is None:
            continue
        bound = choose_tolerance(
            op.TOLERANCES,
            name,
            spec.dtype,
            "flashinfer",
            case=case.name,
            constants=tuple(definition.constants),
        )
        if not compare(a, e, bound, same_dtype=True).passed:
            yield name


def hits(apply: Any) -> int:
    """Return how many calls reached a solution, or raised in one, in this process."""
    counts = apply.stats_snapshot().values()
    return sum(c.get(HIT, 0) + c.get("error", 0) for c in counts)


class Captured(NamedTuple):
    """Say whether a call was captured into a CUDA graph; `outputs` of its replay."""

    what: str
    outputs: Sequence[Any] | None = None


def captured(call: Any, given: dict[str, Any], device: torch.device) -> Captured:
    """Capture a call on inputs that are there before, and replay it."""
    if device.type != "cuda":
        return Captured("no graph without CUDA")
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            outputs = call(given)
    except Exception as error:  # noqa: BLE001
        torch.cuda.synchronize()
        return Captured(f"not captured: {type(error).__name__}")
    graph.replay()
    torch.cuda.synchronize()
    return Captured("captured, and equal when it is replayed", outputs)


def as_tested(loaded: Any) -> Definition:
    """Return a definition as its rendered test knows it."""
    plan = plan_tests(loaded.op_type, [loaded], RenderOptions())
    (interface,), (planned,) = plan.interfaces, plan.classes
    return Definition(
        loaded.name,
        loaded.op_type,
        Interface(interface.inputs, interface.outputs, interface.constraints),
        loaded.const_axes,
        {constant.name: constant.value for constant in planned.constants},
    )


def run_of(reference: str) -> Any:
    """Execute a reference's text, of this repository, and return its run()."""
    namespace: dict[str, Any] = {"__name__": "reference"}
    exec(compile(reference, "<reference>", "exec"), namespace)  # noqa: S102
    return namespace["run"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
