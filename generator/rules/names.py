"""Names and axes: they agree with paths, shapes and each other, and are identifiers."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from generator.dataset.definition import LoadedDefinition
from generator.dataset.schema import NAME_UNSAFE
from generator.ops.registry import op_specs
from generator.ops.spec import OpSpec
from generator.problems import Problem, blocking, error, warning
from generator.problems.messages import did_you_mean, quote
from generator.rules.constraints import names_in

NAME_FILE = blocking("""name-file: The definition's name is not the file's name.
    Fix: Make the two the same.
    Finds: `"name": "gemm_n8_k5"` in gemm_n8_k4.json""")
NAME_OP_TYPE = blocking("""name-op-type: The definition's op_type is not the folder's
    name.
    Fix: Make the two the same.
    Finds: `"op_type": "rmsnorm"` in definitions/gemm/""")
NAME_TOKEN = error("""name-token: The definition's name states a constant that its axes
    contradict.
    Fix: Correct the name or the axis.
    Finds: gqa_paged_decode_h32_... where num_qo_heads is 16""")
NAME_DUPLICATE = blocking("""name-duplicate: Two files define the same name.
    Fix: Rename or remove one of them.
    Finds: gemm/gemm_n8_k4.json and other/gemm_n8_k4.json""")
NAME_CASE = blocking("""name-case: Two names differ only by case: some file systems hold
    only one of them.
    Fix: Rename one of them.
    Finds: gemm_n8_k4 and GEMM_n8_k4""")
AXIS_UNDECLARED = blocking("""axis-undeclared: A shape names an axis that the definition
    does not declare.
    Fix: Declare the axis or correct the shape.
    Finds: `"shape": ["M", "Q"]` without an axis Q""")
AXIS_CASE = blocking("""axis-case: Two axes differ only by case; a rendered test writes
    them in capitals.
    Fix: Rename one of them.
    Finds: the axes M and m""")
AXIS_UNUSED = error("""axis-unused: A variable axis appears in no shape and no
    constraint.
    Fix: Use the axis in a shape or remove it.
    Finds: `"L": {"type": "var"}` that no shape names""")
AXIS_UNUSED_CONST = warning("""axis-unused-const: A constant axis appears in no shape,
    no constraint and not in the name.
    Fix: Use the axis or remove it.
    Finds: `"L": {"type": "const", "value": 2}` that no shape names""")
INPUT_OUTPUT_OVERLAP = error("""input-output-overlap: An output has the name of an
    input.
    Fix: Rename the output.
    Finds: the input `state` and the output `state`""")

_TOKEN = re.compile(r"([a-z]+)([0-9]+)")


# the rules of one definition ask forty times
@lru_cache(maxsize=64)
def name_tokens(name: str) -> tuple[tuple[str, int], ...]:
    """Return the tokens of a name that carry a number: `kv8` gives `("kv", 8)`."""
    matches = map(_TOKEN.fullmatch, name.split("_"))
    return tuple((match[1], int(match[2])) for match in matches if match)


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield Problems of the path `…/<op_type>/<name>.json`, the names and the axes."""
    *_, folder, file = definition.path.split("/")
    for rule, field, what, text in (
        (NAME_FILE, "name", "file", file.removesuffix(".json")),
        (NAME_OP_TYPE, "op_type", "folder", folder),
    ):
        value = getattr(definition, field)
        if value != text:
            message = f"The {field} is {quote(value)}, but the {what} is named "
            yield rule.at(f"{message}{quote(text)}.", field)
    for group in ("axes", "inputs", "outputs"):
        for name in filter(keyword.iskeyword, getattr(definition, group)):
            message = f"The name {quote(name)} is a keyword of Python."
            yield NAME_UNSAFE.at(message, group, name, fix="Choose another name.")
    yield from check_tokens(definition)
    yield from _check_axes(definition)
    for name in definition.outputs:
        if name in definition.inputs:
            message = f"The output {quote(name)} has the name of an input."
            yield INPUT_OUTPUT_OVERLAP.at(message, "outputs", name)


