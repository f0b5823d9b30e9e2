"""The worker's side: a process that imports SGLang and calls adapters until told to end.

It answers one request after another on a connection. Its standard input is a pipe that
nobody writes to: at its end the test run is over, killed or not, and so is the worker.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
import threading
import traceback
from contextlib import ExitStack
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch

from generator.execution.gpus import sleep_while_waiting
from generator.running.sglang_light import load
from generator.running.sglang_wire import Message, pack, receive, send
from kernel_judge.inputs.trial import seed
from kernel_judge.obstacle import Unavailable
from kernel_judge.skipping import Skip

_FRAMES = 8
_cuda: Any = torch.cuda
# once: a fork of a fork server finds it done
_load = cache(load)


def prepare(gpu: tuple[int, str] | None) -> None:
    """Import SGLang in a process that will be forked; `gpu` as sglang_process.fork_server has it.

    What is imported asks CUDA for the GPU, and is answered here: a CUDA that was
    initialised is of no use in a fork.
    """
    answers: dict[str, Any] = {}
    if gpu is not None:
        capability, name = gpu
        answers = {
            "is_available": True,
            "device_count": 1,
            "get_device_capability": divmod(capability, 10),
            "get_device_name": name,
        }
    with ExitStack() as stack:
        for function, answer in answers.items():
            patch = mock.patch.object(_cuda, function, lambda *_, a=answer, **__: a)
            stack.enter_context(patch)
        _load()
    if _cuda.is_initialized():
        sys.exit("it can't be forked: what it imported has initialised CUDA")


def main(descriptor: int) -> None:
    """Import SGLang, say how that went, then serve; doesn't return."""
    if os.environ.get("OMP_NUM_THREADS", "").isdecimal():
        # a fork's fork server had one
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    os.set_inheritable(descriptor, False)
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    connection = Connection(descriptor)
    try:
        how = _load()
    except BaseException as error:  # noqa: BLE001
        text = " ".join(str(error).split())[:300]
        reason = f"import failed: {type(error).__name__}: {text}"
        traceback.print_exc()
        connection.send(("failed", reason))
        _exit()
    if _cuda.is_available():
        sleep_while_waiting()
    # collecting garbage after each answer passes over what the import made
    gc.freeze()
    connection.send(("ready", how))
    while _serve(connection):
        pass
    _exit()


def _end_with_the_run() -> None:
    sys.stdin.buffer.read()
    # its own group: compilers that an adapter started end as well
    os.killpg(0, signal.SIGKILL)


def _exit() -> None:
    """End at once: exit handlers of half-imported packages may hang."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _serve(connection: Connection) -> bool:
    """Answer one request; return whether another one can be served."""
    try:
        reply, fit = _reply(connection)
    except (EOFError, ConnectionError):
        return False
    # the caller's memory is given back before it hears that it may free it
    _give_back_memory()
    send(connection, reply)
    return fit


def _reply(connection: Connection) -> tuple[Message, bool]:
    """Return the answer to the next request, and whether this process is still fit."""
    try:
        request = receive(connection)
    except (EOFError, ConnectionError):
        raise
    except BaseException as error:  # noqa: BLE001
        return _failure(error)
    try:
        return pack(("answer", _answer(*request))), True
    except Skip as ended:
        return pack(("skip", vars(ended.obstacle))), True
    except BaseException as error:  # noqa: BLE001
        return _failure(error)


def _answer(kind: str, *question: Any) -> Any:
    if kind == "probe":
        (tensor,) = question
        tensor.add_(1)
        torch.cuda.synchronize(tensor.device)
        return None
    file, name, draws, definition, inputs, backend = question
    adapter = getattr(_module(file), name)
    seed(draws)
    devices = {v.device for v in inputs.values() if isinstance(v, torch.Tensor)}
    cuda = [device for device in devices if device.type == "cuda"]
    with torch.no_grad():
        if not cuda:
            return adapter(definition, inputs, backend)
        with torch.cuda.device(cuda[0]):
            outputs = adapter(definition, inputs, backend)
            torch.cuda.synchronize()
            return outputs


@cache
def _module(file: str) -> ModuleType:
    """Import the module of an adapter by its path, under a name that nobody else has."""
    name = f"sglang_adapters_of_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"not a module of Python: {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _failure(error: BaseException) -> tuple[Message, bool]:
    """Return an error as a message; a broken CUDA context ends this process."""
    kind = "unavailable" if isinstance(error, Unavailable) else "error"
    short = str(error) or type(error).__name__
    frames = traceback.format_exception(error, limit=-_FRAMES)
    details = {
        "type": type(error).__name__,
        "message": short,
        "traceback": "".join(frames),
        "context": "",
    }
    # frames hold the inputs
    traceback.clear_frames(error.__traceback__)
    error.__traceback__ = None
    try:
        if _cuda.is_initialized():
            _cuda.synchronize()
    except Exception as broken:  # noqa: BLE001
        details["context"] = " ".join(str(broken).split())[:200]
    return pack((kind, details)), not details["context"]


def _give_back_memory() -> None:
    if not _cuda.is_initialized():
        return
    gc.collect()
    try:
        _cuda.empty_cache()
        _cuda.ipc_collect()
    except Exception:  # noqa: BLE001 (a broken context gives it back at its end)
        traceback.print_exc()
