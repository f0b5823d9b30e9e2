"""Const axes against a model's config.json: heads, widths and counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.model_figures import model_figures
from generator.ops.registry import op_specs
from generator.ops.serving import spec_of
from generator.ops.spec import Figure
from generator.problems import Problem, error
from generator.problems.messages import one_line, quote
from generator.rules.constants import values_by_tags

MODEL_FIGURES = error("""model-figures: A const axis is not what the published config of
    the tagged model says.
    Fix: Correct the axis, or the model: and tp: tags.
    Finds: num_qo_heads is 24 with model:llama-3.1-8b and tp:1, whose heads are 32""")
MODEL_CONFIG = error("""model-config: A const axis is not what the file given with
    --model-config says.
    Fix: Correct the axis, or the tp: and ep: tags.
    Finds: hidden_size is 4096 where config.json has 5120""")

_OF_ONE_MODEL = frozenset(
    ("head_dim", "head_dim_ckv", "head_dim_kpe", "num_experts", "qk_dim", "vo_dim")
)


def check(
    definition: LoadedDefinition, config: Mapping[str, Any] | None
) -> Iterator[Problem]:
    """Yield a Problem for each const axis that a model's figures contradict.

    The models are those that the tags name, and that of `config`, a config.json.
    """
    spec = op_specs().get(definition.op_type)
    if spec is None:
        return
    axes = definition.const_axes
    known = model_figures()
    models = [
        (MODEL_FIGURES, model, known[model])
        for model in definition.tag_values("model")
        if model in known
    ]
    if config is not None:
        models.append((MODEL_CONFIG, "config.json", config))
    for rule, model, figures in models:
        for axis, figure in spec.figures.items():
            wholes = _wholes(figure, figures)
            if axis not in axes or not wholes:
                continue
            allowed = {n for w in wholes for n in _shares(w, figure, definition)}
            if axes[axis] not in allowed:
                numbers = [str(number) for number in sorted(allowed)]
                wanted = " or ".join(numbers)
                if figure.takes == "any":
                    wanted = f"one of {', '.join(numbers)}"
                message = f"The axis {quote(axis)} is {axes[axis]}; "
                message += f"{one_line(model, 100)} says {wanted}."
                yield rule.at(message, "axes", axis, "value")


def has_figures(config: Mapping[str, Any]) -> bool:
    """Return whether a config has any figure that an axis of an op_type is compared with."""
    return any(
        _wholes(figure, config)
        for spec in op_specs().values()
        for figure in spec.figures.values()
    )


def says_something(model: str, definition: LoadedDefinition) -> bool:
    """Return whether a figure of a known model is compared with a definition."""
    spec, figures = spec_of(definition), model_figures()[model]
    if spec is None:
        return False
    axes = (
        spec.figures[axis] for axis in spec.figures if axis in definition.const_axes
    )
    if any(_wholes(figure, figures) for figure in axes):
        return True
    alone = replace(definition, tags=(f"model:{model}",))
    return any(values_by_tags(alone, spec).values())


def _wholes(figure: Figure, figures: Mapping[str, Any]) -> set[int]:
    """Return what a config's figures give for an axis that nothing divides."""
    values = [_value(name, figures) for name in figure.names]
    numbers = [value for value in values if type(value) is int and value > 0]
    if figure.takes == "sum":
        return {sum(numbers)} if len(numbers) == len(values) else set()
    if figure.takes == "any":
        return set(numbers) if values[0] is not None else set()
    return set(numbers[:1])


def _value(name: str, figures: Mapping[str, Any]) -> Any:
    """Return a figure, or a product of several: `num_attention_heads*head_dim`."""
    values = [figures.get(part) for part in name.split("*")]
    if len(values) == 1:
        return values[0]
    return math.prod(v for v in values if v) if all(values) else None


def facts(definition: LoadedDefinition) -> Iterator[tuple[str, int]]:
    """Yield (model and axis, value) that must be the same in all of a model's."""
    spec = op_specs().get(definition.op_type)
    named = {} if spec is None else spec.figures
    for model in definition.tag_values("model"):
        known = model_figures().get(model, {})
        for axis, value in definition.const_axes.items():
            # where layers or shards differ, a model's figures are what axes are held to
            figure = named.get(axis)
            differs = figure is not None and (
                len(_wholes(figure, known)) > 1
                or (figure.parallel == "ep" and definition.tag_values("ep"))
            )
            if axis in _OF_ONE_MODEL and not differs:
                yield f"{model} {definition.op_type} {axis}", value


def _shares(whole: int, figure: Figure, definition: LoadedDefinition) -> set[int]:
    """Return the sizes that an axis may have on one of several GPUs.

    Heads fewer than GPUs are replicated: one of them is on each. Some interfaces count
    the experts of one GPU, some those of all.
    """
    parallel = figure.parallel
    if not parallel:
        return {whole}
    stated = [
        int(v) for v in definition.tag_values(parallel) if v.isdecimal() and len(v) < 6
    ]
    counts = [n for n in stated if n > 0] or [1, 2, 4, 8, 16, 32]
    filled = {n: whole + (-whole % figure.padding if whole % n else 0) for n in counts}
    shares = {max(1, size // n) for n, size in filled.items()}
    return shares | {whole} if parallel == "ep" else shares
