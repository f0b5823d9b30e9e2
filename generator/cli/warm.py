"""The command `trace-dataset warm`: compile the kernels that the tests need."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import require_modules, status_of, write_lines
from generator.problems import Failure

_NEEDED = ("torch", "numpy", "pytest")


def _usual_jobs() -> int:
    from generator.running.warming import usual_jobs

    return usual_jobs()


@options.command()
def warm(
    choice: Choice = options.part,
    tests: Path | None = options.tests,
    jobs: int = options.jobs(
        _usual_jobs, "three for 8 cores, as each runs up to five compilers,"
    ),
) -> int:
    """Compile the kernels that the tests need.

    Without a choice, those of all definitions. A test run on a GPU does the same for
    definitions of which no kernel was compiled yet. A line on each module goes to
    stdout. Exit status: 0 fine, 1 a kernel could not be compiled, 2 wrong usage, no GPU
    or no FlashInfer.
    """
    from importlib.util import find_spec

    from generator.execution.gpus import visible_gpus
    from generator.ground_truth.recording import not_rendered
    from generator.rendering.standalone import SUPPORT, is_standalone
    from generator.running.warming import Compilation, Job

    _, files = choice.find()
    gpus = visible_gpus()
    if gpus.is_known and not gpus.found:
        reason = gpus.shortage() or "No CUDA device here"
        raise Failure(f"{reason}: kernels are compiled on a machine with a GPU.")
    require_modules("Compiling kernels needs", _NEEDED)
    if find_spec("flashinfer") is None:
        raise Failure(
            "FlashInfer is not installed: pip install 'gen-tests[flashinfer]'."
        )
    folder = tests or choice.dataset / "tests" / "references"
    of_file: dict[str, list[str]] = defaultdict(list)
    for file in files:
        test_file = folder / f"test_{file.op_type}.py"
        obstacle = not_rendered(file, choice.dataset, test_file)
        if obstacle:
            raise Failure(f"{file.name}: {obstacle}")
        of_file[str(test_file.resolve())].append(file.name)
    package, place = "generator", Path(__file__).parents[2]
    if is_standalone(folder):
        package, place = SUPPORT, folder.resolve()
    compilation = Compilation(
        f"{package}.running", place, lambda line: write_lines([line])
    )
    compilation.begin(Job(of_file, jobs))
    return status_of(compilation.finish())
