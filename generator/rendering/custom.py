"""Files of custom inputs, beside the definitions: data and the source of an `init`.

Such a file is parsed: its constants are literals, and `init` is text for the rendered
test. Nothing of it is executed here.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.file_reading import read_text
from generator.dataset.paths import CUSTOM_INPUTS
from generator.dataset.python_source import Unparsable, parse_module
from generator.problems import Problem
from generator.problems.messages import one_line
from generator.rendering.embedding import can_be_nested
from generator.rules.runtime_rules import CUSTOM_INPUTS_UNFIT

_CONSTANTS: Mapping[str, type] = {
    "CALL": dict,
    "CASE": dict,
    "ARGUMENTS": dict,
    "OUTPUTS": dict,
    "APIS": list,
}
_MAX_BYTES = 1024 * 1024
CHECK = "# ----- check -----"
"""The line above a `check`, which is kept to be read: rendered tests compare."""


class Unfit(ValueError):
    """Raised where a file of custom inputs lacks something."""


@dataclass(frozen=True)
class Custom:
    """The contents of a file of custom inputs; `source` is what defines `init`."""

    call: Mapping[str, Any]
    case: Mapping[str, int]
    arguments: Mapping[str, tuple[str, int | None]]
    places: Mapping[str, tuple[int, str | None]]
    apis: tuple[str, ...]
    source: str
    nestable: bool

    @property
    def has_init(self) -> bool:
        """Return whether there is an `init`; else the inputs are guessed."""
        return bool(self.source.strip())


def read_custom(root: Path, definition: LoadedDefinition) -> Custom | Problem | None:
    """Return a definition's custom inputs, None without any, or what is wrong."""
    path = f"{CUSTOM_INPUTS}/{definition.op_type}/{definition.name}.py"
    try:
        text = read_text(root, path, _MAX_BYTES)
        return _custom(text, definition)
    except FileNotFoundError:
        return None
    except (OSError, Unparsable, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        message = f"The custom inputs are not used: {one_line(why)}."
        return CUSTOM_INPUTS_UNFIT.problem(path, message)


def _custom(text: str, definition: LoadedDefinition) -> Custom:
    tree = parse_module(text)
    values: dict[str, Any] = {}
    rest = text.splitlines()
    for node in tree.body:
        name = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(name, ast.Name) and name.id in _CONSTANTS:
            assert isinstance(node, ast.Assign)
            values[name.id] = ast.literal_eval(node.value)
            last = node.end_lineno or node.lineno
    for constant, kind in _CONSTANTS.items():
        if not isinstance(values.get(constant), kind):
            raise Unfit(f"it has no constant {constant}")
    missing = [n for n in definition.inputs if n not in values["ARGUMENTS"]]
    missing += [n for n in definition.outputs if n not in values["OUTPUTS"]]
    missing += [n for n in definition.var_axes if n not in values["CASE"]]
    if missing:
        raise Unfit(f"it says nothing of {', '.join(missing)}")
    source = "\n".join(rest[last:]).partition(CHECK)[0].strip("\n") + "\n"
    functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    if source.strip() and "init" not in functions:
        raise Unfit("it has no function init")
    return Custom(
        values["CALL"],
        values["CASE"],
        values["ARGUMENTS"],
        values["OUTPUTS"],
        tuple(values["APIS"]),
        source,
        can_be_nested(source),
    )
