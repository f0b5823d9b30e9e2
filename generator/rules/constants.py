"""Constants that live only in a reference: their values by independent sources."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.model_figures import model_figures
from generator.dataset.python_source import all_nodes, parse_or_none
from generator.ops.spec import OpSpec
from generator.problems import Problem, error, in_file, warning
from generator.rules.names import name_tokens

CONSTANT_DISAGREES = error("""constant-disagrees: A constant of the reference (eps, say)
    is not what an independent source says.
    Fix: Find out which one is right: correct the reference, or the model: tag.
    Finds: `EPS = 1e-5` in a norm of qwen3-14b, whose eps is 1e-6""")
CONSTANT_MODELS_DISAGREE = error("""constant-models-disagree: The models that a
    definition's tags name have different values of a constant.
    Fix: Keep the model: tags of models that share the constant; give the others a
    definition of their own.
    Finds: an rmsnorm with model:qwen3-14b and model:llama-3.1-8b""")
CONSTANT_NOT_INDEPENDENT = warning("""constant-not-independent: A constant has no source
    but the reference, so no test proves it.
    Fix: Tag the definition with a model whose figures are known (model:NAME).
    Finds: an rmsnorm whose tags name no model that is known""")

# what a config.json calls a constant, and the value where it does not mention it
_FIGURES: Mapping[str, tuple[str, Any]] = {
    "eps": ("rms_norm_eps", None),
    "unit_offset": ("rms_norm_unit_offset", False),
    "top_k": ("num_experts_per_tok", None),
}
_READ = ("eps", "top_k", "n_group", "topk_group", "window_left", "logits_soft_cap")
"""The constants that can be read in a reference."""


@dataclass(frozen=True)
class Constant:
    """One constant's value and where it is from.

    `independent` is False where it was read from the reference under test; a value of
    None is unknown.
    """

    name: str
    value: Any
    source: str
    independent: bool = True


def why_unresolved(
    op_type: str, spec: OpSpec | None, constants: Iterable[Constant]
) -> str | None:
    """Return why a definition can have no ground truth, None if it can."""
    if spec is None:
        return f"no op module for {op_type}"
    unknown = [c.name for c in constants if c.value is None]
    if unknown:
        return f"no source knows {', '.join(unknown)}"
    return None


def resolve_constants(
    definition: LoadedDefinition, spec: OpSpec
) -> tuple[tuple[Constant, ...], list[Problem]]:
    """Return the op's constants for a definition, and a Problem for each disagreement."""
    constants = []
    problems: list[Problem] = []
    variant = (
        n for n in spec.variant_constants if any(_from_name(definition, spec, n))
    )
    for name, convention in {**dict.fromkeys(variant), **spec.constants}.items():
        sources = [*_from_name(definition, spec, name)][:1]
        sources = sources or [*_from_models(definition, name)]
        if len({value for value, _ in sources}) > 1:
            values = ", ".join(f"{value!r} ({source})" for value, source in sources)
            message = f"The models that the tags name disagree on {name}: {values}."
            problems.append(CONSTANT_MODELS_DISAGREE.at(message, "tags"))
        written, line = _read(definition.reference, name) or (None, None)
        if sources:
            constant = Constant(name, *sources[0])
        elif convention is not None:
            constant = Constant(name, convention, f"the convention of {spec.op_type}")
        elif written is None:
            constant = Constant(name, None, "no source knows it", independent=False)
        else:
            source = "taken from the reference, not independent"
            constant = Constant(name, written, source, independent=False)
        constants.append(constant)
        if not constant.independent:
            value = "" if written is None else f" ({written!r})"
            message = f"The constant {name} is not proven: {constant.source}{value}."
            problems.append(CONSTANT_NOT_INDEPENDENT.at(message, "reference"))
        elif written is not None and written != constant.value:
            message = f"The constant {name} is {written!r} in the reference and "
            message += f"{constant.value!r} by {constant.source}."
            problems.append(CONSTANT_DISAGREES.at(message, "reference", line=line))
    return tuple(constants), [*in_file(problems, definition.path)]


