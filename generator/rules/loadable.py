"""Rules of flashinfer-bench's models: a dataset that breaks one does not load there.

Its `TraceSet` reads every file and raises at the first that a model rejects, so these
rules hold for whole datasets. They say what the schemas here leave open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.schema import check
from generator.problems import Problem, error, warning
from generator.problems.messages import quote
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


def check_definition(definition: LoadedDefinition) -> Iterator[Problem]:
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
    for problem in check(value, "loadable-solution", ""):
        yield LOADER_SOLUTION.problem("", problem.message, pointer=problem.pointer)


def check_trace(line: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what flashinfer-bench refuses of a trace that fits the schema."""
    for problem in check(line, "loadable-trace", ""):
        yield LOADER_TRACE.problem("", problem.message, pointer=problem.pointer)


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
