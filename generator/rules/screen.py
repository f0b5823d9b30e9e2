"""A static screen of a reference: what no reference needs, with the line shown.

It reads the syntax tree and executes nothing. It is a sieve, not a proof: what passes
may still be hostile, and runs confined. What does not pass is not run without `--trust`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from generator.dataset.python_source import Unparsable, parse_module
from generator.problems import error
from generator.problems.messages import one_line

EXECUTE_BLOCKED = error("""execute-blocked: The screen of the sources found what no
    reference needs: it is not called.
    Fix: Write the computation in plain PyTorch; --trust calls it all the same.
    Finds: `os.system(...)`, `eval(...)`, `x.__class__`""")

MODULES = """torch math numpy typing __future__ collections dataclasses enum functools
    itertools numbers operator"""
"""Modules that may be imported; the rest can do more than compute."""

NAMES_OF = {
    module: frozenset(names.split())
    for module, names in {
        "typing": """Any Callable ClassVar Dict Final FrozenSet Generic Iterable Iterator List
            Literal Mapping MutableMapping NamedTuple NoReturn Optional Sequence Set Tuple
            Type TYPE_CHECKING TypeAlias TypeVar TypedDict Union cast overload""",
        "dataclasses": "dataclass field asdict astuple replace fields",
        "enum": "Enum IntEnum Flag IntFlag auto unique",
        "functools": "cache lru_cache partial reduce wraps cmp_to_key cached_property",
        "collections": "Counter OrderedDict defaultdict deque namedtuple abc ChainMap",
        "numbers": "Number Integral Real Rational Complex",
    }.items()
}
"""Modules of which a reference may use these names alone: others evaluate annotations, or
write and run code, as `typing.get_type_hints` and `dataclasses.make_dataclass` do."""

_RUNS = "it runs text or bytes as code"
_FILES = "it reads or writes files"
_PROCESS = "it starts, ends or reaches processes"
_NATIVE = "it loads or builds native code"
_ALLOWED = "no reference needs it, and it is not known to compute alone"
_MODULE = "it is a module of the interpreter, reached through another"
_LOOKS = "it reads or changes names that are not its own"
_FRAMES = "it looks at who called"
_STATE = "it changes a state that the tests share"
_ENDS = "it ends the process of the tests, or catches their end"
_SAYS = "it writes into the output of the tests"
_MEMORY = "it reaches memory that is not its own"
_WATCHES = "it is called by the interpreter or by torch behind the tests' back"


def _by_name(names: dict[str, str]) -> dict[str, str]:
    """Return what each name could do, of names by what they could do."""
    return {name: why for why, group in names.items() for name in group.split()}


NAMES = _by_name(
    {
        _RUNS: "eval exec compile __import__",
        _FILES: "open input",
        _LOOKS: """globals locals vars dir setattr delattr __builtins__ __loader__
            __spec__ __file__ breakpoint help memoryview""",
        _ENDS: "exit quit SystemExit BaseException KeyboardInterrupt GeneratorExit",
        _SAYS: "print",
    }
)
"""Built-in names, used in any way: a call can hide behind another name."""

ATTRIBUTES = _by_name(
    {
        _RUNS: """get_type_hints ForwardRef evaluate_forward_ref make_dataclass jit
            CompilationUnit singledispatch singledispatchmethod bmat import_ir_module
            import_ir_module_from_buffer parse_ir""",
        _MEMORY: "stride_tricks as_strided lib DLDeviceType from_dlpack to_dlpack",
        _MODULE: """os sys io builtins importlib inspect gc threading types warnings
            weakref traceback modules platform glob shutil tempfile pathlib""",
        _PROCESS: """subprocess multiprocessing distributed futures rpc system popen fork
            execv execve spawnv kill abort""",
        _NATIVE: """ctypes ctypeslib cffi cpp_extension load_library load_inline ops
            classes library cudart compile inductor f2py distutils""",
        _FILES: """load save savez savez_compressed savetxt loadtxt genfromtxt fromregex
            loads dump dumps pickle hub from_file fromfile tofile memmap open_memmap
            DataSource package serialization UntypedStorage TypedStorage
            load_state_dict_from_url model_zoo onnx export profiler data_ptr storage
            untyped_storage""",
        _WATCHES: """testing overrides fx monitor utils register_hook
            register_forward_hook register_module_forward_hook""",
        _FRAMES: """tb_frame tb_next f_back f_globals f_locals f_builtins f_code gi_frame
            gi_code cr_frame ag_frame co_code co_consts func_globals with_traceback""",
        _LOOKS: "attrgetter methodcaller",
        _STATE: """manual_seed seterr use_deterministic_algorithms use_rs seterrcall
            set_printoptions setdefault_dtype""",
    }
)
"""Attributes of anything at all: whose they are cannot be known without running it."""

PREFIXES = _by_name(
    {
        _STATE: """set_default_ set_num_ set_deterministic_ set_float32_
            set_grad_enabled_ set_rng_"""
    }
)

SPECIAL_METHODS = ("__init__", "__post_init__", "__call__", "__len__", "__repr__")
"""Methods with a meaning to the interpreter that a helper class may define."""

_PATH_IN_FORMAT = re.compile(r"\{[^{}:!]*[.\[]")
_SHOWN = 160
_LONGEST = 1_000_000
_MOST = 100
_LONG_NAME = 60
_JUDGES = ("Tensor", "Parameter", "TorchFunctionMode", "TorchDispatchMode")


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that no reference needs: where, the line, what it is and why not."""

    line: int
    text: str
    what: str
    why: str


