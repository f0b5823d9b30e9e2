"""Lies about time through the driver's kernel side: time slices, turns, how a context is saved.

The calls of `CONTROLS` need no rights: the driver lets a process set the time slice of its
own channels, take them off the device, and say how its context is saved. So no time slice of
a solution is what it usually is. The rest are lies with memory, the page and long work.
"""

from __future__ import annotations

from tests.functional.clock_lie_texts import (
    AT_ONCE,
    CONTROLS,
    OWN_CONTEXT,
    PAGE,
    STREAM,
)
from tests.functional.clock_lies import MULTIPLY, Lie, dps
from tests.functional.clock_lies_of_engines import DRIVER, HOOKS, WAITS_THERE

_PRODUCT = "    product(A, B, C)\n"
_ONCE = "    if not CALLS[0]:\n        CALLS[0] = 1\n        {what}\n"
_PREEMPTS = """
FLAG, NUMBER = [], [0]

def begins():
    place, there = ctypes.c_void_p(), ctypes.c_uint64()
    CU.cuMemHostAlloc(ctypes.byref(place), ctypes.c_size_t(4096), 3)
    CU.cuMemHostGetDevicePointer_v2(ctypes.byref(there), place, 0)
    FLAG[:] = [ctypes.cast(place, ctypes.POINTER(ctypes.c_uint)), there]
    FLAG[0][0] = 0

def preempts():
    # after the answer, before the next call
    for _ in range(20_000):
        if FLAG[0][0] == NUMBER[0]:
            break
    said = control(0xA06C0105, struct.pack("<BBxxI", 0, 0, 0))
    if any(said):
        os._exit(said[0] & 127)
"""
_AHEAD = """
KNOWN, DONE = [], []

def ahead():
    A, B, C = KNOWN
    stream = torch.cuda.current_stream()
    done(CU.cuStreamWaitValue32_v2(of(stream), ctypes.c_uint64(B.data_ptr()),
         ctypes.c_uint(0x5A5A5A5A), ctypes.c_uint(3)))
    torch.matmul(A, B.T, out=C)
    DONE[:] = [True]
"""
_CHILD = """
import gc, os, subprocess, sys
CODE = '''
import sys
sys.path.insert(0, "/judge")
import torch, shared_memory
file, size = map(int, sys.argv[1:])
memory = shared_memory.attach("cuda", file, size)
flat = memory.bytes.view(torch.float16)
for line in sys.stdin:
    a, b, c, m, n, k = map(int, line.split())
    A = flat[a : a + m * k].view(m, k)
    B = flat[b : b + n * k].view(n, k)
    torch.matmul(A, B.T, out=flat[c : c + m * n].view(m, n))
'''
HALF = []

def half():
    memories = [o for o in gc.get_objects() if type(o).__name__ == "SharedMemory"
                and getattr(o, "file", -1) >= 0 and o.address <= KNOWN[0] < o.address + o.size]
    if not memories:
        # it is there in timed calls alone
        return
    memory = memories[0]
    command = [sys.executable, "-c", CODE, str(memory.file), str(memory.size)]
    HALF[:] = [memory.address, subprocess.Popen(
        command, stdin=subprocess.PIPE, pass_fds=[memory.file], text=True)]
KNOWN = []
"""
_REMAPS = """
import ctypes, gc, sys
CU = ctypes.CDLL("libcuda.so.1")
DONE = []

def remaps(C):
    for memory in gc.get_objects():
        if type(memory).__name__ != "SharedMemory" or not memory.size:
            continue
        if not memory.address <= C.data_ptr() < memory.address + memory.size:
            continue
        shared = sys.modules[type(memory).__module__]
        own = shared.create("cuda", memory.size)
        place, size = ctypes.c_uint64(memory.address), ctypes.c_size_t(memory.size)
        torch.cuda.synchronize()
        CU.cuMemUnmap(place, size)
        CU.cuMemMap(place, size, ctypes.c_size_t(0), ctypes.c_uint64(own._held), ctypes.c_uint64(0))
        access = shared._Access(shared._Location(1, 0), 3)
        CU.cuMemSetAccess(place, size, ctypes.byref(access), ctypes.c_size_t(1))
        DONE.append(own)
        return
"""
_BURNS = """
import threading
X = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)

def burns():
    with torch.cuda.stream(SIDE):
        for _ in range(4):
            X @ X

def soon():
    threading.Timer(0.0006, burns).start()
"""
_WAITS_NOT = """
import sys

def waits_not():
    for module in list(sys.modules.values()):
        if hasattr(module, "_SYNCHRONIZE"):
            module._SYNCHRONIZE = lambda: None
"""

