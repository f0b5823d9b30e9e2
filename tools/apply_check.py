"""Put solutions where FlashInfer's trace_apply finds them, and call its API.

    python tools/apply_check.py [NAME ...]      # on a GPU, with FlashInfer 0.6.18 or later

Of each definition whose name is asked for, the API is called as the tests call it, first
alone and then with the reference registered under the definition's name. Then the API's
call is captured into a CUDA graph, and what a replay gives is asked; a reference that
waits for the GPU leaves its place to a solution that does not (tools/apply_solutions.py).
A line says whether the call reached it (`hit`), whether results agree within the op's
tolerances, draws with the exact law of their rows, what was raised, and whether the
captured call does. Exit status 1 where a call that reached a solution raised, differs or
can't be captured, and route-interface did not say so.
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from generator.ops.registry import op_module
from generator.rendering.plan import RenderOptions, plan_tests
from generator.rules.load import load_definitions
from generator.rules.route_calls import check as check_calls
from generator.rules.routes import installed_as, routes_to
from kernel_judge.comparison.compare import compare
from kernel_judge.comparison.policy import Question, Repeating
from kernel_judge.comparison.tolerance import choose_tolerance
from kernel_judge.definition import Definition, Interface
from kernel_judge.inputs.trial import Trial, as_tuple, join, seed
from kernel_judge.providers import backend_obstacle
from kernel_judge.skipping import Skip
from tools.apply_solutions import solution_of

ROOT = Path(__file__).parent.parent
HIT = "hit"
BROKEN = ("raised", "differs", "not captured")
"""How the words begin of what must not be."""


def main(names: Sequence[str]) -> int:
    """Check the definitions that are named, or all that are asked for."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    failed = 0
    for loaded in load_definitions(ROOT, names=list(names)).definitions:
        if not [*routes_to(loaded)]:
            continue
        told = any(p.rule == "route-interface" for p in check_calls(loaded))
        outcome = checked(loaded, device)
        wrong = outcome.startswith(BROKEN) and not told
        failed += wrong
        note = " (route-interface says so)" if told else ""
        line = f"{'FAILED' if wrong else 'ok    '} {loaded.name}: {outcome}{note}"
        # as they come: what was seen before a time limit counts
        print(line, flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


def checked(loaded: Any, device: torch.device) -> str:
    """Return what became of one definition's calls in words."""
    definition, op = as_tested(loaded), op_module(loaded.op_type)
    backends = getattr(op, "flashinfer_backends", lambda _: ())(definition)
    usable = [b for b in backends if not backend_obstacle("flashinfer", b, device)]
    if not usable:
        return "no kernel here"
    apply = importlib.import_module("flashinfer.trace_apply")
    small = [case for case in op.cases(definition) if case.size == "small"]
    case = max(small, key=lambda case: math.prod(case.axes.values()))
    trial = Trial(definition, case, device, op.make_inputs, lambda: None)
    asked = Asked(trial, op, f"flashinfer/{usable[0].name}".rstrip("/"))

    def call() -> tuple[Any, ...]:
        given = asked.trial.fresh_inputs()
        return as_tuple(op.flashinfer_ground_truth(definition, given, usable[0].name))

    reference = run_of(loaded.reference)
    try:
        expected = call()
        before = hits(apply)
        with applied(apply, loaded, reference):
            unlike = [*asked.differences(call, expected)]
            if hits(apply) == before:
                return "the call did not ask for it"
        if unlike:
            return f"differs in {', '.join(unlike)}"
        said = f"{HIT}, equal {asked.terms}"
        if device.type != "cuda":
            return f"{said}; no graph without CUDA"
        other = solution_of(loaded.name)
        with applied(apply, loaded, other or reference):
            # a captured call runs what an eager one found
            unlike = [*asked.differences(call, expected)]
            if unlike:
                return f"differs in {', '.join(unlike)} by the solution that can be captured"
            ((api, _), *_) = routes_to(loaded)
            before = hits(apply)
            with captured(api) as graph:
                unlike = [*asked.differences(call, expected)]
            if hits(apply) == before:
                return "not captured: the call did not ask for it then"
    except Skip as reason:
        return f"not compared: {reason}"
    except NotCaptured as error:
        renew_generator(device)
        return f"not captured: {error}"
    except Exception as error:  # noqa: BLE001
        return f"raised {type(error).__name__}: {error}"
    if unlike:
        return f"differs in {', '.join(unlike)} when a captured call is replayed"
    how = f"replayed {graph.replays} times" if graph.replays > 1 else "replayed"
    whose = ", by a solution that does not wait" if other else ""
    return f"{said}; captured, and equal when it is {how}{whose}"


@contextmanager
def applied(apply: Any, loaded: Any, solution: Any) -> Iterator[None]:
    """Register a solution under the name that is asked for."""
    apply.enable_apply({installed_as(loaded.name): solution})
    try:
        yield
    finally:
        apply.disable_apply()


class Asked(NamedTuple):
    """One case of a definition, who judges its answers, and which kernel's they are."""

    trial: Trial
    op: Any
    source: str = "flashinfer"

    @property
    def terms(self) -> str:
        """Return by what answers are held to be equal."""
        return "by the law of their draws" if self._draws() else "within tolerances"

    def _draws(self) -> bool:
        policies = getattr(self.op, "POLICIES", {})
        return any(isinstance(policy, Repeating) for policy in policies.values())

    def differences(
        self, call: Callable[[], tuple[Any, ...]], expected: tuple[Any, ...]
    ) -> Iterator[str]:
        """Call, as often as draws need it, and yield the outputs that are not equal."""
        definition, case = self.trial.definition, self.trial.case
        seed(self.trial.run_seed)
        actual = call()
        if len(actual) != len(expected):
            yield f"number: {len(actual)}, not {len(expected)}"
            return
        if self._draws():
            yield from self._unlawful(call, actual)
            return
        rows = getattr(self.op, "defined_rows", lambda *_: None)(
            definition, self.trial.inputs
        )
        specs = definition.interface.output_specs
        for (name, spec), a, e in zip(specs.items(), actual, expected, strict=False):
            if a is None and e is None:
                continue
            bound = choose_tolerance(
                tuple(o.at(definition, case) for o in self.op.TOLERANCES),
                name,
                spec.dtype,
                self.source,
                case=case.name,
                constants=tuple(definition.constants),
                axes={**definition.axes, **case.axes},
            )
            if rows is not None:
                a, e = a[rows.to(a.device)], e[rows.to(e.device)]
            if not compare(a, e, bound, same_dtype=True).passed:
                yield name

    def _unlawful(
        self, call: Callable[[], tuple[Any, ...]], first: tuple[Any, ...]
    ) -> Iterator[str]:
        """Yield outputs whose draws, the first and more, are not those of their law."""
        trial = self.trial
        laws = as_tuple(self.op.oracle(trial.definition, trial.inputs))
        question = Question(trial.definition, trial.case, trial.inputs, "oracle")
        names = trial.definition.interface.output_specs
        for place, (name, law) in enumerate(zip(names, laws, strict=True)):
            policy = self.op.POLICIES[name]
            draws = join(first, call, policy.calls(first[place], trial.case))
            verdict = policy.judge(draws[place], law, question)
            if not verdict.passed:
                yield f"{name} ({'; '.join(verdict.findings)[:200]})"


def hits(apply: Any) -> int:
    """Return how many calls reached a solution, or raised in one, in this process."""
    counts = apply.stats_snapshot().values()
    return sum(c.get(HIT, 0) + c.get("error", 0) for c in counts)


class NotCaptured(Exception):
    """A call can't be captured; says why."""


class Graph:
    """The API as an engine calls it: captured at the first call, replayed at each.

    Calls behind the first are of the same inputs, and find these where they were.
    """

    def __init__(self, api: Callable[..., Any]) -> None:
        self._api = api
        self._graph: torch.cuda.CUDAGraph | None = None
        self._outputs: Any = None
        self.replays = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._graph is None:
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph):
                    self._outputs = self._api(*args, **kwargs)
            except Exception as error:
                torch.cuda.synchronize()
                raise NotCaptured(f"{type(error).__name__}: {error}") from error
            self._graph, self._kept = graph, (args, kwargs)
        self._graph.replay()
        torch.cuda.synchronize()
        self.replays += 1
        return copied(self._outputs)


