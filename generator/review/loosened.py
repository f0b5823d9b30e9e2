"""Checks that a changed definition loosens where no file of tests shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from generator.dataset.definition import LoadedDefinition
from generator.dataset.model_figures import model_figures
from generator.ops.serving import spec_of
from generator.problems import Problem
from generator.problems.messages import quote
from generator.review.change import Change
from generator.review.definition_diff import constants_of
from generator.review.findings import WEAKER
from generator.rules.figures import says_something
from kernel_judge.comparison.tolerance import DEFAULTS, EXACT


def loosened(changes: Sequence[Change]) -> Iterator[Problem]:
    """Yield, of each changed definition, what tests or runners no longer ask of it."""
    for change in changes:
        if change.kind != "attached" and change.old and change.new:
            sides = change.old, change.new
            for says in (_sources, _domains, _models, _constraints, _inputs, _outputs):
                for message in says(*sides):
                    yield WEAKER.problem(change.path, message)


def _sources(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    """Yield constants that only the reference under test states now."""
    before = constants_of(old)
    for name, now in constants_of(new).items():
        was = before.get(name)
        if was is not None and was.independent and not now.independent:
            yield (
                f"The constant {name} was stated by {was.source}; now it is "
                f"{now.source}, and no test proves it."
            )


def _models(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    """Yield models whose figures axes are no longer held to."""
    named = {model for model in new.tag_values("model") if model in model_figures()}
    if any(says_something(model, new) for model in named):
        return
    for model in old.tag_values("model"):
        if model in model_figures() and says_something(model, new):
            yield f"No rule compares the axes with the figures of {quote(model)} any more."


def _domains(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    """Yield inputs that runners draw from other values, for workloads that say random."""
    spec = spec_of(new)
    for name, now in new.inputs.items():
        was = old.inputs.get(name)
        wanted = spec and spec.domain_of(new.name, name, now.dtype)
        is_wanted = now.domain and now.domain == wanted
        if was is not None and was.domain != now.domain and not is_wanted:
            shown = [t.domain or "the normal distribution" for t in (was, now)]
            yield f"Runners draw {quote(name)} from {shown[1]}, which was {shown[0]}."


def _constraints(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    """Yield constraints that workloads and inputs are no longer held to."""
    left = {_condition(constraint) for constraint in new.constraints}
    for constraint in old.constraints:
        if _condition(constraint) not in left:
            yield f"No workload is held to {quote(constraint, 200)} any more."


def _condition(constraint: str) -> str:
    """Return a constraint without its layout; one that is no Python as it stands."""
    try:
        return ast.unparse(ast.parse(constraint.strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return constraint


def _inputs(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    """Yield inputs that workloads may leave out now."""
    for name, now in new.inputs.items():
        was = old.inputs.get(name)
        if was is not None and now.optional and not was.optional:
            yield f"Workloads may leave out {quote(name)}, which they had to have."


def _outputs(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    """Yield outputs that nothing is compared with any more, or that may be further off."""
    for name, was in old.outputs.items():
        now = new.outputs.get(name)
        if now is None:
            yield f"The output {quote(name)} is gone: nothing compares it."
            continue
        wider = [DEFAULTS.get(tensor.dtype, EXACT).rtol for tensor in (was, now)]
        if wider[1] > wider[0]:
            yield (
                f"The output {quote(name)} may be as far off as {now.dtype} is, which was "
                f"{was.dtype}."
            )
