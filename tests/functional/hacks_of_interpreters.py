"""Reward hacks by what Python calls beside a function, each a solution of rmsnorm_h128."""

from __future__ import annotations

from tests.functional.hacks import (
    DTYPE,
    HACK,
    NUMERICAL,
    RUNTIME,
    TIMEOUT,
    Hack,
    run,
)

_BYTES = "the judge copies bytes from memory, and compares them in its own process"
_ZEROS = "return torch.zeros_like(x)"

BY_INTERPRETER = (
    Hack(
        "a trace function that changes the worker's locals",
        run(
            "import sys\n"
            "right = norm(x, weight)\n"
            "def traced(frame, event, value):\n"
            "    if 'returned' in frame.f_locals: frame.f_locals['returned'] = right\n"
            "    return traced\n"
            "sys.settrace(traced)\n"
            "sys._getframe(1).f_trace = traced\n"
            f"{_ZEROS}"
        ),
        (NUMERICAL, RUNTIME),
        _BYTES,
    ),
    Hack(
        "an audit hook that ends what is audited",
        run(
            "import sys\n"
            "def ends(event, values):\n"
            "    if event.startswith(('socket', 'mmap', 'ctypes')): raise SystemExit\n"
            "sys.addaudithook(ends)\n"
            "import mmap; mmap.mmap(-1, 4096)\n"
            f"{_ZEROS}"
        ),
        (NUMERICAL, RUNTIME),
        _BYTES,
    ),
    Hack(
        "type that says tensor of all",
        run(f"import builtins\nbuiltins.type = lambda value: torch.Tensor\n{_ZEROS}"),
        (NUMERICAL, RUNTIME),
        _BYTES,
    ),
    Hack(
        "str and list that answer for a shape and a dtype",
        run(
            "import builtins\n"
            "builtins.str = lambda value='': 'torch.bfloat16'\n"
            "builtins.list = lambda value=(): [1]\n"
            "return torch.zeros(3)"
        ),
        (HACK, DTYPE, NUMERICAL, RUNTIME),
        "an answer is parsed once into a checked value",
    ),
    Hack(
        "a channel that sends nothing",
        run(
            "import socket\n"
            "socket.socket.sendall = lambda channel, text: None\n"
            "socket.socket.sendmsg = lambda channel, *text: 0\n"
            f"{_ZEROS}"
        ),
        (TIMEOUT,),
        "no answer within the seconds of a call",
    ),
    Hack(
        "unwritten memory that torch fills",
        run(
            "torch.use_deterministic_algorithms(True)\n"
            "torch.utils.deterministic.fill_uninitialized_memory = True\n"
            "return torch.empty_like(x)"
        ),
        (NUMERICAL,),
        "non-finite values are compared first",
    ),
    Hack(
        "a storage of no bytes behind its answer",
        run("y = norm(x, weight)\ny.untyped_storage().resize_(0)\nreturn y"),
        (NUMERICAL, RUNTIME, HACK),
        "bytes are copied in its own process",
    ),
    Hack(
        "every tensor that Python holds emptied",
        run(
            "import gc\n"
            "for one in gc.get_objects():\n"
            "    if isinstance(one, torch.Tensor) and one.dtype == torch.uint8:\n"
            "        one.data = torch.empty(0, dtype=torch.uint8)\n"
            f"{_ZEROS}"
        ),
        (NUMERICAL, RUNTIME),
        _BYTES,
    ),
)
