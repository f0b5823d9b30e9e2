"""Make a `run()` of a reference that has another name and other parameters.

The text is parsed and edited; none of it is executed.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from generator.dataset.python_source import Unparsable, own_nodes, parse_module
from generator.dialects.imported import Changes, ImportRefused
from generator.rules.static import undefined_names

Function = ast.FunctionDef
_STAND_INS = Path(__file__).parents[1] / "running" / "stand_ins.py"


def reference_function(source: str) -> Function:
    """Return the function that a dump is about: the last one; helpers come before it."""
    functions = functions_of(source, "reference")
    return next((f for f in functions if f.name == "run"), functions[-1])


def _owner(module: Path) -> str:
    return "our " if module == _STAND_INS else "FlashInfer's "


def _beside(module: Path) -> list[Path]:
    """Return where the quantisers of a template are written, and their layouts."""
    layouts = module.parents[2] / "tllm_enums.py"
    return [module.with_name("quantize.py"), layouts, _STAND_INS]


def functions_of(source: str, part: str) -> list[Function]:
    """Return the functions of a part of a dump; Refused where there is none."""
    try:
        tree = parse_module(source)
    except Unparsable as error:
        raise ImportRefused(f"its {part} is not Python: {error.reason}") from error
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    if not functions:
        raise ImportRefused(f"its {part} has no function")
    return functions


def with_helpers(
    source: str, module: Path | None, changes: Changes | None = None
) -> str:
    """Return a function's source with the helpers that it calls but does not define.

    They come from `module`, where it was written, and from those that it imports them
    from; with `changes` a name that stays undefined raises Refused.
    """
    modules = [] if module is None else [module, *_beside(module)]
    while missing := undefined_names(source):
        definitions: dict[str, tuple[Path, str]] = {}
        for name in missing:
            for place in modules:
                definition = _definition_of(place, name)
                if definition is not None:
                    definitions[name] = definition
                    break
        if not definitions:
            break
        for place in dict.fromkeys(place for place, _ in definitions.values()):
            if changes is not None:
                names = ", ".join(n for n, (p, _) in definitions.items() if p == place)
                changes.add(f"inlined {names} from {_owner(place)}{place.name}")
            modules += [place] if place not in modules else []
        source = _after_imports(source, [text for _, text in definitions.values()])
    if missing and changes is not None:
        raise ImportRefused(
            f"its reference reads {', '.join(missing)}, which nothing defines"
        )
    return source


def without_quantisers(source: str) -> str:
    """Return a source that does not import FlashInfer's quantisers: it lacks them."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(parse_module(source)):
        if not isinstance(node, ast.ImportFrom) or node.module != "flashinfer":
            continue
        if {alias.name for alias in node.names} <= {"SfLayout", "mxfp8_quantize"}:
            for row in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[row] = ""
    return "".join(lines)


def _after_imports(source: str, texts: Sequence[str]) -> str:
    """Return a source with what it needs: before it, or behind what that reads."""
    body = parse_module(source).body
    last = 0
    for node in body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            break
        last = node.end_lineno or 0
    lines = source.splitlines(keepends=True)
    rest = "".join(lines[last:]).strip("\n")
    statements = [n for n in body if not isinstance(n, (ast.Import, ast.ImportFrom))]
    defined = {name for node in statements for name in _names_of(node)}
    behind = [text for text in texts if _reads_at_once(text) & defined]
    # a default of a function is a constant that has to stand before it
    before = sorted((t for t in texts if t not in behind), key=_is_function)
    parts = ["".join(lines[:last]), "\n\n".join(before), rest, *behind]
    return "\n\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _is_function(text: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) for node in parse_module(text).body)


def _reads_at_once(text: str) -> set[str]:
    """Return the names that an assignment reads where it stands."""
    nodes = [n for n in parse_module(text).body if isinstance(n, ast.Assign)]
    inner = [n for node in nodes for n in ast.walk(node.value)]
    return {n.id for n in inner if isinstance(n, ast.Name)}