def check_tokens(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield Problems where the name states other constants than the axes do.

    Only the tokens that the op_type declares are judged; an op_type that the
    generator does not know declares none.
    """
    spec = op_specs().get(definition.op_type)
    if spec is None:
        return
    for token, stated in name_tokens(definition.name):
        axis = _axis_of(token, spec, definition)
        declared = definition.const_axes.get(axis or "")
        if axis is None or declared == stated:
            continue
        values = definition.const_axes.values()
        if declared is None and (stated in values or 2 * stated in values):
            # another interface of the op_type, which calls the axis otherwise, or has
            # gate and up in one
            continue
        says = f"The name says {token}{stated}, but"
        if declared is None:
            yield NAME_TOKEN.at(
                f"{says} there is no constant axis {quote(axis)}.", "axes"
            )
        else:
            message = f"{says} the axis {quote(axis)} is {declared}."
            yield NAME_TOKEN.at(message, "axes", axis, "value")


def _axis_of(token: str, spec: OpSpec, definition: LoadedDefinition) -> str | None:
    """Return the axis that a token states, None for a token that states none.

    Of several axes it is the first that the definition has; a constant's token is held
    against an axis of the constant's name, where there is one.
    """
    constant = spec.name_constants.get(token)
    if constant in definition.const_axes:
        return constant
    axes = spec.name_tokens.get(token)
    if axes is None or isinstance(axes, str):
        return axes
    return next((axis for axis in axes if axis in definition.const_axes), axes[0])


def _check_axes(definition: LoadedDefinition) -> Iterator[Problem]:
    used: set[str] = set()
    for group in ("inputs", "outputs"):
        for tensor in getattr(definition, group).values():
            for place, axis in enumerate(tensor.shape or ()):
                used.add(axis)
                if axis not in definition.axes:
                    message = f"The axis {quote(axis)} in the shape of "
                    message += f"{quote(tensor.name)} is not declared."
                    message += did_you_mean(axis, definition.axes)
                    where = (group, tensor.name, "shape", place)
                    yield AXIS_UNDECLARED.at(message, *where)
    for constraint in definition.constraints:
        used |= names_in(constraint)
    # a constant may live in the definition's name alone: `topk8` for `top_k`
    tokens = {token for token, _ in name_tokens(definition.name)}
    first: dict[str, str] = {}
    for name, axis in definition.axes.items():
        other = first.setdefault(name.upper(), name)
        if other != name:
            message = f"The axes {quote(other)} and {quote(name)} differ only by case."
            yield AXIS_CASE.at(message, "axes", name)
        rule = AXIS_UNUSED if axis.value is None else AXIS_UNUSED_CONST
        in_name = name.replace("_", "").lower() in tokens
        if name not in used and not (in_name and rule is AXIS_UNUSED_CONST):
            yield rule.at(f"The axis {quote(name)} is used nowhere.", "axes", name)


def check_unique(names: Mapping[str, str]) -> Iterator[Problem]:
    """Yield Problems for names that several files have, or that differ by case.

    `names` maps the path of each definition file to its name. The first file keeps
    the name, one whose file name agrees with it before others; the later ones get
    the Problem.
    """

    def order(path: str) -> tuple[bool, str]:
        return not path.endswith(f"/{names[path]}.json"), path

    first: dict[str, str] = {}
    for path in sorted(names, key=order):
        name = names[path]
        other = first.setdefault(name.casefold(), path)
        if other != path:
            same = names[other] == name
            what = "is also that of" if same else "differs only by case from that of"
            message = f"The name {quote(name)} {what} {quote(other, 200)}."
            rule = NAME_DUPLICATE if same else NAME_CASE
            yield rule.problem(path, message, pointer="/name")
