"""The command `trace-dataset parity`: definitions composed into a model, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from generator.api import require_device
from generator.cli import options
from generator.cli.choose import Choice
from generator.cli.output import progress, say, show, write_files
from generator.problems import Failure
from generator.problems.messages import plural
from kernel_judge.provider import providers

_GEOMETRIES = [
    "tiny",
    "gqa",
    "wide",
    "medium",
    "deep",
    "real",
    "whole",
    "quick",
    "full",
    "stress",
]
_LEVELS = ("stage", "layer", "forward", "decode", "train")


@options.command()
def parity(
    models: tuple[str, ...] = options.several(
        "A family, a model whose figures come with this software, or its config; may "
        "be repeated.",
        "FAMILY|NAME|CONFIG.json",
        "--model",
        required=True,
    ),
    dataset: Path = options.dataset,
    levels: tuple[str, ...] = options.several(
        "What is compared; may be repeated.",
        (*_LEVELS, "all"),
        "--level",
        default=("stage",),
    ),
    geometry: str = options.value(
        "A small model, a set of them, one layer of each type at the model's own "
        "sizes, or the whole model.",
        _GEOMETRIES,
        default="tiny",
    ),
    dtypes: tuple[str, ...] = options.several(
        "Data type of the models; may be repeated.",
        ("float32", "bfloat16"),
        "--dtype",
        default=("float32", "bfloat16"),
    ),
    steps: str = options.value(
        "Steps of training.", ("1", "5", "20", "100"), default="5"
    ),
    device: str = options.value(
        "Where models and definitions run.", ("cpu", "cuda"), default="cpu"
    ),
    kernels: str | None = options.value(
        "Run, beside the references, this provider's kernels in bfloat16.",
        tuple(name for name in providers() if name != "pytorch"),
        default=None,
    ),
    solution: str | None = options.value(
        "Run, beside the references, a solution in its definition's stages.",
        "FILE|NAME",
        default=None,
    ),
    weights: Path | None = options.path(
        "Folder of the model's *.safetensors; drawn if not given."
    ),
    transformers: Path = options.path(
        "Folder that `pip install --target` put transformers into.",
        default=".transformers",
        envvar="GEN_TESTS_TRANSFORMERS",
    ),
    record: bool = options.flag(
        "Keep in verification/ what --geometry real shows of each definition."
    ),
    html: Path | None = options.path(
        "Write a page with the heat maps of the stages there.", metavar="FILE"
    ),
    form: str = options.form(),
) -> int:
    """Run definitions unconfined, as a model composes them, against transformers.

    Each stage of a layer is computed by its definition's reference, or by a solution.
    Weights are drawn from a seed. Exit status 1 where something differs by more than
    rounding explains.
    """
    if record and geometry != "real":
        raise click.UsageError("--record needs --geometry real: sizes are part of it.")
    if record and device != "cpu":
        raise click.UsageError("--record needs --device cpu, whose sums are known.")
    if weights and geometry not in ("real", "whole"):
        raise click.UsageError(
            "--weights needs --geometry real or whole: they have the model's sizes."
        )
    if (kernels or solution) and "bfloat16" not in dtypes:
        raise click.UsageError("Kernels and solutions run in --dtype bfloat16 alone.")
    from generator.parity.evidence import evidence
    from generator.parity.parity import ParityQuestion, compare
    from generator.parity.report import parity_report
    from generator.results.evidence import record as keep

    discovered, _ = Choice(dataset).find()
    require_device(device)
    chosen = [one for one in _LEVELS if one in levels or "all" in levels]
    question = ParityQuestion(
        chosen,
        dtypes,
        geometry,
        weights,
        steps=int(steps),
        device=device,
        kernels=kernels or "",
        solution=_solution(dataset, solution) if solution else None,
    )
    with progress(f"Comparing {', '.join(models)} with transformers"):
        compared = compare(dataset, discovered, models, question, transformers)
    if record:
        for file, names in keep(
            dataset, [evidence(dataset, discovered, compared)]
        ).items():
            say(f"{file}: {plural(len(names), 'definition')} recorded")
    report = parity_report(geometry, compared)
    if html is not None:
        from generator.parity.page import page

        write_files(html.parent, {html.name: page(report, compared).encode()})
        say(f"{html} written")
    return show(report, form)


def _solution(dataset: Path, name: str) -> Mapping[str, Any]:
    """Return what a chain calls a solution by. Raises Failure where it is none."""
    from generator.evaluation.solution import Rejected, read_solutions

    (solution,) = read_solutions(dataset, None, [name], ())
    if isinstance(solution, Rejected):
        raise Failure(f"{solution.path}: {solution.why}")
    if solution.language not in ("python", "triton"):
        raise Failure(
            f"{solution.name}: parity loads Python and Triton, not {solution.language}."
        )
    return {
        "name": solution.name,
        "definition": solution.definition,
        "fills": solution.passes_outputs,
        "entry_point": solution.value["spec"]["entry_point"],
        "sources": list(solution.value["sources"]),
    }