def _definition_of(module: Path, name: str) -> tuple[Path, str] | None:
    """Return the text that defines a name, or imports it, and the module it is from."""
    source, bound = _top_level(module)
    node = bound.get(name)
    if node is None:
        return None
    if isinstance(node, ast.ImportFrom) and node.level:
        folder = module.parents[node.level - 1]
        other = folder.joinpath(*(node.module or "").split(".")).with_suffix(".py")
        original = next(a.name for a in node.names if (a.asname or a.name) == name)
        return _definition_of(other, original) if other.is_file() else None
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        root = (getattr(node, "module", None) or node.names[0].name).split(".")[0]
        if root not in ("torch", "math", "numpy", "typing", "functools", "enum"):
            return None
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return module, "\n".join(source.splitlines()[first - 1 : node.end_lineno])


@lru_cache(maxsize=64)
def _top_level(module: Path) -> tuple[str, Mapping[str, ast.stmt]]:
    try:
        source = module.read_text("utf-8")
        tree = parse_module(source)
    except (OSError, UnicodeDecodeError, Unparsable):
        return "", {}
    bound: dict[str, ast.stmt] = {}
    for node in tree.body:
        for name in _names_of(node):
            bound[name] = node
    return source, bound


def _names_of(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def parameters(function: Function) -> dict[str, bool]:
    """Return the names of a function's parameters → whether they have a default."""
    arguments = function.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    required = len(positional) - len(arguments.defaults)
    defaults = {name: index >= required for index, name in enumerate(positional)}
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return {**defaults, **{a.arg: default is not None for a, default in pairs}}


def default_of(function: Function, name: str) -> Any:
    """Return the literal that a parameter has by default; raises KeyError."""
    arguments = function.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    pairs = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
    defaults = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    pairs |= {a.arg: d for a, d in defaults if d is not None}
    try:
        return ast.literal_eval(pairs[name])
    except ValueError:
        raise KeyError(name) from None


def returned_count(source: str, function: Function) -> int | None:
    """Return how many values a function returns, 0 for none, None where it may vary."""
    functions = {
        n.name: n for n in parse_module(source).body if isinstance(n, Function)
    }
    counts = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Return):
            counts.add(_count(source, node.value, functions, function))
    if not counts:
        return 0
    return counts.pop() if len(counts) == 1 else None


def _count(
    source: str,
    value: ast.expr | None,
    functions: Mapping[str, Function],
    function: Function,
) -> int | None:
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return 0
    if isinstance(value, ast.Tuple):
        return len(value.elts)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        called = functions.get(value.func.id)
        return None if called in (None, function) else returned_count(source, called)
    return 1 if isinstance(value, (ast.Name, ast.Call, ast.BinOp)) else None


def as_run(
    source: str,
    function: Function,
    inputs: Sequence[str],
    arguments: Mapping[str, str],
    written: Sequence[str],
    returned: Sequence[str] | None,
    changes: Changes,
) -> str:
    """Return a source whose `run()` takes `inputs` and returns the outputs.

    `arguments` maps the reference's parameters to expressions over the inputs, of those
    that are passed. The inputs in `written` are cloned before. `returned` are the
    expressions to return, None for what the reference returns.
    """
    plain = (
        list(parameters(function)) == list(inputs)
        and not function.args.kwonlyargs
        and function.args.kwarg is function.args.vararg is None
        and all(arguments.get(name) == name for name in inputs)
    )
    if plain and not written and returned is None:
        if function.name == "run":
            return source
        changes.add(f"renamed the reference {function.name} to run")
        return renamed(source, function.name, "run")
    name = function.name
    if name == "run":
        name = "_reference"
        source = renamed(source, "run", name)
    changes.add(f"run() calls {name} with the inputs by name")
    lines = [f"def run({', '.join(inputs)}):"]
    lines += [f"    {name} = {name}.clone()" for name in written]
    passed = ", ".join(f"{name}={value}" for name, value in arguments.items())
    if returned is None:
        lines.append(f"    return {name}({passed})")
    else:
        needed = any("returned" in value for value in returned)
        lines.append(f"    {'returned = ' if needed else ''}{name}({passed})")
        lines.append(f"    return {', '.join(returned)}")
    return source.rstrip("\n") + "\n\n\n" + "\n".join(lines) + "\n"


def renamed(source: str, old: str, new: str) -> str:
    """Return the source with one name for another, strings and comments as they are."""
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token in reversed(tokens):
        if token.type == tokenize.NAME and token.string == old:
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)
