"""Names: what they must agree with, and what must be able to carry them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping

from generator.definition import Definition
from generator.ops import OPS, OpSpec
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import quote

_TOKEN = re.compile(r"([a-z]+)([0-9]+)")


def name_tokens(name: str) -> Iterable[tuple[str, int]]:
    """Yield the tokens of a name that carry a number: `kv8` gives `("kv", 8)`."""
    for part in name.split("_"):
        match = _TOKEN.fullmatch(part)
        if match:
            yield match[1], int(match[2])


def check_path(definition: Definition) -> list[Problem]:
    """Return Problems where the path `…/<op_type>/<name>.json` says otherwise."""
    *_, folder, file = definition.path.split("/")
    stem = file.removesuffix(".json")
    problems = []
    if definition.name != stem:
        message = (
            f"The name is {quote(definition.name)}, but the file is named "
            f"{quote(stem)}."
        )
        problems.append(finding("name-file", definition.path, message, pointer="/name"))
    if definition.op_type != folder:
        message = (
            f"The op_type is {quote(definition.op_type)}, but the folder is named "
            f"{quote(folder)}."
        )
        problems.append(
            finding("name-op-type", definition.path, message, pointer="/op_type")
        )
    return problems


def check_keywords(definition: Definition) -> list[Problem]:
    """Return Problems for axes, inputs and outputs named as Python's keywords."""
    groups = {
        "axes": definition.axes,
        "inputs": definition.inputs,
        "outputs": definition.outputs,
    }
    return [
        finding(
            "name-unsafe",
            definition.path,
            f"The name {quote(name)} is a keyword of Python.",
            pointer=pointer((group, name)),
            fix="Choose another name.",
        )
        for group, names in groups.items()
        for name in names
        if keyword.iskeyword(name)
    ]


def check_tokens(definition: Definition) -> list[Problem]:
    """Return Problems where the name states other constants than the axes do.

    Only the tokens that the op_type declares are judged; an op_type that the
    generator does not know declares none.
    """
    spec = OPS.get(definition.op_type)
    problems = []
    for token, stated in name_tokens(definition.name):
        axis = _axis_of(token, spec, definition)
        if axis is None:
            continue
        declared = definition.const_axes.get(axis)
        if declared == stated:
            continue
        if declared is None:
            has = f"there is no constant axis {quote(axis)}"
            where = "/axes"
        else:
            has = f"the axis {quote(axis)} is {declared}"
            where = pointer(("axes", axis, "value"))
        message = f"The name says {token}{stated}, but {has}."
        problems.append(finding("name-token", definition.path, message, pointer=where))
    return problems


def _axis_of(token: str, spec: OpSpec | None, definition: Definition) -> str | None:
    """Return the axis that a token states, None for a token that states none.

    Of several axes it is the first that the definition has; a constant's token is held
    against an axis of the constant's name, where there is one.
    """
    if spec is None:
        return None
    constant = spec.name_constants.get(token)
    if constant in definition.const_axes:
        return constant
    axes = spec.name_tokens.get(token)
    if axes is None or isinstance(axes, str):
        return axes
    return next((axis for axis in axes if axis in definition.const_axes), axes[0])


def check_unique(names: Mapping[str, str]) -> list[Problem]:
    """Return Problems for names that several files have, or that differ by case.

    `names` maps the path of each definition file to its name. The first file keeps
    the name, one whose file name agrees with it before others; the later ones get
    the Problem.
    """
    problems = []
    first: dict[str, str] = {}
    for path in sorted(names, key=lambda p: (not _is_stem(p, names[p]), p)):
        name = names[path]
        other = first.setdefault(name.casefold(), path)
        if other == path:
            continue
        if names[other] == name:
            rule, what = "name-duplicate", f"The name {quote(name)} is also that of"
        else:
            rule = "name-case"
            what = f"The name {quote(name)} differs only by case from that of"
        message = f"{what} {quote(other, 200)}."
        problems.append(finding(rule, path, message, pointer="/name"))
    return problems


def _is_stem(path: str, name: str) -> bool:
    return path.rsplit("/", 1)[-1] == f"{name}.json"