def copied(value: Any) -> Any:
    """Return what a call returned, safe from the next replay."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(copied, value))
    return value.clone() if isinstance(value, torch.Tensor) else value


@contextmanager
def captured(api: str) -> Iterator[Graph]:
    """Capture calls of one function of FlashInfer, or of a class's run().

    What plans, and makes tensors, around it is done before, as engines do.
    """
    *path, name = api.split(".")
    owner = importlib.import_module(path[0])
    for part in path[1:]:
        owner = getattr(owner, part)
    if inspect.isclass(getattr(owner, name)):
        # a wrapper, which plans before it runs
        owner, name = getattr(owner, name), "run"
    called = getattr(owner, name)
    graph = Graph(called)

    def replayed(*args: Any, **kwargs: Any) -> Any:
        return graph(*args, **kwargs)

    setattr(owner, name, replayed)
    try:
        yield graph
        if not graph.replays:
            raise NotCaptured(f"nobody called {api}")
    finally:
        setattr(owner, name, called)


def renew_generator(device: torch.device) -> None:
    """Give a GPU's generator a state that no capture was broken off in."""
    if device.type == "cuda":
        generator = torch.cuda.default_generators[device.index or 0]
        generator.graphsafe_set_state(torch.Generator(device).graphsafe_get_state())


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
