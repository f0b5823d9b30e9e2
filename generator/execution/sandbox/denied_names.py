"""Names that a reference has no use for, each with what it could do."""

from __future__ import annotations

MODULES = (
    "torch",
    "math",
    "numpy",
    "typing",
    "__future__",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "itertools",
    "numbers",
    "operator",
)
"""Modules that may be imported; the rest can do more than compute."""

_RUNS = "it runs text or bytes as code"
_FILES = "it reads or writes files"
_PROCESS = "it starts, ends or reaches processes"
_NATIVE = "it loads or builds native code"
_MODULE = "it is a module of the interpreter, reached through another"
_LOOKS = "it reads or changes names that are not its own"
_FRAMES = "it looks at who called"
_STATE = "it changes a state that the tests share"
_ENDS = "it ends the process of the tests, or catches their end"
_SAYS = "it writes into the output of the tests"
_WATCHES = "it is called by the interpreter or by torch behind the tests' back"

NAMES = {
    **dict.fromkeys(("eval", "exec", "compile", "__import__"), _RUNS),
    **dict.fromkeys(("open", "input"), _FILES),
    **dict.fromkeys(("globals", "locals", "vars", "dir", "setattr", "delattr"), _LOOKS),
    **dict.fromkeys(("__builtins__", "__loader__", "__spec__", "__file__"), _LOOKS),
    **dict.fromkeys(("breakpoint", "help", "memoryview"), _LOOKS),
    **dict.fromkeys(("exit", "quit", "SystemExit", "BaseException"), _ENDS),
    **dict.fromkeys(("KeyboardInterrupt", "GeneratorExit"), _ENDS),
    "print": _SAYS,
}
"""Built-in names, used in any way: a call can hide behind another name."""

ATTRIBUTES = {
    **dict.fromkeys(
        (
            "os",
            "sys",
            "io",
            "builtins",
            "importlib",
            "inspect",
            "gc",
            "threading",
            "types",
            "warnings",
            "weakref",
            "traceback",
            "modules",
            "platform",
            "glob",
            "shutil",
            "tempfile",
            "pathlib",
        ),
        _MODULE,
    ),
    **dict.fromkeys(
        ("subprocess", "multiprocessing", "distributed", "futures", "rpc"), _PROCESS
    ),
    **dict.fromkeys(
        ("system", "popen", "fork", "execv", "execve", "spawnv", "kill", "abort"),
        _PROCESS,
    ),
    **dict.fromkeys(
        (
            "ctypes",
            "ctypeslib",
            "cffi",
            "cpp_extension",
            "load_library",
            "load_inline",
            "ops",
            "classes",
            "library",
            "cudart",
            "compile",
            "inductor",
            "f2py",
            "distutils",
        ),
        _NATIVE,
    ),
    **dict.fromkeys(
        (
            "load",
            "save",
            "savez",
            "savez_compressed",
            "savetxt",
            "loadtxt",
            "genfromtxt",
            "fromregex",
            "loads",
            "dump",
            "dumps",
            "pickle",
            "hub",
            "from_file",
            "fromfile",
            "tofile",
            "memmap",
            "open_memmap",
            "DataSource",
            "package",
            "serialization",
            "UntypedStorage",
            "TypedStorage",
            "load_state_dict_from_url",
            "model_zoo",
            "onnx",
            "export",
            "profiler",
            "data_ptr",
            "storage",
            "untyped_storage",
        ),
        _FILES,
    ),
    **dict.fromkeys(("testing", "overrides", "fx", "monitor", "utils"), _WATCHES),
    **dict.fromkeys(
        (
            "tb_frame",
            "tb_next",
            "f_back",
            "f_globals",
            "f_locals",
            "f_builtins",
            "f_code",
            "gi_frame",
            "gi_code",
            "cr_frame",
            "ag_frame",
            "co_code",
            "co_consts",
            "func_globals",
            "with_traceback",
        ),
        _FRAMES,
    ),
    **dict.fromkeys(("attrgetter", "methodcaller"), _LOOKS),
    **dict.fromkeys(
        ("register_hook", "register_forward_hook", "register_module_forward_hook"),
        _WATCHES,
    ),
    **dict.fromkeys(
        ("manual_seed", "seterr", "use_deterministic_algorithms", "use_rs"), _STATE
    ),
    **dict.fromkeys(("seterrcall", "set_printoptions", "setdefault_dtype"), _STATE),
}
"""Attributes of anything at all: whose they are cannot be known without running it."""

PREFIXES = {
    "set_default_": _STATE,
    "set_num_": _STATE,
    "set_deterministic_": _STATE,
    "set_float32_": _STATE,
    "set_grad_enabled_": _STATE,
    "set_rng_": _STATE,
}

SPECIAL_METHODS = ("__init__", "__post_init__", "__call__", "__len__", "__repr__")
"""Methods with a meaning to the interpreter that a helper class may define."""
