"""Names that a reference has no use for, each with what it could do."""

from __future__ import annotations

MODULES = """torch math numpy typing __future__ collections dataclasses enum functools
    itertools numbers operator"""
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