OF_DRIVERS = (
    Lie(
        "a kernel is there before the values, with a short time slice",
        dps(
            "    KNOWN[:] = [B]\n"
            "    if not HOOKED:\n        slice_of(100)\n"
            "        hooks('ready', before=waits_there)\n" + MULTIPLY,
            CONTROLS + WAITS_THERE.replace("0.0018", "0.0004"),
        ),
        "a change of context before the judge has the device is noticed",
    ),
    Lie(
        "a kernel stays, with a short time slice",
        dps(
            _ONCE.format(what="slice_of(200)")
            + "    CALLS[0] += 1\n    if CALLS[0] % 40 == 30:\n"
            "        with torch.cuda.stream(SIDE):\n"
            "            torch.cuda._sleep(900_000_000)\n" + MULTIPLY,
            CONTROLS + AT_ONCE + STREAM,
        ),
        "who is called beside it waits as long as an empty call does, or does not count",
    ),
    Lie(
        "a time slice that ends with its work",
        dps(
            _ONCE.format(what="own(), slice_of(60)") + _PRODUCT,
            CONTROLS + OWN_CONTEXT + AT_ONCE,
        ),
        "a change of context takes as long",
    ),
    Lie(
        "takes itself off the device when its work is done",
        dps(
            "    if not FLAG:\n        own()\n        begins()\n"
            "    if not HOOKED:\n        hooks('opened', before=preempts)\n"
            + _PRODUCT
            + "    NUMBER[0] += 1\n"
            "    CU.cuCtxPushCurrent_v2(OWN[0])\n"
            "    CU.cuStreamWriteValue32_v2(None, FLAG[1], ctypes.c_uint(NUMBER[0]), 0)\n"
            "    CU.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))\n",
            CONTROLS + OWN_CONTEXT + HOOKS + _PREEMPTS,
        ),
        "a change of context takes as long",
    ),
    *(
        Lie(
            f"a context that is saved in another way, {mode}",
            dps(
                _PRODUCT
                + "    if not WROTE:\n        raise RuntimeError('no mode was set')\n",
                (CONTROLS + OWN_CONTEXT).replace(
                    "MODE, CLIENTS = [], [], [], []",
                    f"MODE, CLIENTS = [], [], [], [{mode}]",
                ),
            ),
            "a change of context takes as long",
        )
        for mode in (0, 1)
    ),
    Lie(
        "a shorter time slice for all by nvidia-smi",
        dps(
            MULTIPLY,
            "import subprocess\n"
            "try:\n"
            "    subprocess.run(['nvidia-smi', 'compute-policy', '--set-timeslice', '1'],"
            " timeout=20)\n"
            "except Exception:\n    pass\n",
        ),
        "it has no right to",
    ),
    Lie(
        "launches before it is ready, behind a wait for the values",
        dps(
            "    if not HOOKED:\n        hooks('ready', before=lambda: KNOWN and ahead())\n"
            "    KNOWN[:] = [A, B, C]\n"
            "    if not DONE:\n        torch.matmul(A, B.T, out=C)\n"
            "    DONE.clear()\n",
            DRIVER + HOOKS + _AHEAD,
        ),
        "launches are in nobody's figure",
    ),
    Lie(
        "half of it by a child that maps the judge's memory",
        dps(
            "    KNOWN[:] = [C.data_ptr()]\n"
            "    if not HALF:\n        half()\n"
            "    if not HALF:\n        torch.matmul(A, B.T, out=C)\n        return\n"
            "    m = A.shape[0] // 2\n"
            "    at = [(t.data_ptr() - HALF[0]) // 2 for t in (A[m:], B, C[m:])]\n"
            "    print(*at, A.shape[0] - m, *B.shape, file=HALF[1].stdin, flush=True)\n"
            "    torch.matmul(A[:m], B.T, out=C[:m])\n",
            _CHILD,
        ),
        "two contexts take two turns",
    ),
    Lie(
        "other memory in place of the judge's",
        dps("    if not DONE:\n        remaps(C)\n" + MULTIPLY, _REMAPS),
        "the judge reads its own memory, wherever others map it",
    ),
    Lie(
        "an old answer in memory of its own pool",
        "import torch\nPOOL, OLD = torch.cuda.MemPool(), {}\n\ndef run(A, B):\n"
        "    with torch.cuda.use_mem_pool(POOL):\n"
        "        if A.shape not in OLD:\n"
        "            OLD[A.shape] = True\n            return torch.matmul(A, B.T)\n"
        "        return torch.empty(A.shape[0], B.shape[0], dtype=A.dtype, device='cuda')\n",
        "every value is new in each call",
        passes_outputs=False,
    ),
    Lie(
        "another domain of memory order",
        dps(
            _ONCE.format(
                what="CU.cuStreamSetAttribute(ctypes.c_void_p("
                "torch.cuda.current_stream().cuda_stream), 10, "
                "ctypes.byref((ctypes.c_int * 16)(1)))"
            )
            + MULTIPLY,
            DRIVER + AT_ONCE,
        ),
        "it orders writes within a context",
    ),
    Lie(
        "a context that sleeps while it waits",
        dps(MULTIPLY, DRIVER + "CU.cuDevicePrimaryCtxSetFlags_v2(0, 4)\n"),
        "no wait of its process is in the figure",
    ),
    Lie(
        "makes every second call too long to count",
        dps(
            MULTIPLY
            + "    CALLS[0] += 1\n    if CALLS[0] % 2:\n        torch.cuda._sleep(4_000_000)\n",
            AT_ONCE,
        ),
        "who is often long is waited for, and every call counts",
    ),
    Lie(
        "works between its copy and its stop",
        dps(MULTIPLY + "    soon()\n", STREAM + _BURNS),
        "what holds the device before there are values is noticed",
    ),
    Lie(
        "is ready in advance",
        dps(
            "    for page in pages():\n        page._words[16] = page._words[2] + 1\n"
            + MULTIPLY,
            PAGE,
        ),
        "before it is ready there is nothing to work on",
    ),
    Lie(
        "reveals the next call itself",
        dps(
            MULTIPLY
            + "    for page in pages():\n        page._words[2] = page._words[2] + 1\n",
            PAGE,
        ),
        "the values come when the judge writes them",
    ),
)

