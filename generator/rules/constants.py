"""Constants that a definition's interface does not carry, from independent sources.

A ground truth called with the eps of the reference it is to judge proves nothing about
that eps. The sources, in order: tokens of the definition's name, the model of its
`model:` tag, the op's convention; the reference itself only where none of these knows.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from generator.dataset.definition import Definition
from generator.dataset.model_figures import model_figures
from generator.dataset.python_source import Unparsable, all_nodes, parse_module
from generator.ops.spec import OpSpec
from generator.problems import Problem
from generator.problems.rule import error, warning
from generator.rules.names import name_tokens

CONSTANT_DISAGREES = error(
    "constant-disagrees",
    "A constant of the reference (eps, say) is not what an independent source says.",
    "Find out which one is right: correct the reference, or the model: tag.",
    "`EPS = 1e-5` in a norm of qwen3-14b, whose eps is 1e-6",
)
CONSTANT_MODELS_DISAGREE = error(
    "constant-models-disagree",
    "The models that a definition's tags name have different values of a constant.",
    "Keep the model: tags of models that share the constant; give the others a "
    "definition of their own.",
    "an rmsnorm with model:qwen3-14b and model:llama-3.1-8b",
)
CONSTANT_NOT_INDEPENDENT = warning(
    "constant-not-independent",
    "A constant has no source but the reference, so no test proves it.",
    "Tag the definition with a model whose figures are known (model:NAME).",
    "an rmsnorm whose tags name no model that is known",
)


# what a config.json calls a constant, and the value where it does not mention it
_FIGURES: Mapping[str, tuple[str, Any]] = {
    "eps": ("rms_norm_eps", None),
    "unit_offset": ("rms_norm_unit_offset", False),
    "top_k": ("num_experts_per_tok", None),
}


@dataclass(frozen=True)
class Constant:
    """Hold one constant's value and where it is from.

    `independent` is False where it was read from the reference under test; a value of
    None is unknown.
    """

    name: str
    value: Any
    source: str
    independent: bool = True


def resolve_constants(
    definition: Definition, spec: OpSpec
) -> tuple[tuple[Constant, ...], list[Problem]]:
    """Return the op's constants for a definition, and a Problem for each disagreement."""
    constants, problems = [], []
    for name in spec.variant_constants:
        for value, source in _from_name(definition, spec, name):
            constants.append(Constant(name, value, source))
            problems += _check(definition, constants[-1])
    for name, convention in spec.constants.items():
        found = _from_name(definition, spec, name) or _from_models(definition, name)
        values = {value for value, _ in found}
        if len(values) > 1:
            problems.append(_models_disagree(definition, name, found))
        if found:
            constant = Constant(name, found[0][0], found[0][1])
        elif convention is not None:
            constant = Constant(name, convention, f"the convention of {spec.op_type}")
        else:
            constant = _from_reference(definition, name)
        constants.append(constant)
        problems += _check(definition, constant)
    return tuple(constants), problems


def _from_name(
    definition: Definition, spec: OpSpec, name: str
) -> list[tuple[Any, str]]:
    """Return (value, source) for the first word of the name that states a constant."""
    stated = [
        (spec.name_words[word][1], f'"{word}" in the name')
        for word in definition.name.split("_")
        if spec.name_words.get(word, ("", None))[0] == name
    ]
    stated += [
        (number, f'"{token}{number}" in the name')
        for token, number in name_tokens(definition.name)
        if spec.name_constants.get(token) == name
    ]
    return stated[:1]


def _from_models(definition: Definition, name: str) -> list[tuple[Any, str]]:
    """Return (value, source) for each model tag that the table knows."""
    key, absent = _FIGURES.get(name, (name, None))
    found = []
    for model in definition.tag_values("model"):
        figures = model_figures().get(model, {})
        # a figure of the norms is only known to be absent where the norm is described
        default = absent if "rms_norm_eps" in figures else None
        value = figures.get(key, default)
        if value is not None:
            found.append((value, f"{key} of {model}"))
    return found