def values_by_tags(definition: LoadedDefinition, spec: OpSpec) -> dict[str, list[str]]:
    """Return the op's constants that a definition's tags state, with the values' reprs."""
    return {
        name: sorted({repr(value) for value, _ in _from_models(definition, name)})
        for name in sorted(spec.constants)
        if not any(_from_name(definition, spec, name))
    }


def _from_name(
    definition: LoadedDefinition, spec: OpSpec, name: str
) -> Iterator[tuple[Any, str]]:
    """Yield (value, source) for each word of the name that states a constant."""
    for word in definition.name.split("_"):
        if spec.name_words.get(word, ("", None))[0] == name:
            yield spec.name_words[word][1], f'"{word}" in the name'
    for token, number in name_tokens(definition.name):
        if spec.name_constants.get(token) == name:
            yield number, f'"{token}{number}" in the name'


def _from_models(definition: LoadedDefinition, name: str) -> Iterator[tuple[Any, str]]:
    """Yield (value, source) for each model tag that the table knows."""
    key, absent = _FIGURES.get(name, (name, None))
    for model in definition.tag_values("model"):
        figures = model_figures().get(model, {})
        # a figure of the norms is only known to be absent where the norm is described
        default = absent if "rms_norm_eps" in figures else None
        value = figures.get(key, default)
        if value is not None:
            yield value, f"{key} of {model}"


def read_constant(reference: str, name: str) -> Any:
    """Return the value a reference's source gives a constant, None where unreadable."""
    constants = _read(reference, name)
    return None if constants is None else constants[0]


def _read(reference: str, name: str) -> tuple[float, int] | None:
    """Return the value and the line of a constant.

    Find `TOP_K = 8` at the top level for a constant named top_k. Of eps, find
    `EPS = 1e-6` (or eps, epsilon, …) anywhere, else a literal in a square root.
    """
    # what does not parse is a Problem of the reference, not of its constants
    tree = parse_or_none(reference) if name in _READ else None
    if tree is None:
        return None
    pattern = name.upper()
    nodes: Sequence[ast.AST] = tree.body
    if name == "eps":
        pattern, nodes = r"(?i)_*(.*_)?eps(ilon)?", all_nodes(tree)
    for node in nodes:
        for target, value in _bindings(node):
            literal = _number(value)
            if literal is not None and re.fullmatch(pattern, target):
                return literal, value.lineno
    return next(_in_roots(tree), None) if name == "eps" else None


def _in_roots(tree: ast.Module) -> Iterator[tuple[float, int]]:
    """Yield the small literals that are added to something in a square root."""
    for node in all_nodes(tree):
        if not isinstance(node, ast.Call) or "sqrt" not in ast.unparse(node.func):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
                for side in (inner.left, inner.right):
                    literal = _number(side)
                    if literal is not None and 0.0 < literal < 1e-2:
                        yield literal, side.lineno


def _bindings(node: ast.AST) -> Iterable[tuple[str, ast.expr]]:
    """Return the names that an assignment, a default or an argument binds."""
    match node:
        case ast.Assign(targets, value):
            return [(t.id, value) for t in targets if isinstance(t, ast.Name)]
        case ast.AnnAssign(ast.Name(name), value=ast.expr() as value):
            return [(name, value)]
        case ast.keyword(str() as name, value):
            return [(name, value)]
        case ast.arguments():
            positional = [*node.posonlyargs, *node.args]
            with_default = positional[len(positional) - len(node.defaults) :]
            names = [argument.arg for argument in (*with_default, *node.kwonlyargs)]
            values = (*node.defaults, *node.kw_defaults)
            return [(n, v) for n, v in zip(names, values, strict=True) if v is not None]
    return ()


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value: float = node.value  # type: ignore[assignment]
        # 1e999 is infinite: no constant, and nothing that a source text could say
        return value if math.isfinite(value) else None
    return None
