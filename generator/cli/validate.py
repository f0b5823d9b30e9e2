"""The command `trace-dataset validate`: check a dataset without executing its code."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from generator.cli import options
from generator.cli.choose import Choice, prefix_of
from generator.cli.output import progress, say, seek_cycles_rarely, show
from generator.problems import Failure
from generator.problems.messages import plural, quote

if TYPE_CHECKING:
    from generator.problems import Problem
    from generator.validation.validate import ValidationPlan


@options.command()
def validate(
    choice: Choice = options.part,
    checks: tuple[str, ...] = options.several(
        "Report only these rules or groups of rules, separated by commas; may be "
        "repeated. `trace-dataset rules` lists them.",
        "RULES",
    ),
    model_config: Path | None = options.path(
        "A model's config.json: const axes must equal its values, divided by tp: and "
        "ep: tags.",
        metavar="FILE",
    ),
    form: str = options.form(),
    execute: bool = options.flag(
        "Call each reference on small inputs and at workloads, in a sandbox; needs torch."
    ),
    workloads: str = options.value(
        "With --execute: compare each reference with its op's oracle at none of the "
        "workloads, at those that fit (64 MiB and a second of the CPU each), or at all.",
        ("none", "fit", "all"),
        default="fit",
    ),
    trust: bool = options.trust,
    notes: bool = options.notes,
    strict: bool = options.flag("Exit 1 on warnings as well."),
    jobs: int = options.jobs(),
) -> int:
    """Check definitions and all files that belong to them.

    These are workloads, solutions, traces, tensors, recordings and evidence. Without
    --execute, no code of the dataset runs.
    """
    options.only_with("--execute", "--trust", "--workloads")
    seek_cycles_rarely()
    from generator import api
    from generator.validation.validate import validation_report

    config = None
    if model_config is not None:
        from generator.models.config import figures_of, read_config
        from generator.rules.figures import has_figures

        config = figures_of(read_config(model_config))
        if not has_figures(config):
            shown = quote(str(model_config), 200)
            raise Failure(
                f"{shown}: it has no figure that an axis is compared with, such as "
                "hidden_size: this is no config.json of a model."
            )
    asked = [rule.strip() for part in checks for rule in part.split(",")]
    checked = api.validate(
        choice.opened(),
        rules=asked,
        config=config,
        jobs=jobs,
        more=partial(_executed, workloads=workloads, trust=trust, jobs=jobs)
        if execute
        else api.nothing,
    )
    report = validation_report(
        checked.problems,
        checked.counts,
        prefix=prefix_of(choice.dataset),
        notes=notes,
        strict=strict,
        root=choice.dataset,
        hint=" (--notes shows them)" if form == "text" and not notes else "",
    )
    return show(report, form)


def _executed(
    plan: ValidationPlan, workloads: str, trust: bool, jobs: int
) -> tuple[Problem, ...]:
    """Call the references of definitions that can be rendered; return the Problems."""
    from generator.execution.sandbox import warnings
    from generator.rules.catalogue import is_blocked
    from generator.rules.load import load_file
    from generator.validation.execute.run import check, why_not

    reason = why_not()
    if reason is not None:
        raise Failure(f"--execute is refused: {reason}")
    for line in warnings():
        say(f"sandbox: {line}")
    definitions = []
    for unit in plan.units:
        definition, problems = load_file(plan.root, unit.file)
        if definition is not None and not is_blocked(problems):
            definitions.append(definition)
    with progress(f"Calling {plural(len(definitions), 'reference')}"):
        return tuple(
            check(
                definitions,
                trust=trust,
                jobs=jobs,
                dataset=plan.root,
                workloads=workloads,
            )
        )
