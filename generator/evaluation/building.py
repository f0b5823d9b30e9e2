"""Inside the sandbox: build a solution from its sources, as flashinfer-bench does."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_PACKAGE = "solution_under_evaluation"


def build(how: Mapping[str, Any], folder: str) -> Callable[..., Any]:
    """Return the function that a solution's sources have; raises what building raises.

    `how` has the fields of flashinfer-bench's solution; `arguments` is how many there
    are to pass by position.
    """
    root = os.path.join(folder, _PACKAGE)
    for source in how["sources"]:
        path = os.path.join(root, source["path"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(source["content"])
    path, symbol = how["entry_point"].split("::")
    if how["language"] in ("cpp", "cuda"):
        native = [os.path.join(root, s["path"]) for s in how["sources"]]
        named = [p for p in native if p.endswith((".cpp", ".cc", ".cxx", ".cu", ".c"))]
        loads = _by_torch if how["binding"] == "torch" else _by_tvm_ffi
        entry: Callable[..., Any] = loads(named, root, symbol)
    else:
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        parts = [_PACKAGE, *path.removesuffix(".py").split("/")]
        entry = getattr(importlib.import_module(".".join(parts)), symbol)
    if not callable(entry):
        raise TypeError(f"{symbol} is not callable")
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        # of native code
        return entry
    try:
        signature.bind(*[None] * how["arguments"])
    except TypeError as error:
        passed = f"the {how['arguments']} arguments that the definition passes"
        raise TypeError(f"{symbol}{signature} can't take {passed}: {error}") from None
    return entry


def _by_torch(files: Sequence[str], root: str, symbol: str) -> Any:
    extension: Any = importlib.import_module("torch.utils.cpp_extension")
    module = extension.load(
        name=_PACKAGE, sources=list(files), extra_include_paths=[root], verbose=False
    )
    return getattr(module, symbol)


def _by_tvm_ffi(files: Sequence[str], root: str, symbol: str) -> Any:
    torch: Any = importlib.import_module("torch")
    cpp: Any = importlib.import_module("tvm_ffi.cpp")
    module: Any = importlib.import_module("tvm_ffi.module")
    cuda = [file for file in files if file.endswith(".cu")]
    if cuda:
        # else it asks nvidia-smi, which is not here
        major, minor = torch.cuda.get_device_capability()
        features = "a" if major >= 9 else ""
        os.environ["TVM_FFI_CUDA_ARCH_LIST"] = f"{major}.{minor}{features}"
    # where the driver's library lies only under the name that programs load
    stubs = f"-L{os.environ.get('CUDA_HOME', '')}/lib64/stubs"
    built = cpp.build(
        name=_PACKAGE,
        cpp_files=[file for file in files if not file.endswith(".cu")],
        cuda_files=cuda,
        extra_include_paths=[root],
        extra_ldflags=[stubs, "-lcuda", "-lcublas"] if cuda else [],
    )
    return getattr(module.load_module(built), symbol)