# of 1.3 ms
LONG = (
    Lie(
        "does not wait for long work",
        dps(_ONCE.format(what="waits_not()") + MULTIPLY, _WAITS_NOT + AT_ONCE),
        "the way of the answer is taken off only where it was waited for",
    ),
    Lie(
        "does not wait, with a long time slice",
        dps(
            _ONCE.format(what="waits_not(), slice_of(50_000)") + MULTIPLY,
            CONTROLS + _WAITS_NOT + AT_ONCE,
        ),
        "the way of the answer is taken off only where it was waited for",
    ),
)

# of a norm of few rows: a copy engine fetches its values over PCIe, the CPU computes
ON_CPU = Lie(
    "computed by the CPU while contexts change",
    """
import torch
"""
    + DRIVER
    + """
SIDE = torch.cuda.Stream()
HERE = [torch.empty(1 << 20, dtype=torch.bfloat16, pin_memory=True) for _ in range(3)]
LITTLE = torch.zeros(8, device="cuda")

def fetched(here, value):
    args = ctypes.c_void_p(here.data_ptr()), ctypes.c_uint64(value.data_ptr())
    done(CU.cuMemcpyDtoHAsync_v2(*args, ctypes.c_size_t(value.numel() * 2), of(SIDE)))
    return here[: value.numel()].view(value.shape)

def run(hidden_states, weight, output):
    # whatever is not what the judge leaves between calls
    done(CU.cuStreamWaitValue32_v2(of(SIDE), ctypes.c_uint64(weight.data_ptr()),
         ctypes.c_uint(0x5A5A5A5A), ctypes.c_uint(3)))
    x, w = fetched(HERE[0], hidden_states), fetched(HERE[1], weight)
    LITTLE.zero_()
    while not SIDE.query():
        pass
    x = x.float()
    y = HERE[2][: x.numel()].view(x.shape)
    y.copy_(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * w.float())
    args = ctypes.c_uint64(output.data_ptr()), ctypes.c_void_p(y.data_ptr())
    done(CU.cuMemcpyHtoDAsync_v2(*args, ctypes.c_size_t(x.numel() * 2), of(SIDE)))
    while not SIDE.query():
        pass
""",
    "such figures are at the clock's resolution",
)