def _from_reference(definition: Definition, name: str) -> Constant:
    value = read_constant(definition.reference, name)
    if value is None:
        return Constant(name, None, "no source knows it", independent=False)
    return Constant(
        name, value, "taken from the reference, not independent", independent=False
    )


def _check(definition: Definition, constant: Constant) -> list[Problem]:
    if not constant.independent:
        value = "" if constant.value is None else f" ({constant.value!r})"
        return [
            CONSTANT_NOT_INDEPENDENT.problem(
                definition.path,
                f"The constant {constant.name} is not proven: {constant.source}{value}.",
                pointer="/reference",
            )
        ]
    written = read_constant(definition.reference, constant.name)
    if written is None or written == constant.value:
        return []
    return [
        CONSTANT_DISAGREES.problem(
            definition.path,
            f"The constant {constant.name} is {written!r} in the reference and "
            f"{constant.value!r} by {constant.source}.",
            pointer="/reference",
            line=_line_of(definition.reference, constant.name),
        )
    ]


def _models_disagree(
    definition: Definition, name: str, found: list[tuple[Any, str]]
) -> Problem:
    values = ", ".join(f"{value!r} ({source})" for value, source in found)
    return CONSTANT_MODELS_DISAGREE.problem(
        definition.path,
        f"The models that the tags name disagree on {name}: {values}.",
        pointer="/tags",
    )


def read_constant(reference: str, name: str) -> Any:
    """Return the value a reference's source gives a constant, None where unreadable."""
    found = _read(reference, name)
    return None if found is None else found[0]


def _line_of(reference: str, name: str) -> int | None:
    found = _read(reference, name)
    return None if found is None else found[1]


def _read(reference: str, name: str) -> tuple[Any, int] | None:
    if name not in _READERS:
        return None
    try:
        return _READERS[name](parse_module(reference))
    except Unparsable:
        # that is a Problem of the reference, not of its constants
        return None


def _read_eps(tree: ast.Module) -> tuple[Any, int] | None:
    """Find `EPS = 1e-6` (or eps, epsilon, …), else a literal in a square root."""
    for node in all_nodes(tree):
        for target, value in _bindings(node):
            literal = _number(value)
            if re.fullmatch(r"(?i)_*(.*_)?eps(ilon)?", target) and literal is not None:
                return literal, value.lineno
    for node in all_nodes(tree):
        if not isinstance(node, ast.Call) or "sqrt" not in ast.unparse(node.func):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
                for side in (inner.left, inner.right):
                    literal = _number(side)
                    if literal is not None and 0.0 < literal < 1e-2:
                        return literal, side.lineno
    return None


def _bindings(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Return the names that an assignment, a default or an argument binds."""
    if isinstance(node, ast.Assign):
        return [(t.id, node.value) for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [(node.target.id, node.value)] if node.value is not None else []
    if isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        with_default = positional[len(positional) - len(node.defaults) :]
        pairs = [
            *zip(with_default, node.defaults, strict=True),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]
        return [(arg.arg, value) for arg, value in pairs if value is not None]
    if isinstance(node, ast.keyword) and node.arg is not None:
        return [(node.arg, node.value)]
    return []


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: float = node.value  # type: ignore[assignment]
        # 1e999 is infinite: no constant, and nothing that a source text could say
        return value if math.isfinite(value) else None
    return None


def _read_named(name: str, tree: ast.Module) -> tuple[Any, int] | None:
    """Find `TOP_K = 8` at the top level, for a constant named top_k."""
    for node in tree.body:
        for target, value in _bindings(node):
            literal = _number(value)
            if target == name.upper() and literal is not None:
                return literal, value.lineno
    return None


_READERS: Mapping[str, Callable[[ast.Module], tuple[Any, int] | None]] = {
    "eps": _read_eps,
    **{
        name: partial(_read_named, name)
        for name in (
            "top_k",
            "n_group",
            "topk_group",
            "window_left",
            "logits_soft_cap",
        )
    },
}
