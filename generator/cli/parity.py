"""The command `trace-dataset parity`: definitions composed into a model, and compared."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli import options
from generator.cli.choose import require_definitions
from generator.cli.output import progress, show

_LEVELS = ("stage", "layer", "forward", "decode", "train")


@click.command()
@options.several(
    *("--model", "models"),
    required=True,
    metavar="FAMILY|NAME|CONFIG.json",
    help="A family, a model whose figures come with this software, or its config; may "
    "be repeated.",
)
@options.dataset
@options.several(
    *("--level", "levels"),
    type=click.Choice((*_LEVELS, "all")),
    default=("stage",),
    show_default=True,
    help="What is compared; may be repeated.",
)
@click.option(
    "--geometry",
    type=click.Choice(("tiny", "real")),
    default="tiny",
    show_default=True,
    help="Some small layers, or one layer of each type at the model's own sizes.",
)
@options.several(
    *("--dtype", "dtypes"),
    type=click.Choice(("float32", "bfloat16")),
    default=("float32", "bfloat16"),
    show_default=True,
    help="Data type of the models; may be repeated.",
)
@options.path(
    "--weights", help="Folder of the model's *.safetensors; drawn if not given."
)
@options.path(
    "--transformers",
    default=".transformers",
    show_default=True,
    envvar="GEN_TESTS_TRANSFORMERS",
    help="Folder that `pip install --target` put transformers into.",
)
@options.form()
def parity(
    models: tuple[str, ...],
    dataset: Path,
    levels: tuple[str, ...],
    geometry: str,
    dtypes: tuple[str, ...],
    weights: Path | None,
    transformers: Path,
    form: str,
) -> int:
    """Compare a model that definitions compose with transformers.

    Each stage of a layer is computed by its definition's reference, which is executed.
    Weights are drawn from a seed. Exit status 1 where something differs by more than
    rounding explains.
    """
    from generator.dataset.paths import discover_definitions
    from generator.parity.parity import Question, compare

    found = discover_definitions(dataset)
    require_definitions(found.problems)
    chosen = [one for one in _LEVELS if one in levels or "all" in levels]
    question = Question(chosen, dtypes, geometry == "tiny", weights)
    with progress(f"Comparing {', '.join(models)} with transformers"):
        report = compare(dataset, found, models, question, transformers)
    return show(report, form)
