"""Names: they agree with paths and axes, are identifiers, and are unique."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping

from generator.dataset.definition import Definition
from generator.dataset.schema import NAME_UNSAFE
from generator.ops.registry import op_specs
from generator.ops.spec import OpSpec
from generator.problems import Problem
from generator.problems.messages import quote
from generator.problems.pointer import pointer
from generator.problems.rule import blocking, error

NAME_FILE = blocking(
    "name-file",
    "The definition's name is not the file's name.",
    "Make the two the same.",
    '`"name": "gemm_n8_k5"` in gemm_n8_k4.json',
)
NAME_OP_TYPE = blocking(
    "name-op-type",
    "The definition's op_type is not the folder's name.",
    "Make the two the same.",
    '`"op_type": "rmsnorm"` in definitions/gemm/',
)
NAME_TOKEN = error(
    "name-token",
    "The definition's name states a constant that its axes contradict.",
    "Correct the name or the axis.",
    "gqa_paged_decode_h32_... where num_qo_heads is 16",
)
NAME_DUPLICATE = blocking(
    "name-duplicate",
    "Two files define the same name.",
    "Rename or remove one of them.",
    "gemm/gemm_n8_k4.json and other/gemm_n8_k4.json",
)
NAME_CASE = blocking(
    "name-case",
    "Two names differ only by case: some file systems hold only one of them.",
    "Rename one of them.",
    "gemm_n8_k4 and GEMM_n8_k4",
)


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
        problems.append(NAME_FILE.problem(definition.path, message, pointer="/name"))
    if definition.op_type != folder:
        message = (
            f"The op_type is {quote(definition.op_type)}, but the folder is named "
            f"{quote(folder)}."
        )
        problems.append(
            NAME_OP_TYPE.problem(definition.path, message, pointer="/op_type")
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
        NAME_UNSAFE.problem(
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
    spec = op_specs().get(definition.op_type)
    problems = []
    for token, stated in name_tokens(definition.name):
        axis = _axis_of(token, spec, definition)
        if axis is None:
            continue
        declared = definition.const_axes.get(axis)
        if declared == stated:
            continue
        if declared is None and stated in definition.const_axes.values():
            # another interface of the op_type, which calls the axis otherwise
            continue
        if declared is None:
            has = f"there is no constant axis {quote(axis)}"
            where = "/axes"
        else:
            has = f"the axis {quote(axis)} is {declared}"
            where = pointer(("axes", axis, "value"))
        message = f"The name says {token}{stated}, but {has}."
        problems.append(NAME_TOKEN.problem(definition.path, message, pointer=where))
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
            rule, what = NAME_DUPLICATE, f"The name {quote(name)} is also that of"
        else:
            rule = NAME_CASE
            what = f"The name {quote(name)} differs only by case from that of"
        message = f"{what} {quote(other, 200)}."
        problems.append(rule.problem(path, message, pointer="/name"))
    return problems


def _is_stem(path: str, name: str) -> bool:
    return path.rsplit("/", 1)[-1] == f"{name}.json"