def screen(source: str) -> tuple[Finding, ...]:
    """Return what is suspicious in a reference, in order of lines; never raises."""
    if len(source) > _LONGEST:
        return (Finding(1, "", "its size", f"it has over {_LONGEST:,} characters"),)
    lines = source.splitlines()

    def finding(line: int, what: str, why: str) -> Finding:
        text = "".join(lines[line - 1 : line]).strip()
        return Finding(line, one_line(text, _SHOWN), one_line(what), why)

    try:
        tree = parse_module(source)
    except Unparsable as error:
        what = f"source that does not parse: {error.reason}"
        return (finding(error.line or 1, what, "it cannot be judged"),)
    parameters = set(_parameters(tree))
    imported = {
        (name.asname or name.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    findings = {
        finding(getattr(node, "lineno", 1), what, why)
        for node in ast.walk(tree)
        if node not in parameters
        for what, why in (*_judge(node), *_formats(node), *_patches(node, imported))
    }
    findings |= {finding(line, what, why) for line, what, why in _modules(tree)}
    return tuple(sorted(findings)[:_MOST])


def _parameters(tree: ast.Module) -> Iterator[ast.Name]:
    """Yield the names that are a function's parameters, whatever builtin has the name.

    FlashInfer calls an activation's tensor `input`. A default or an annotation is read
    outside of its function, and `global` inside of one reaches the builtin after all.
    """
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        inside = [node for part in function.body for node in ast.walk(part)]
        arguments = function.args
        parameters = {
            a.arg
            for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        }
        reached = {n for s in inside if isinstance(s, ast.Global) for n in s.names}
        for node in inside:
            if (
                isinstance(node, ast.Name)
                and node.id in NAMES.keys() & parameters - reached
            ):
                yield node


def _judge(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what a node is that no reference needs, each with the reason."""
    names: list[str] = []
    match node:
        case ast.Import():
            for alias in node.names:
                yield from _import(alias.name)
                names += alias.name.split(".")[1:]
        case ast.ImportFrom():
            yield from _import("." * node.level + (node.module or ""))
            names = (node.module or "").split(".")[1:]
            for alias in node.names:
                names.append(alias.name)
                if alias.name == "*":
                    yield "import *", "it may replace any name unseen"
        case ast.Attribute():
            names = [node.attr]
        case ast.MatchClass():
            names = node.kwd_attrs
        case ast.Name():
            if node.id in NAMES:
                yield node.id, NAMES[node.id]
            elif _dunder(node.id):
                yield node.id, "it reaches into the interpreter"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if _dunder(node.name) and node.name not in SPECIAL_METHODS:
                yield node.name, "such a method can answer for a comparison"
        case ast.ClassDef():
            for base in node.bases:
                name = getattr(base, "attr", getattr(base, "id", ""))
                if name in _JUDGES:
                    yield f"a subclass of {name}", "it can answer for a comparison"
            if any(keyword.arg == "metaclass" for keyword in node.keywords):
                yield "a metaclass", "no reference needs one"
        case ast.Call(func=ast.Name(id="getattr")):
            match node.args[1:2]:
                case [ast.Constant(value=str(name))]:
                    names = [name]
                case _:
                    why = "by a name that is not written out, it reaches anything"
                    yield "getattr", why
        case ast.Call(func=ast.Name(id="type")):
            if len(node.args) != 1:
                yield "type", "it makes a class that cannot be read here"
        case ast.Constant(value=str(text)):
            if "{" in text and ".__" in text:
                yield "a format with .__", "it reads attributes of the interpreter"
    for name in names:
        if name in ATTRIBUTES:
            yield f".{name}", ATTRIBUTES[name]
        elif name.startswith("_"):
            yield f".{name}", "it reaches into what is private"
        else:
            for prefix, why in PREFIXES.items():
                if name.startswith(prefix):
                    yield f".{name}", why


def _formats(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield a format of a text that reads attributes, or that is not written out."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("format", "format_map"):
        return
    why = "it reads attributes by a text"
    text = node.value.value if isinstance(node.value, ast.Constant) else None
    if not isinstance(text, str):
        yield "a format of a text that is not written out", why
    elif _PATH_IN_FORMAT.search(text):
        yield "a format with a path of attributes", why


def _modules(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield the uses of modules in NAMES_OF other than by the names that are allowed."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    top = alias.name.split(".")[0]
                    if top in NAMES_OF:
                        aliases[alias.asname or top] = alias.name
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    if alias.name not in NAMES_OF.get(module, {alias.name}):
                        yield node.lineno, f"{module}.{alias.name}", _ALLOWED
    seen: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name) as base) if name in aliases:
                seen.add(base)
                module = aliases[name]
                if node.attr not in NAMES_OF.get(module, {node.attr}):
                    yield node.lineno, f"{module}.{node.attr}", _ALLOWED
            case ast.Name(id=name) if name in aliases and node not in seen:
                yield node.lineno, f"the module {aliases[name]} as a value", _MODULE


def _import(module: str) -> Iterator[tuple[str, str]]:
    allowed = MODULES.split()
    if module.split(".")[0] not in allowed:
        yield f"import of {module}", f"a reference needs {', '.join(allowed[:4])} only"


def _patches(node: ast.AST, imported: set[str]) -> Iterator[tuple[str, str]]:
    """Yield an assignment to what belongs to an imported module."""
    if isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    name = ""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        part = f".{node.attr}" if isinstance(node, ast.Attribute) else "[...]"
        name = part + name if len(name) < _LONG_NAME else name
        node = node.value
    if name and isinstance(node, ast.Name) and node.id in imported:
        why = "it changes a module for the tests as well"
        yield f"an assignment to {node.id}{name}", why


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and len(name) > 4
