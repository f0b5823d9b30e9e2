"""Checks that a changed definition loosens where no file of tests shows it."""

from __future__ import annotations

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


def loosened(changes: Sequence[Change]) -> Iterator[Problem]:
    """Yield, of each changed definition, what tests or runners no longer ask of it."""
    for change in changes:
        if change.kind != "attached" and change.old and change.new:
            sides = change.old, change.new
            for message in (*_sources(*sides), *_domains(*sides), *_models(*sides)):
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
