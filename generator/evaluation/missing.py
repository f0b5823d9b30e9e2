"""Requirements of a solution that this machine does not meet."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

from generator.evaluation.solution import Solution

_COMPILERS = {"cpp": ("g++", "c++", "clang++"), "cuda": ("nvcc",)}


def missing(solution: Solution, device: str) -> str | None:
    """Return what a solution needs that this machine lacks, None where it has all."""
    language = solution.language
    if language in ("triton", "cuda", "tilelang") and device != "cuda":
        return f"{language} needs --device cuda"
    if language == "cpp" and device == "cuda" and solution.hardware == ("cpu",):
        return "C++ for the CPU alone, by its target_hardware: needs --device cpu"
    if language in ("triton", "tilelang") and find_spec(language) is None:
        return f"{language} is not installed"
    compilers = _COMPILERS.get(language, ())
    if compilers and not any(map(shutil.which, compilers)):
        return f"{language} needs {' or '.join(compilers)} on PATH"
    binding = solution.how()["binding"]
    if compilers and binding == "tvm-ffi" and find_spec("tvm_ffi") is None:
        return "the binding tvm-ffi is not installed: pip install apache-tvm-ffi"
    if compilers and binding == "torch" and shutil.which("ninja") is None:
        return "torch builds extensions with ninja: pip install ninja"
    return None
