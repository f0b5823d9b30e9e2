"""The command `trace-dataset parity`: definitions composed into a model, and compared."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli import options
from generator.cli.choose import require_definitions
from generator.cli.output import progress, say, show, write_files
from generator.problems.messages import plural

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
        "Some small layers, or one layer of each type at the model's own sizes.",
        ("tiny", "real"),
        default="tiny",
    ),
    dtypes: tuple[str, ...] = options.several(
        "Data type of the models; may be repeated.",
        ("float32", "bfloat16"),
        "--dtype",
        default=("float32", "bfloat16"),
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
    """Compare a model that definitions compose with transformers.

    Each stage of a layer is computed by its definition's reference, which is executed.
    Weights are drawn from a seed. Exit status 1 where something differs by more than
    rounding explains.
    """
    if record and geometry != "real":
        raise click.UsageError("--record needs --geometry real: sizes are part of it.")
    from generator.dataset.paths import discover_definitions
    from generator.parity.evidence import evidence
    from generator.parity.parity import Question, compare
    from generator.parity.report import parity_report
    from generator.results.evidence import record as keep

    found = discover_definitions(dataset)
    require_definitions(found.problems)
    chosen = [one for one in _LEVELS if one in levels or "all" in levels]
    question = Question(chosen, dtypes, geometry == "tiny", weights)
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
