"""Values between the test process and SGLang's: tensors by bytes, large CUDA ones shared.

A message is one pickle, in which tensors are numbers, followed by the bytes of each
tensor in chunks. If the receiver can open handles of CUDA memory (CUDA IPC), a large
CUDA tensor goes as its handle: 17 GB of weights are not copied.
Both ends are this project's own processes, of one user on one machine.
"""

from __future__ import annotations

import importlib
import io
import pickle
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import torch

_CHUNK = 64 << 20
# smaller ones are copied sooner than shared
SHARED_FROM = 1 << 20


@dataclass(frozen=True)
class _Sent:
    """The layout of a tensor's bytes: `order` lists its dimensions, outermost first.

    So the receiver gets the strides of a dense tensor back; gaps are not sent.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    order: tuple[int, ...]
    device: str


@dataclass
class Message:
    """A value ready to be sent; nothing that can fail on a device is left to do.

    `shared` are the arguments with which the receiver opens tensors' memory; the memory
    must live until it answers.
    """

    payload: bytes = b""
    tensors: list[Any] = field(default_factory=list)
    buffers: list[torch.Tensor] = field(default_factory=list)
    shared: list[tuple[Any, ...]] = field(default_factory=list)


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, message: Message, share: bool) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._message, self._share = message, share

    def persistent_id(self, value: Any) -> int | None:
        """Return a tensor's number in the message, None for what is pickled."""
        if not isinstance(value, torch.Tensor):
            return None
        message, tensor = self._message, value.detach()
        nbytes = tensor.numel() * tensor.element_size()
        if self._share and tensor.is_cuda and nbytes >= SHARED_FROM:
            handle = _share(tensor)
            message.shared.append(handle)
            message.tensors.append(handle)
        else:
            sent, buffer = _flatten(tensor)
            message.tensors.append(sent)
            message.buffers.append(buffer)
        return len(message.tensors) - 1


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tensors: list[torch.Tensor]) -> None:
        super().__init__(file)
        self._tensors = tensors

    def persistent_load(self, number: int) -> torch.Tensor:
        """Return the tensor of a number, of the shape and dtype that it was sent with."""
        return self._tensors[number]


def pack(value: Any, *, share: bool = False) -> Message:
    """Return a message; raises what pickling or copying from the device raises."""
    message, file = Message(), io.BytesIO()
    try:
        _Packer(file, message, share).dump(value)
    except BaseException:
        release(message)
        raise
    message.payload = file.getvalue()
    return message


def send(connection: Connection, message: Message) -> None:
    """Send a packed message."""
    connection.send_bytes(pickle.dumps((message.tensors, message.payload)))
    for buffer in message.buffers:
        view = buffer.numpy().data
        for start in range(0, len(view), _CHUNK):
            connection.send_bytes(view[start : start + _CHUNK])


def receive(connection: Connection) -> Any:
    """Return the next value; EOFError where the other end is gone.

    All of a message is read before anything of it is opened, so that a failure leaves
    the connection fit for the next one.
    """
    sent, payload = pickle.loads(connection.recv_bytes())
    buffers = [
        _receive_bytes(connection, spec) if isinstance(spec, _Sent) else None
        for spec in sent
    ]
    tensors = [
        _open(spec) if buffer is None else _restore(spec, buffer)
        for spec, buffer in zip(sent, buffers, strict=True)
    ]
    return _Unpacker(io.BytesIO(payload), tensors).load()


def release(message: Message) -> None:
    """Take back the memory that a receiver never opened, or died with.

    The last use of shared memory is counted down by the receiver; without it the
    sender would keep the memory for good.
    """
    for handle in message.shared:
        *_, device, _, _, _, _, counter, offset, _, _ = handle
        storage: Any = torch.UntypedStorage
        with suppress(Exception):
            storage._release_ipc_counter(counter, offset, device=device)


def _share(tensor: torch.Tensor) -> tuple[Any, ...]:
    _, arguments = _reductions().reduce_tensor(tensor)
    return tuple(arguments)


def _open(handle: tuple[Any, ...]) -> torch.Tensor:
    tensor: torch.Tensor = _reductions().rebuild_cuda_tensor(*handle)
    return tensor


def _reductions() -> Any:
    # not at the top: its import sets up sharing between processes
    return importlib.import_module("torch.multiprocessing.reductions")


def _flatten(tensor: torch.Tensor) -> tuple[_Sent, torch.Tensor]:
    """Return a tensor's form and its bytes on the CPU."""
    tensor = tensor.resolve_conj().resolve_neg()
    strides = tensor.stride()
    order = tuple(sorted(range(tensor.dim()), key=lambda axis: -strides[axis]))
    flat = tensor.permute(order).contiguous().reshape(-1).view(torch.uint8)
    form = _Sent(tensor.dtype, tuple(tensor.shape), order, str(tensor.device))
    return form, flat.cpu()


def _receive_bytes(connection: Connection, spec: _Sent) -> torch.Tensor:
    count = torch.Size(spec.shape).numel() * spec.dtype.itemsize
    buffer = torch.empty(count, dtype=torch.uint8)
    view = buffer.numpy().data
    for start in range(0, count, _CHUNK):
        connection.recv_bytes_into(view[start : start + _CHUNK])
    return buffer


def _restore(spec: _Sent, buffer: torch.Tensor) -> torch.Tensor:
    inverse = [spec.order.index(axis) for axis in range(len(spec.order))]
    dense = buffer.view(spec.dtype).reshape([spec.shape[axis] for axis in spec.order])
    return dense.permute(inverse).to(spec.device)
