"""The command `trace-dataset parity`: definitions composed into a model, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from generator.cli import options
from generator.cli.choose import require_definitions
from generator.cli.output import progress, say, show, write_files
from generator.problems import Failure
from generator.problems.messages import one_line, plural

_GEOMETRIES = [
    "tiny",
    "gqa",
    "wide",
    "medium",
    "deep",
    "real",
    "quick",
    "full",
    "stress",
]
_LEVELS = ("stage", "layer", "forward", "decode", "train")


@click.command()
@options.several(
    *("--model", "models"),
    of="FAMILY|NAME|CONFIG.json",
    what="A family, a model whose figures come with this software, or its config; may "
    "be repeated.",
    required=True,
)
@options.dataset
@options.several(
    *("--level", "levels"),
    of=(*_LEVELS, "all"),
    what="What is compared; may be repeated.",
    default=("stage",),
)
@options.value(
    "--geometry",
    of=_GEOMETRIES,
    what="A small model, a set of them, or one layer of each type at the model's own "
    "sizes.",
    default="tiny",
)
@options.several(
    *("--dtype", "dtypes"),
    of=("float32", "bfloat16"),
    what="Data type of the models; may be repeated.",
    default=("float32", "bfloat16"),
)
@options.value(
    "--device",
    of=("cpu", "cuda"),
    what="Where models and definitions run.",
    default="cpu",
)
@options.value(
    "--kernels",
    of=("flashinfer", "sglang"),
    what="Run, beside the references, this provider's kernels in bfloat16.",
    default=None,
)
@options.value(
    "--solution",
    of="FILE|NAME",
    what="Run, beside the references, a solution in its definition's stages.",
    default=None,
)
@options.path(
    "--weights", what="Folder of the model's *.safetensors; drawn if not given."
)
@options.path(
    "--transformers",
    what="Folder that `pip install --target` put transformers into.",
    default=".transformers",
    envvar="GEN_TESTS_TRANSFORMERS",
)
@options.flag(
    "--record",
    help="Keep in verification/ what --geometry real shows of each definition.",
)
@options.path(
    "--html",
    what="Write a page with the heat maps of the stages there.",
    metavar="FILE",
)
@options.form()
def parity(
    models: tuple[str, ...],
    dataset: Path,
    levels: tuple[str, ...],
    geometry: str,
    dtypes: tuple[str, ...],
    device: str,
    kernels: str | None,
    solution: str | None,
    weights: Path | None,
    transformers: Path,
    record: bool,
    html: Path | None,
    form: str,
) -> int:
    """Compare a model that definitions compose with transformers.

    Each stage of a layer is computed by its definition's reference, which is executed,
    as a solution is: neither is confined. Weights are drawn from a seed. Exit status 1 where something differs by more than
    rounding explains.
    """
    if record and geometry != "real":
        raise click.UsageError("--record needs --geometry real: sizes are part of it.")
    if record and device != "cpu":
        raise click.UsageError("--record needs --device cpu, whose sums are known.")
    if weights and geometry != "real":
        raise click.UsageError("--weights needs --geometry real: they have its sizes.")
    if (kernels or solution) and "bfloat16" not in dtypes:
        raise click.UsageError("Kernels and solutions run in --dtype bfloat16 alone.")
    from generator.dataset.paths import discover_definitions
    from generator.parity.evidence import evidence
    from generator.parity.parity import Question, compare
    from generator.parity.report import parity_report
    from generator.results.evidence import record as keep

    found = discover_definitions(dataset)
    require_definitions(found.problems)
    if device == "cuda":
        from generator.evaluation.environment import why_no_cuda

        if lacks := why_no_cuda():
            raise Failure(f"--device cuda: {one_line(lacks)}.")
    chosen = [one for one in _LEVELS if one in levels or "all" in levels]
    question = Question(
        chosen,
        dtypes,
        geometry,
        weights,
        device=device,
        kernels=kernels or "",
        solution=_solution(dataset, solution) if solution else None,
    )
    with progress(f"Comparing {', '.join(models)} with transformers"):
        compared = compare(dataset, found, models, question, transformers)
    if record:
        for file, names in keep(dataset, [evidence(dataset, found, compared)]).items():
            say(f"{file}: {plural(len(names), 'definition')} recorded")
    report = parity_report(geometry, compared)
    if html is not None:
        from generator.parity.page import page

        write_files(html.parent, {html.name: page(report, compared).encode()})
        say(f"{html} written")
    return show(report, form)


def _solution(dataset: Path, name: str) -> Mapping[str, Any]:
    """Return what a chain calls a solution by. Raises Failure where it is none."""
    from generator.evaluation.solution import read_solutions

    (found,) = read_solutions(dataset, (), [name], ())
    if found.language not in ("python", "triton"):
        raise Failure(
            f"{found.name}: parity loads Python and Triton, not {found.language}."
        )
    return {
        "name": found.name,
        "definition": found.definition,
        "fills": found.passes_outputs,
        "entry_point": found.value["spec"]["entry_point"],
        "sources": list(found.value["sources"]),
    }
