"""Import SGLang with few of its packages: stand-ins for what its native code never calls.

SGLang imports a server's worth of packages before a layer can be had. A complete
installation is imported as it is. Where some of the packages in `OPTIONAL` are missing,
stand-ins take their place, last on sys.meta_path, so that a real package always wins;
and CUDA is hidden while SGLang decides which kernels it has, so that it chooses its
PyTorch and Triton paths over those of the wheel that is not there.

Both change the process for good: only a process of its own may call `load`. This module
imports nothing but the standard library, so that the generator can run it as well.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

COMPLETE, LIGHT = "complete", "light"
# where one import serves all workers of a test run: the address of the fork server
FORK_SERVER_VARIABLE = "REFERENCE_SGLANG_FORK_SERVER"
# Imported at the top of modules that the layers need, used by the server or by other
# hardware alone. triton has to be real where a Triton kernel is called.
OPTIONAL = (
    "IPython",
    "PIL",
    "aiohttp",
    "compressed_tensors",
    "einops",
    "fastapi",
    "gguf",
    "loguru",
    "orjson",
    "partial_json_parser",
    "psutil",
    "pybase64",
    "sentencepiece",
    "starlette",
    "torchvision",
    "triton",
    "tvm_ffi",
    "uvicorn",
    "zmq",
)
# the compiled kernels, which SGLang imports where it sees a CUDA device
KERNELS = "sgl_kernel"
# what decides at its import which kernels there are, and whether they are CUDA's
NORMS = ("sglang.srt.layers.layernorm",)
DECIDING = ("sglang.srt.layers.moe.topk", *NORMS, "sglang.srt.layers.sampler")
_ROTARY = "sglang.srt.layers.rotary_embedding.base"
# PyTorch code of SGLang that is compiled would take minutes and round differently;
# a cache of cosines in float32 is what its CUDA kernels have
ENVIRONMENT = {"TORCHDYNAMO_DISABLE": "1", "SGLANG_ROPE_CACHE_FP32": "1"}


def is_installed(module: str) -> bool:
    """Return whether a top-level module can be found; it is not imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # in sys.modules without a spec
        return module in sys.modules


def missing(cuda: bool) -> tuple[str, ...]:
    """Return what a complete installation would have and this one has not."""
    wanted = (*OPTIONAL, KERNELS) if cuda else OPTIONAL
    return tuple(module for module in wanted if not is_installed(module))


def load(deciding: Sequence[str] = DECIDING) -> str:
    """Import SGLang; return COMPLETE or LIGHT. Whatever its import raises is raised.

    A process that calls nothing but norms needs NORMS alone, in three fifths of the time.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import torch

    cuda = torch.cuda.is_available()
    absent = missing(cuda)
    if not absent and cuda:
        importlib.import_module("sglang.srt.layers.layernorm")
        return COMPLETE
    # none for the kernels: what asks for them has other code where they are missing
    stand_ins = [module for module in absent if module != KERNELS]
    if stand_ins:
        sys.meta_path.append(StandInFinder(stand_ins))
    _import_without_cuda(torch, deciding)
    return LIGHT if absent else COMPLETE


def _import_without_cuda(torch: ModuleType, deciding: Sequence[str]) -> None:
    """Import what decides on kernels while torch says that it has no CUDA."""
    version: Any = torch.version
    cuda, version.cuda = version.cuda, None
    try:
        is_cuda = importlib.import_module("sglang.srt.utils").is_cuda
        is_cuda()  # remembers its first answer
        for module in deciding:
            importlib.import_module(module)
        # a rotation without CUDA would want vllm's kernel if it took itself for a GPU's
        rotary: Any = importlib.import_module(_ROTARY)
        rotary._is_cpu = True
    finally:
        version.cuda = cuda


class StandInFinder:
    """A finder of modules of the given top-level names; appended to sys.meta_path."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for a stand-in, None for what is not ours."""
        if name.partition(".")[0] not in self._names:
            return None
        loader: Any = self
        return importlib.machinery.ModuleSpec(name, loader, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the stand-in of a module."""
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it empty: its attributes make themselves."""


class _StandInModule(ModuleType):
    # newer than any version that is asked for
    __version__ = "9999.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn


class _StandInType(type):
    """A metaclass: its classes serve as base class, annotation, decorator or namespace."""

    def __getattr__(cls, name: str) -> Any:
        # SGLang asks `triton.runtime.driver` for a GPU, and takes this for: none
        if name.startswith("__") or name == "driver":
            raise AttributeError(name)
        return cls

    def __or__(cls, other: object) -> Any:
        return cls

    def __ror__(cls, other: object) -> Any:
        return cls

    def __getitem__(cls, key: object) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


class StandIn(metaclass=_StandInType):
    """A stand-in for any class or function of a package that is missing."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        if len(args) == 1 and callable(args[0]):
            return args[0]  # as the decorator that `@module.name(option=1)` makes
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn()

    def __class_getitem__(cls, key: object) -> Any:
        return cls
