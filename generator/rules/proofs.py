"""Proofs of definitions without an op_type: an oracle's text, or a forward definition.

Such a text is `oracles/<op_type>/<definition>.py` of the dataset; its `run` takes the
definition's inputs and returns its outputs in float64. A definition of an op_type
`X_backward` is proven by the gradients of a definition of `X`, where the names say which
input has an output's gradient, and which output is an input's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from generator.dataset.definition import LoadedDefinition
from generator.dataset.file_reading import read_text
from generator.dataset.paths import ORACLES, discover_definitions
from generator.dataset.python_source import Unparsable, parse_module
from generator.problems import Problem, error
from generator.problems.messages import one_line, some
from generator.rules.screen import screen

ORACLE_UNFIT = error("""oracle-unfit: The text of an oracle can't be used for its
    definition.
    Fix: Write a `run` that takes the definition's inputs in order, in plain PyTorch.
    Finds: oracles/... without a function `run`, or with one that reads a file""")

BACKWARD = "_backward"
_MAX_BYTES = 1024 * 1024
# of what a gradient is of: `grad_x`, `dx`, `x_grad`
_GRADIENTS = ("grad_{}", "d_{}", "d{}", "{}_grad", "grad_of_{}")
# of the only output
_ONLY = ("grad_output", "grad_out", "grad", "dout", "d_out", "dy", "do", "upstream")


@dataclass(frozen=True)
class Text:
    """The text of an oracle, whose `run` returns what the definition's does."""

    source: str


@dataclass(frozen=True)
class Forward:
    """The forward definition of a backward one; see generator.running.own_oracle."""

    definition: LoadedDefinition
    gradients: tuple[str | None, ...]
    wanted: Mapping[str, str]
    saved: Mapping[str, int]

    @property
    def source(self) -> str:
        """Return the forward reference's text."""
        return self.definition.reference


def proof_of(root: Path, definition: LoadedDefinition) -> Text | Forward | str:
    """Return what proves a definition, or why nothing does, empty without a hint.

    Nothing is executed. A text that does not fit is `check`'s to report.
    """
    path = f"{ORACLES}/{definition.op_type}/{definition.name}.py"
    try:
        text = read_text(root, path, _MAX_BYTES)
    except FileNotFoundError:
        if not definition.op_type.endswith(BACKWARD):
            return ""
        return _forward(root, definition)
    except OSError as why:
        return f"{path}: {one_line(str(why))}"
    wrong = _wrong(text, definition)
    return f"{path}: {wrong}" if wrong else Text(text)


def check(root: Path, definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield what is wrong with the text of a definition's oracle."""
    path = f"{ORACLES}/{definition.op_type}/{definition.name}.py"
    try:
        text = read_text(root, path, _MAX_BYTES)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as why:
        yield ORACLE_UNFIT.problem(path, f"It can't be read: {one_line(str(why))}.")
        return
    wrong = _wrong(text, definition)
    if wrong:
        yield ORACLE_UNFIT.problem(path, f"It is not used: {wrong}.")


def _wrong(text: str, definition: LoadedDefinition) -> str:
    """Return why a text is no oracle of a definition, empty where it is one."""
    try:
        tree = parse_module(text)
    except (Unparsable, ValueError) as why:
        return one_line(str(why))
    runs = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "run"]
    if len(runs) != 1:
        return f"it has {len(runs)} functions `run` and needs one"
    arguments = [a.arg for a in (*runs[0].args.posonlyargs, *runs[0].args.args)]
    if arguments != [*definition.inputs]:
        return (
            f"its `run` takes {some(arguments, 9)}, not {some([*definition.inputs], 9)}"
        )
    for finding in screen(text):
        return f"line {finding.line}: {finding.what}: {finding.text} ({finding.why})"
    if _tree(text) == _tree(definition.reference):
        return "it is the reference itself, which proves nothing about it"
    return ""


def _tree(text: str) -> str:
    try:
        return ast.dump(parse_module(text))
    except (Unparsable, ValueError):
        return ""


def _forward(root: Path, definition: LoadedDefinition) -> Forward | str:
    from generator.rules.load import load_file

    op_type = definition.op_type.removesuffix(BACKWARD)
    fitting, why = [], f"the dataset has no definition of {op_type}"
    for file in discover_definitions(root).files:
        if file.op_type != op_type:
            continue
        loaded, _ = load_file(root, file)
        if loaded is None:
            continue
        matched = _matched(definition, loaded)
        if isinstance(matched, str):
            why = f"{loaded.name} is not its forward definition: {matched}"
        else:
            fitting.append(matched)
    named = [
        f for f in fitting if definition.name.replace(BACKWARD, "") == f.definition.name
    ]
    chosen = named or fitting
    if len({f.source for f in chosen}) > 1:
        names = some([f.definition.name for f in chosen], 3)
        return f"several forward definitions fit it: {names}; name it as one of these"
    return chosen[0] if chosen else why


def _matched(backward: LoadedDefinition, forward: LoadedDefinition) -> Forward | str:
    """Return how a backward definition belongs to a forward one, or why it does not."""
    for name, tensor in forward.inputs.items():
        mine = backward.inputs.get(name)
        if mine is None or (mine.shape, mine.dtype) != (tensor.shape, tensor.dtype):
            return f"input {name} is not the same"
    for axis in forward.const_axes.keys() & backward.const_axes.keys():
        if forward.const_axes[axis] != backward.const_axes[axis]:
            return f"axis {axis} differs"
    outputs = list(forward.outputs)
    gradients: list[str | None] = []
    for name in outputs:
        own_names = {form.format(name) for form in _GRADIENTS}
        own_names |= {*_ONLY} if len(outputs) == 1 else set()
        incoming = [n for n in backward.inputs if n in own_names - {*forward.inputs}]
        if len(incoming) > 1:
            return f"{some(incoming, 3)} may all be the gradient of {name}"
        gradients.append(incoming[0] if incoming else None)
    used = {name for name in gradients if name is not None}
    saved = {n: outputs.index(n) for n in backward.inputs if n in outputs}
    left = [n for n in backward.inputs if n not in {*forward.inputs, *used, *saved}]
    if left or not used:
        return f"input {left[0]} is of nothing" if left else "no input is a gradient"
    wanted = {}
    for output in backward.outputs:
        of = [
            name
            for name in forward.inputs
            if output in {form.format(name) for form in _GRADIENTS}
        ]
        if len(of) != 1:
            return f"output {output} is the gradient of no input by its name"
        wanted[output] = of[0]
    return Forward(forward, tuple(gradients), wanted, saved)
