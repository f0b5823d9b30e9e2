"""Memory of the judge that another process maps: of a GPU by the driver, else of the host.

The judge makes it and passes a file descriptor; whoever has the descriptor maps the same
bytes. So the judge writes arguments and reads outputs while not a line of code runs in
the process that was asked. Legacy CUDA IPC would want both in one PID namespace.

The sandbox shows this file: it imports the standard library alone, and torch where it is
called. The driver is called by ctypes, since cuda-bindings is no part of torch's wheels.
"""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import mmap
import os
from dataclasses import dataclass, field
from functools import cache
from typing import Any

_PAGE = 1 << 16
_OUT_OF_MEMORY = 2
# values of cuda.h
_PINNED, _DEVICE, _READ_WRITE, _FILE_DESCRIPTOR = 1, 1, 3, 1


class DriverError(RuntimeError):
    """A failed call of the CUDA driver, with its error number."""


class NoRoom(DriverError):
    """Raised where the device has too little memory left."""


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


@dataclass
class SharedMemory:
    """A piece of memory, its descriptor, and the bytes as a tensor of uint8.

    Attributes:
        size: bytes, rounded up to what the device maps.
        file: the descriptor that another process maps it by; -1 after `close`.
        address: where it lies in this process.
        bytes: a tensor of `size` elements, which shares the memory.
    """

    size: int
    file: int
    address: int
    bytes: Any
    _held: Any = field(default=None, repr=False)

    def close(self) -> None:
        """Give the descriptor back, and unmap what the driver mapped."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1
        if isinstance(self._held, int) and self.address:
            # nothing may still use it
            _call("cuCtxSynchronize")
            _call(
                "cuMemUnmap", ctypes.c_uint64(self.address), ctypes.c_size_t(self.size)
            )
            _call("cuMemRelease", ctypes.c_uint64(self._held))
            size = ctypes.c_size_t(self.size)
            _call("cuMemAddressFree", ctypes.c_uint64(self.address), size)
            self.address, self.bytes = 0, None


def create(device: str, size: int) -> SharedMemory:
    """Make memory of `cpu` or `cuda`. Raises DriverError, OSError."""
    if device == "cpu":
        size = -(-size // _PAGE) * _PAGE
        file = os.memfd_create("arguments", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(file, size)
        # nobody can shorten it, which would end who reads beyond
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        return _of_host(file, size)
    properties, number = _properties()
    granule = ctypes.c_size_t()
    _call(
        "cuMemGetAllocationGranularity",
        ctypes.byref(granule),
        ctypes.byref(properties),
        ctypes.c_int(0),
    )
    size = -(-size // granule.value) * granule.value
    handle, file_ = ctypes.c_uint64(), ctypes.c_int(-1)
    _call(
        "cuMemCreate",
        ctypes.byref(handle),
        ctypes.c_size_t(size),
        ctypes.byref(properties),
        ctypes.c_uint64(0),
    )
    _call(
        "cuMemExportToShareableHandle",
        ctypes.byref(file_),
        handle,
        ctypes.c_int(_FILE_DESCRIPTOR),
        ctypes.c_uint64(0),
    )
    return _mapped(handle.value, size, number, file_.value)


def attach(device: str, file: int, size: int) -> SharedMemory:
    """Map memory that another process made. Raises DriverError, OSError."""
    if device == "cpu":
        return _of_host(file, size)
    _, number = _properties()
    handle = ctypes.c_uint64()
    _call(
        "cuMemImportFromShareableHandle",
        ctypes.byref(handle),
        ctypes.c_void_p(file),
        ctypes.c_int(_FILE_DESCRIPTOR),
    )
    return _mapped(handle.value, size, number, file)


def reset_persisting_l2() -> None:
    """Make all lines of the L2 cache ordinary ones. Raises DriverError."""
    _call("cuCtxResetPersistingL2Cache")


def _of_host(file: int, size: int) -> SharedMemory:
    torch: Any = importlib.import_module("torch")
    shared = mmap.mmap(file, size)
    flat = torch.frombuffer(shared, dtype=torch.uint8)
    return SharedMemory(size, file, flat.data_ptr(), flat, shared)


def _mapped(handle: int, size: int, number: int, file: int) -> SharedMemory:
    torch: Any = importlib.import_module("torch")
    address = ctypes.c_uint64()
    length = ctypes.c_size_t(size)
    nothing = ctypes.c_uint64(0)
    place = ctypes.byref(address)
    _call("cuMemAddressReserve", place, length, ctypes.c_size_t(0), nothing, nothing)
    whole = ctypes.c_uint64(handle)
    _call("cuMemMap", address, length, ctypes.c_size_t(0), whole, nothing)
    access = _Access(_Location(_DEVICE, number), _READ_WRITE)
    _call("cuMemSetAccess", address, length, ctypes.byref(access), ctypes.c_size_t(1))
    flat = torch.as_tensor(_Array(address.value, size), device=f"cuda:{number}")
    return SharedMemory(size, file, address.value, flat, handle)


class _Array:
    """Bytes of a device as torch reads them; torch does not free them."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _properties() -> tuple[_Properties, int]:
    torch: Any = importlib.import_module("torch")
    torch.cuda.init()
    number = int(torch.cuda.current_device())
    # a context of the runtime, which the driver's calls need
    torch.cuda.synchronize()
    return _Properties(_PINNED, _FILE_DESCRIPTOR, _Location(_DEVICE, number)), number


@cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_driver(), name)(*arguments)
    if status == _OUT_OF_MEMORY:
        raise NoRoom(f"the GPU has no memory left beside it ({name})")
    if status != 0:
        raise DriverError(f"{name} returned {status}")
