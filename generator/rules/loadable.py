"""What flashinfer-bench's models refuse: a dataset with it does not load there at all.

Its `TraceSet` reads every file and raises at the first that a model rejects, so these
rules hold for whole datasets. They say what the schemas here leave open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from generator.dataset.definition import Definition
from generator.problems import Problem
from generator.problems.messages import quote, show
from generator.problems.rule import error, warning
from generator.rules.solutions import SOLUTION_DUPLICATE

LOADER_DTYPE = warning("""loader-dtype: flashinfer-bench does not have the dtype, and
    loads nothing of such a dataset.
    Fix: Keep it where nobody loads the dataset with flashinfer-bench.
    Finds: `"dtype": "uint8"`""")
LOADER_SOLUTION = error("""loader-solution: flashinfer-bench refuses the solution, and
    with it the whole dataset.
    Fix: Write what its models require: target_hardware, a known binding, sources.
    Finds: `"target_hardware": []`""")
LOADER_TRACE = error("""loader-trace: flashinfer-bench refuses the trace, and with it
    the whole dataset.
    Fix: Write what its models require: environment, timestamp, and the numbers that the
    status has.
    Finds: `"status": "PASSED"` without `"correctness"`""")

BINDINGS = ("tvm-ffi", "torch")


def check_definition(definition: Definition) -> Iterator[Problem]:
    """Yield a Problem for each tensor whose dtype flashinfer-bench does not have."""
    groups = {"inputs": definition.inputs, "outputs": definition.outputs}
    for group, tensors in groups.items():
        for tensor in tensors.values():
            if tensor.dtype == "uint8":
                yield LOADER_DTYPE.at(
                    f"flashinfer-bench has no dtype uint8, which {quote(tensor.name)} is.",
                    *(group, tensor.name, "dtype"),
                )


def check_solution(value: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what flashinfer-bench refuses of a solution that fits the schema."""
    spec = value["spec"]
    if not spec.get("target_hardware"):
        message = "The solution names no target_hardware."
        yield LOADER_SOLUTION.at(message, "spec")
    if spec.get("binding") not in (None, *BINDINGS):
        message = (
            f"The binding is {quote(spec['binding'])}, not {' or '.join(BINDINGS)}."
        )
        yield LOADER_SOLUTION.at(message, "spec", "binding")
    for index, source in enumerate(value["sources"]):
        if not source["content"]:
            message = f"The source {quote(source['path'], 200)} is empty."
            yield LOADER_SOLUTION.at(message, "sources", index, "content")


def check_trace(line: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what flashinfer-bench refuses of a trace that fits the schema."""
    evaluation = line.get("evaluation")
    if evaluation is None:
        return
    for where, message in _of_evaluation(evaluation):
        yield LOADER_TRACE.at(message, "evaluation", *filter(None, where.split("/")))


def _of_evaluation(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    environment = evaluation.get("environment")
    if environment is None:
        yield "", "The evaluation has no environment."
    else:
        hardware = environment.get("hardware")
        if not isinstance(hardware, str) or not hardware:
            yield "/environment", "The environment names no hardware."
        libraries = environment.get("libs", {})
        if not isinstance(libraries, dict):
            yield "/environment/libs", f"The libs are {show(libraries)}, not an object."
        elif not all(isinstance(v, str) for v in libraries.values()):
            yield "/environment/libs", "A version in libs is not a string."
    if not evaluation.get("timestamp"):
        yield "", "The evaluation has no timestamp."
    if evaluation.get("log", "") is None:
        yield "/log", "The log is null, not a string."
    status = evaluation["status"]
    wanted = {
        "correctness": status in ("PASSED", "INCORRECT_NUMERICAL"),
        "performance": status == "PASSED",
    }
    for part, is_wanted in wanted.items():
        measured = evaluation.get(part)
        if (measured is not None) != is_wanted:
            has = "without" if is_wanted else "with"
            yield "", f"The trace is {status} {has} {part}."
        for name, number in (measured or {}).items():
            if number is None and name != "extra":
                yield f"/{part}/{name}", f"The {name} is null, not a number."


def check_solution_names(paths: Iterable[str]) -> Iterator[Problem]:
    """Yield a Problem for each solution whose name one of another definition has.

    The names are those of the files; of one definition they are compared elsewhere.
    """
    first: dict[str, tuple[str, str]] = {}
    for path in sorted(paths):
        _, _, _, definition, file = path.split("/", 4)
        name = file.removesuffix(".json")
        other = first.setdefault(name, (definition, path))
        if other[0] != definition:
            message = f"The name {quote(name)} is also that of {quote(other[1], 200)}."
            yield SOLUTION_DUPLICATE.problem(path, message, pointer="/name")
